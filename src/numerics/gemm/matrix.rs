//! Matrices of any strides, read and written by the row.

use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::numerics::tile::Rows;

/// A matrix as it lies in memory.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T> {
    pub(super) start: *const T,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// From a row to the next, from a column to the next.
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

    /// Whether a row is a slice.
    #[inline(always)]
    pub(super) fn has_contiguous_rows(self) -> bool {
        self.strides[1] == 1 || self.columns == 1
    }

    /// Columns of a row of a matrix that has contiguous rows.
    #[inline(always)]
    pub(super) fn row(self, row: usize, columns: Range<usize>) -> &'a [T] {
        assert!(self.has_contiguous_rows(), "rows that are slices");
        assert!(row < self.rows && columns.start <= columns.end && columns.end <= self.columns);
        // SAFETY: the view that this is of borrows these elements, which are contiguous and initialised: checked above.
        unsafe {
            let start = self.start.offset(row as isize * self.strides[0]).add(columns.start);
            std::slice::from_raw_parts(start, columns.len())
        }
    }

    /// Rows of it, `deep` of each.
    #[inline(always)]
    pub(super) fn rows_at(self, rows: Range<usize>, deep: Range<usize>) -> Rows<'a, T> {
        assert!(rows.start < rows.end && rows.end <= self.rows, "rows of A");
        assert!(deep.start < deep.end && deep.end <= self.columns, "columns of A");
        let [to_row, to_step] = self.strides;
        // SAFETY: the first element is there, so its place is within what the view borrows, as are the others'.
        unsafe {
            let first = rows.start as isize * to_row + deep.start as isize * to_step;
            Rows::at(self.start.offset(first), self.strides, [rows.len(), deep.len()])
        }
    }

    #[inline(always)]
    pub(super) fn at(self, row: usize, column: usize) -> T {
        assert!(row < self.rows && column < self.columns, "an element that is there");
        let [of_row, of_column] = self.strides;
        // SAFETY: one of the rows and columns, whose elements the view borrows: checked above.
        unsafe { *self.start.offset(row as isize * of_row + column as isize * of_column) }
    }
}

/// A matrix of contiguous rows, to be written.
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
    /// Rows or columns that are not there.
    #[inline(always)]
    pub(super) fn check(&self, rows: Range<usize>, columns: &Range<usize>) {
        assert!(rows.end <= self.rows, "rows of C");
        assert!(columns.start <= columns.end && columns.end <= self.columns, "columns of C");
    }

    /// Columns of a row.
    ///
    /// # Safety
    /// They must have been checked.
    #[inline(always)]
    pub(super) unsafe fn row(&mut self, row: usize, columns: Range<usize>) -> &mut [T] {
        // SAFETY: the view that this is of borrows these elements mutably; they are contiguous. Only this
        // row's part is made a slice, since a view's rows may lie among those of others.
        unsafe {
            let start = self.start.offset(row as isize * self.stride).add(columns.start);
            std::slice::from_raw_parts_mut(start, columns.len())
        }
    }
}
