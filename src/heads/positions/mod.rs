//! What logits are as functions of where tokens stand: how much of them a form explains, and how near to a head's
//! attention its best member comes.

mod conjugate_gradients;
mod covariance;
mod divergence;
mod form;
mod rows;
mod shares;
#[cfg(test)]
pub(super) mod tests;

pub(super) use divergence::Nearest;
pub(super) use form::Form;
pub(super) use rows::SeenRows;
pub(super) use shares::Share;
