//! Work space: buffers of numbers aligned to cache lines, so that no vector spans two lines, and pools of reusable values.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// Numbers per line: one cache line of float32, two of float64.
const LINE: usize = 16;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line<T>([T; LINE]);

/// A vector of numbers aligned to 64 bytes, initially zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer<T> {
    lines: Vec<Line<T>>,
    length: usize,
}

impl<T: Copy + Default> Buffer<T> {
    /// `length` zeros.
    pub fn zeros(length: usize) -> Self {
        const { assert!(size_of::<Line<T>>() == size_of::<[T; LINE]>(), "lines without gaps") };
        Self { lines: vec![Line([T::default(); LINE]); length.div_ceil(LINE)], length }
    }

    /// Makes room for `length` numbers; their values are unspecified.
    pub fn reserve(&mut self, length: usize) {
        if length > self.length {
            *self = Self::zeros(length);
        }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `Line` is `repr(C)` around an array and no larger than that, which `zeros` checks, so the lines are
        // `LINE * lines.len()` ≥ `length` numbers in a row, all initialised.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the lines are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<T: Copy + Default + PartialEq + From<u8>>() {
        for length in [0, 1, 15, 16, 17, 100] {
            let mut buffer = Buffer::<T>::zeros(length);
            assert_eq!(buffer.len(), length);
            assert!(buffer.as_ptr().addr().is_multiple_of(64));
            assert!(buffer.iter().all(|&x| x == T::default()));
            for (at, x) in buffer.iter_mut().enumerate() {
                *x = T::from(at as u8);
            }
            let copy = buffer.clone();
            buffer.reserve(length / 2);
            assert!(buffer.iter().zip(copy.iter()).all(|(a, b)| a == b));
            assert!(copy.iter().enumerate().all(|(at, &x)| x == T::from(at as u8)));
            buffer.reserve(length + 1);
            assert_eq!(buffer.len(), length + 1);
        }
    }

    #[test]
    fn numbers_are_those_that_were_put_in_and_lie_on_a_line() {
        holds::<f32>();
        holds::<f64>();
    }
}
