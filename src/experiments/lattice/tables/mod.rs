//! Tables of this experiment.

pub mod lattice;
pub mod lattice_tables;
