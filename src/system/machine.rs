//! The machine's host name, and support for file locks.

#[cfg(feature = "lm")]
use std::io;

/// Returns the host name; empty if the machine has none.
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns `true` for errors that mean that the file system does not support locks. There is more than one such error.
#[cfg(feature = "lm")]
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error())
        || error.kind() == io::ErrorKind::Unsupported
}
