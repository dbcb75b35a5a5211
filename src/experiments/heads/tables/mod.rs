//! Tables of this experiment.

pub mod head_parts;
pub mod heads;
pub mod heads_tables;
#[cfg(test)]
pub mod heads_tests;
pub mod published;
