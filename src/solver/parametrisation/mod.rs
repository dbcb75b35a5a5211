//! Parametrisations: the variables of a fit, and the factors they stand for.

mod any_matrix;
mod free;
mod inputs;
mod normalisation;
mod tied;
mod tied_curvature;
mod varied;

pub(super) use any_matrix::AnyMatrix;
pub(super) use free::Free;
#[cfg(feature = "lm")]
pub(crate) use inputs::Inputs;
pub use normalisation::Normalisation;
pub use tied::SharedProjection;
pub(super) use varied::Varied;
