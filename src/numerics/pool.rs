//! Reusable work space.

use std::sync::Mutex;

/// A pool of values that callers take and put back.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// A value that was put back, or a new one; its contents are unspecified.
    pub fn take(&self) -> T {
        self.0.lock().expect("no holder of this lock panics").pop().unwrap_or_default()
    }

    pub fn put_back(&self, value: T) {
        self.0.lock().expect("no holder of this lock panics").push(value);
    }
}
