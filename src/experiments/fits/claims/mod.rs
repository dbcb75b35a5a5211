//! Claims decided by this experiment.

pub mod controls;
pub mod growth;
pub mod layouts;
