//! Trained heads: the logits that a head's attention needs, according to the fit, compared with its actual logits.
//!
//! For a head with attention P on some passages, max |logit| is exactly a product of five factors:
//!
//! > actual = floor · inflation · input_factor · excess_factor · shift_factor
//!
//! | factor | definition |
//! |---|---|
//! | floor L⁰(ε; P) | the smallest max \|logit\| of any logits that give P within ε |
//! | inflation = L*(ε; P, d) / L⁰ | the rank penalty: the cost of rank d, with free queries and keys |
//! | input_factor = Lˣ(ε; P, d) / L* | the input factor: the cost of Q = X·W_q and K = X·W_k with one W_q and W_k for all passages |
//! | excess_factor = (½ spread) / Lˣ | the excess factor: logits that change softmax but that P does not need |
//! | shift_factor = actual / (½ spread) | the shift factor: row shifts, which softmax cancels |
//!
//! All levels are computed on the same passages together: kl_nats is the mean over the rows of all passages, and a max |logit|
//! is the maximum over all. So floor ≤ needed ≤ needed_from_input ≤ actual, because shared projections are valid free factors and the
//! head's own weights are a start. These inequalities need not hold for kl_nats per passage.

mod error;
mod head;
mod layer;
mod measurement;
mod parts;
mod passages;
mod positions;
mod precision;
mod ramp;
mod screen;
mod surgery;
mod values;

pub use error::PredictError;
pub use head::{TrainedHead, held_rows};
pub use layer::LayerFit;
pub use measurement::{HeadMeasurement, PARTS};
pub use parts::Parts;
pub use passages::Passages;
pub use precision::PrecisionRisk;
pub use ramp::{RampMeasurement, ramp_half_spread, ramp_lag, reach};
pub use screen::{fitted_above, largest_logits};
pub use surgery::{Edit, InterventionMeasurement, Surgery};
