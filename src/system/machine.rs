//! The machine's host name, and support for file locks.

#[cfg(feature = "lm")]
use std::io;

/// Returns the host name; empty if the machine has none.
#[cfg(unix)]
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Returns `true` for errors that mean that the file system does not support locks. There is more than one such error.
#[cfg(feature = "lm")]
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let has_none = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    #[cfg(not(unix))]
    let has_none = false;
    has_none || error.kind() == io::ErrorKind::Unsupported
}
