//! Helpers that several test crates share: the program in a folder of its own, small definitions, counted trials.

pub mod binary;
pub mod tiny;
pub mod tries;
