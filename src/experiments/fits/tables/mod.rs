//! Tables of this experiment.

pub mod censored;
pub mod growth;
pub mod growth_cell;
pub mod layouts;
pub mod models;
pub mod one_fit;
