//! All writes to the disk, as single operations.
//!
//! Every file (rows, logs, checkpoints, pages) is created, written, renamed and removed through this module. So a test
//! can put a [`Watch`] between the program and the system and make any single operation fail. This simulates a full
//! disk, a failing disk or a power failure.

mod file;
mod names;
mod watch;

pub use file::File;
pub(super) use names::folder_of;
pub use names::{make_folders, remove_all, remove_file, remove_folder, rename, sync_folder};
pub use watch::{Answer, Operation, Watch, watch_with};
