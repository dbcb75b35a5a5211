//! Figures of this experiment.

pub mod arms;
pub mod courses;
pub mod overview;
pub mod training;
pub mod variant;
