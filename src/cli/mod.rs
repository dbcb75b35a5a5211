//! The command line, one file a subcommand.

mod family;
pub mod target;
