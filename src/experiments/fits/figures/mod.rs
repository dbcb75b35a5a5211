//! Figures of this experiment.

pub mod frontiers;
pub mod growth;
pub mod layouts;
pub mod one_fit;
pub mod phase;
