//! All that is written to the disk, an operation at a time.
//!
//! Rows, logs, checkpoints, pages: every file is made, written, renamed and taken away by what is here, and by nothing
//! beside it. So what becomes of them where the disk is full, fails or loses its power can be tried at every single
//! operation: a test puts a [`Watch`] between the program and the system.

mod file;
mod names;
mod watch;

pub use file::File;
pub(super) use names::folder_of;
pub use names::{make_folders, remove_all, remove_file, remove_folder, rename, sync_folder};
pub use watch::{Answer, Operation, Watch, watch_with};
