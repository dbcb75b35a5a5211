//! Target attention matrices, their masks, and layouts of heads.
//!
//! A [`Target`] comes from a [`Family`] at a size and a seed ([`Family::build`]), from a file ([`Target::read`]) or from rows
//! in memory ([`Target::from_rows`]). [`Statistics`] and [`Spectrum`] describe it. A [`Layout`] names the heads that reproduce
//! it together.

mod build;
mod draws;
mod error;
mod family;
mod file;
mod layout;
mod matrix;
mod parameters;
mod spectrum;
mod statistics;
mod visibility;

pub use error::TargetError;
pub use family::Family;
#[cfg(feature = "study")]
pub(crate) use file::read_frame;
pub(crate) use file::read_npy;
#[cfg(feature = "lm")]
pub(crate) use file::short_floats;
pub use file::{StackIndex, TargetFile, TargetRead, write_matrix};
pub use layout::{HeadKind, Layout};
pub use matrix::Target;
pub use parameters::Parameters;
pub use spectrum::Spectrum;
pub use statistics::Statistics;
pub use visibility::Visibility;
