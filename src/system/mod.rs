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

pub use error::FileError;
pub(crate) use files::write_whole_with;
pub use files::{check_writable, write_whole};
pub use memory::{NoRoom, available_bytes, check_memory, peak_rss_bytes};
pub use name::{NameError, check_folder_name, check_name};
pub use nearest::{near_files, near_names};
pub use text::{printable, printable_lines};

#[cfg(any(feature = "lm", feature = "parquet"))]
pub(crate) use panics::caught;
#[cfg(any(feature = "lm", feature = "parquet"))]
pub use panics::panic_message;

#[cfg(feature = "lm")]
pub(crate) use self::{
    digest::{hexadecimal, sha256, sha256_of_file},
    machine::has_no_locks,
    toml_words::{lay_over, syntax, wrong_value},
};
#[cfg(feature = "lm")]
pub use free::check_disk;

#[cfg(feature = "study")]
pub(crate) use self::{
    command_line::arguments, files::remove_if_there, lock::lock_now, name::below,
    toml_words::key_within,
};
#[cfg(feature = "study")]
pub use lock::{Lock, lock};

#[cfg(feature = "cli")]
pub(crate) use aside::clear as clear_temporary_files;
#[cfg(feature = "cli")]
pub(crate) use command_line::{program, set_command_line};
