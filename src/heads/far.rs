//! Distant columns of a causal row.

use std::ops::Range;

/// The columns of causal row `row` at a relative distance of `window` or more, except the first column: heads may use that one
/// as a sink, whatever token it is.
pub(super) fn far_columns(row: usize, window: usize) -> Range<usize> {
    1..(row + 1).saturating_sub(window).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_is_what_a_window_does_not_see_but_the_first() {
        assert_eq!(far_columns(5, 2), 1..4, "lags 4, 3 and 2");
        assert_eq!(far_columns(3, 2), 1..2);
        for row in 0..3 {
            assert!(far_columns(row, 2).is_empty(), "row {row}");
        }
    }
}
