//! What a thread keeps for packed matrices.

use std::cell::RefCell;

use crate::numerics::Buffer;

/// What is packed of A and of B.
#[derive(Default)]
pub(crate) struct WorkSpace<T> {
    pub(super) rows: Buffer<T>,
    pub(super) columns: Buffer<T>,
}

/// A thread's work space of each type.
macro_rules! work_space {
    ($name:ident, $real:ty) => {
        pub(in crate::numerics) fn $name<R>(work: impl FnOnce(&mut WorkSpace<$real>) -> R) -> R {
            thread_local! {
                static SPACE: RefCell<WorkSpace<$real>> = RefCell::default();
            }
            SPACE.with_borrow_mut(work)
        }
    };
}
work_space!(of_float32, f32);
work_space!(of_float64, f64);
