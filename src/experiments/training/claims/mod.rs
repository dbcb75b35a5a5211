//! Claims decided by this experiment.

pub mod arms;
pub mod pairs;
pub mod stabilisers;
pub mod training;
pub mod tuning;
pub mod variants;
