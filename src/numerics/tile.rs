//! A tile of a product: some rows of packed or plain numbers times one panel, kept in registers over the whole depth.

use std::marker::PhantomData;

use super::{Number, Simd};

/// Number of vectors of keys side by side in a panel.
pub(super) const PANEL_VECTORS: usize = 2;

/// Number of columns of a panel of packed keys.
#[inline(always)]
pub(crate) fn panel_width<T: Number, S: Simd<T>>(_: S) -> usize {
    PANEL_VECTORS * S::LANES
}

/// Number of rows of a group of packed queries: as many as fill the registers with accumulators.
#[inline(always)]
pub(crate) fn row_group<T: Number, S: Simd<T>>(_: S) -> usize {
    if S::REGISTERS >= 32 { 12 } else { 6 }
}

/// Loads adjacent vectors. A loop rather than `array::from_fn`, because closures are compiled without the vector
/// extension.
#[inline(always)]
pub(super) fn load_all<T: Number, S: Simd<T>, const VECTORS: usize>(
    simd: S,
    from: &[T],
) -> [S::V; VECTORS] {
    let mut all = [simd.splat(T::default()); VECTORS];
    for (vector, to) in all.iter_mut().enumerate() {
        *to = simd.load(&from[vector * S::LANES..]);
    }
    all
}

/// Some rows of a matrix, in place or packed, with the strides from an element to the next row and to the next element of the
/// same row.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    start: *const T,
    to_row: isize,
    to_step: isize,
    count: usize,
    depth: usize,
    lifetime: PhantomData<&'a T>,
}

impl<'a, T> Rows<'a, T> {
    /// `count` rows of `depth` numbers from `start` on.
    ///
    /// # Safety
    /// All of them must be valid for `'a`.
    #[inline(always)]
    pub(super) unsafe fn at(
        start: *const T,
        [to_row, to_step]: [isize; 2],
        [count, depth]: [usize; 2],
    ) -> Self {
        Self { start, to_row, to_step, count, depth, lifetime: PhantomData }
    }

    /// Rows from `packed`, which is (depth, count).
    #[inline(always)]
    pub(super) fn packed(packed: &'a [T], count: usize) -> Self {
        let (start, depth) = (packed.as_ptr(), packed.len() / count);
        Self { start, to_row: 1, to_step: count as isize, count, depth, lifetime: PhantomData }
    }

    /// # Panics
    /// If there are not `count` rows of at least `depth` numbers.
    #[inline(always)]
    fn check(self, count: usize, depth: usize) {
        assert!(self.count == count && depth <= self.depth, "rows as many and as long as asked");
    }
}

/// Products of COUNT rows of A with a panel, which is (depth, VECTORS · lanes).
///
/// # Panics
/// If there are not COUNT rows of sufficient depth.
#[inline(always)]
pub(super) fn sums<T: Number, S: Simd<T>, const COUNT: usize, const VECTORS: usize>(
    simd: S,
    rows: Rows<'_, T>,
    panel: &[T],
) -> [[S::V; VECTORS]; COUNT] {
    let depth = panel.len() / (VECTORS * S::LANES);
    rows.check(COUNT, depth);
    let mut sums = [[simd.splat(T::default()); VECTORS]; COUNT];
    let mut column = rows.start;
    for b in panel.chunks_exact(VECTORS * S::LANES) {
        let vectors: [S::V; VECTORS] = load_all(simd, b);
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: row r is below COUNT, and the step is below the depth: checked above.
            let a = simd.splat(unsafe { *column.offset(r as isize * rows.to_row) });
            for (sum, &b) in sums.iter_mut().zip(&vectors) {
                *sum = simd.mul_add(a, b, *sum);
            }
        }
        column = column.wrapping_offset(rows.to_step);
    }
    sums
}
