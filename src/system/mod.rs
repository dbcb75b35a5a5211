//! The process and its files: what it computes on, what it sets up, how it writes.

mod digest;
mod files;
mod machine;
mod process;

pub(crate) use digest::{hexadecimal, sha256};
pub use files::write_whole;
pub(crate) use files::write_whole_with;
pub use machine::Machine;
pub use process::{peak_rss_bytes, prepare_process};
