//! What attention should look like: target matrices, their visibility, and the layouts of heads.

mod error;
mod layout;
mod matrix;
pub(crate) mod nearest;
mod visibility;

pub use error::TargetError;
pub use layout::{HeadKind, Layout};
pub use matrix::Target;
pub use visibility::Visibility;
