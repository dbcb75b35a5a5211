//! The machine's name, and whether a file system of it has locks.

#[cfg(feature = "lm")]
use std::io;

/// The name that the machine is known by to others; empty where it has none.
#[cfg(unix)]
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Whether an error says that a file system has no locks to give, as they do in more than one way.
#[cfg(feature = "lm")]
pub(crate) fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    let has_none = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    #[cfg(not(unix))]
    let has_none = false;
    has_none || error.kind() == io::ErrorKind::Unsupported
}
