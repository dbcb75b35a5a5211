//! Files, digests, folder locks, available memory and disk space, and text that is safe to print.

mod aside;
#[cfg(feature = "study")]
mod command_line;
#[cfg(feature = "lm")]
mod digest;
pub mod disk;
mod error;
mod files;
#[cfg(feature = "lm")]
mod free;
#[cfg(feature = "study")]
mod lock;
pub(crate) mod machine;
mod memory;
mod name;
pub(crate) mod nearest;
#[cfg(any(feature = "lm", feature = "parquet"))]
mod panics;
mod text;
#[cfg(feature = "lm")]
mod toml_words;

#[cfg(feature = "study")]
pub(crate) use command_line::arguments;
#[cfg(feature = "cli")]
pub(crate) use command_line::{program, set_command_line};
#[cfg(feature = "lm")]
pub(crate) use digest::{hexadecimal, sha256, sha256_of_file};
pub use error::FileError;
#[cfg(feature = "study")]
pub(crate) use files::remove_if_there;
pub(crate) use files::write_whole_with;
pub use files::{check_writable, write_whole};
#[cfg(feature = "lm")]
pub use free::check_disk;
#[cfg(feature = "study")]
pub(crate) use lock::lock_now;
#[cfg(feature = "study")]
pub use lock::{Lock, lock};
#[cfg(feature = "lm")]
pub(crate) use machine::has_no_locks;
pub use memory::{NoRoom, available_bytes, check_memory, peak_rss_bytes};
#[cfg(feature = "study")]
pub(crate) use name::below;
pub use name::{NameError, check_folder_name, check_name};
pub use nearest::{near_files, near_names};
#[cfg(any(feature = "lm", feature = "parquet"))]
pub(crate) use panics::caught;
#[cfg(any(feature = "lm", feature = "parquet"))]
pub use panics::panic_message;
pub use text::{printable, printable_lines};
#[cfg(feature = "study")]
pub(crate) use toml_words::key_within;
#[cfg(feature = "lm")]
pub(crate) use toml_words::{lay_over, syntax, wrong_value};
