//! Work space that is used again.

use std::sync::Mutex;

/// Values that are lent to whoever works, and come back.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

impl<T: Default> Pool<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// A value that came back, or a new one; what it holds is unspecified.
    pub fn take(&self) -> T {
        self.0.lock().expect("no holder of this lock panics").pop().unwrap_or_default()
    }

    pub fn put_back(&self, value: T) {
        self.0.lock().expect("no holder of this lock panics").push(value);
    }
}
