//! The command line, one file a subcommand.

pub mod analysis;
pub mod bench;
mod cells;
mod device;
pub mod dump;
mod duration;
pub mod error_line;
pub mod evaluate;
mod family;
pub mod fit;
pub mod list;
mod places;
pub mod predict;
mod progress;
mod progress_bar;
pub mod reproduce;
pub mod show;
mod slow_blas;
pub mod stop;
pub mod sweep;
pub mod target;
mod threads;
pub mod train;
mod trained;
pub mod verify;
pub mod version;
