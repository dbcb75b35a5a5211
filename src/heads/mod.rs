//! Needed against actual: what a trained head's attention needed of its logits, by the fit, against what they are.
//!
//! For a head with attention P on some passages, max abs logit splits exactly:
//!
//! > actual = floor · inflation · tying · drift · gauge
//!
//! | part | is |
//! |---|---|
//! | floor L⁰(ε; P) | the least max abs logit of any logits that give P within ε |
//! | inflation = L*(ε; P, d) / L⁰ | the price of rank d, with free queries and keys |
//! | tying = Lˣ(ε; P, d) / L* | the price of Q = X·W_q and K = X·W_k with one W_q and W_k for all passages |
//! | drift = (½ spread) / Lˣ | logits that softmax sees and that P did not need |
//! | gauge = actual / (½ spread) | row shifts, which softmax does not see |
//!
//! All of them are of the same passages at once: kl_nats is the mean over the rows of all, and a logit
//! the largest over all. So floor ≤ needed ≤ needed_tied ≤ actual, since what is tied is free too and the
//! head's own weights are a start. Where a part's kl_nats were taken passage by passage that would not hold.

mod concentration;
mod error;
mod far;
mod head;
mod input_set;
mod largest;
mod lattice;
mod layer;
mod model_lattice;
mod parts;
mod passages;
mod positions;
mod precision;
mod ramp;
mod screen;
mod surgery;
mod values;

pub use concentration::{ConcentrationMeasurement, FarConcentration, held_from};
pub use error::PredictError;
pub use head::{Streams, TrainedHead, held_rows};
pub use input_set::{InputSet, RankLimit};
pub use largest::{fitted_above, largest_logits};
pub use lattice::{Corner, Corners};
pub use layer::{FittedHead, FoundHead, LayerFit};
pub use model_lattice::{HeadLattice, ModelLattice};
pub use parts::{Found, Levels, PARTS, Parts};
pub use passages::Passages;
pub use precision::PrecisionRisk;
pub use ramp::{RampMeasurement, ramp_half_spread, ramp_lag, reach};
pub use screen::{LAGS, Screened};
pub use surgery::{Edit, EditedHeads, Operated, Surgery};
