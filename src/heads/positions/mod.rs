//! Logits as functions of positions: the share (R²) of a head's logits that each form explains, and the form's attention
//! nearest to the head's.

mod covariance;
mod divergence;
mod form;
mod rows;
#[cfg(test)]
pub(super) mod tests;

pub(super) use divergence::Nearest;
pub(super) use form::Form;
pub(super) use rows::{SeenRows, extremes};
