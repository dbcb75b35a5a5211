//! Claims decided by this experiment.

pub mod heads;
pub mod published;
