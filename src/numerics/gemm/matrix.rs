//! Matrices of any strides, accessed by row.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::numerics::tile::Rows;

/// A matrix in memory, with its strides.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) start: *const T,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Strides between rows and between columns.
    pub(super) strides: [isize; 2],
    lifetime: PhantomData<&'a T>,
}

impl<'a, T: Copy> Matrix<'a, T> {
    pub(super) fn of(view: &'a ArrayView2<'_, T>) -> Self {
        let (rows, columns) = view.dim();
        let strides = [view.strides()[0], view.strides()[1]];
        Self { start: view.as_ptr(), rows, columns, strides, lifetime: PhantomData }
    }

    #[inline(always)]
    pub(super) fn transposed(self) -> Self {
        let Self { rows, columns, strides: [row, column], .. } = self;
        Self { rows: columns, columns: rows, strides: [column, row], ..self }
    }

    /// Whether each row is a slice.
    #[inline(always)]
    pub(super) fn has_contiguous_rows(self) -> bool {
        self.strides[1] == 1 || self.columns == 1
    }

    /// Columns of a row, as a slice. Panics unless rows are contiguous.
    #[inline(always)]
    pub(super) fn row(self, row: usize, columns: Range<usize>) -> &'a [T] {
        assert!(self.has_contiguous_rows(), "rows that are slices");
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.columns);
        // SAFETY: the original view borrows these elements, which are contiguous and initialised: checked above.
        unsafe {
            let start = self.start.offset(row as isize * self.strides[0]).add(columns.start);
            std::slice::from_raw_parts(start, columns.len())
        }
    }

    /// The range `deep` of some rows.
    #[inline(always)]
    pub(super) fn rows_at(self, rows: Range<usize>, deep: Range<usize>) -> Rows<'a, T> {
        assert!(rows.start < rows.end && rows.end <= self.rows, "rows of A");
        assert!(deep.start < deep.end && deep.end <= self.columns, "columns of A");
        let [to_row, to_step] = self.strides;
        // SAFETY: the first element exists, so its address is within what the view borrows, as are those of the others.
        unsafe {
            let first = rows.start as isize * to_row + deep.start as isize * to_step;
            Rows::at(self.start.offset(first), self.strides, [rows.len(), deep.len()])
        }
    }

    #[inline(always)]
    pub(super) fn at(self, row: usize, column: usize) -> T {
        assert!(row < self.rows && column < self.columns, "an element that is there");
        let [of_row, of_column] = self.strides;
        // SAFETY: row and column are within the view, which borrows the elements: checked above.
        unsafe { *self.start.offset(row as isize * of_row + column as isize * of_column) }
    }
}

/// A mutable matrix with contiguous rows.
pub(super) struct Output<'a, T> {
    pub(super) start: *mut T,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: isize,
    lifetime: PhantomData<&'a mut T>,
}

impl<'a, T> Output<'a, T> {
    pub(super) fn of(view: &'a mut ArrayViewMut2<'_, T>) -> Self {
        let ((rows, columns), stride) = (view.dim(), view.strides()[0]);
        assert_eq!(view.strides()[1], 1, "contiguous rows");
        let start = view.as_mut_ptr();
        Self { start, rows, columns, stride, lifetime: PhantomData }
    }

    /// # Panics
    /// If rows or columns do not exist.
    #[inline(always)]
    pub(super) fn check(&self, rows: Range<usize>, columns: &Range<usize>) {
        assert!(rows.end <= self.rows, "rows of C");
        assert!(columns.start <= columns.end && columns.end <= self.columns, "columns of C");
    }

    /// Columns of a row, as a mutable slice.
    ///
    /// # Safety
    /// The row and columns must have passed [`Self::check`].
    #[inline(always)]
    pub(super) unsafe fn row(&mut self, row: usize, columns: Range<usize>) -> &mut [T] {
        // SAFETY: the original view borrows these elements mutably; they are contiguous. Only this
        // row's part becomes a slice, since the rows of a view may be interleaved with those of others.
        unsafe {
            let start = self.start.offset(row as isize * self.stride).add(columns.start);
            std::slice::from_raw_parts_mut(start, columns.len())
        }
    }
}
