//! Figures of this experiment.

pub mod across_runs;
pub mod courses;
pub mod overview;
pub mod training;
pub mod variant;
