//! Figures of this experiment.

pub mod heads;
pub mod heads_of_model;
pub mod prediction;
