//! Two-dimensional windows over tokens in raster order.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Visibility;

/// A window over an image whose tokens come in raster order, `columns` per image row. Token i is in image row ⌊i / columns⌋ and
/// column i mod columns. A token attends to tokens at most `rows` rows and at most `reach` columns away that the mask allows.
/// With a causal mask these are 2·reach + 1 tokens in each row above, and itself with the `reach` tokens before it. The window
/// is clipped at the sides of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "lm", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Tokens in a row of the image, at least 1; with interleaved colours, those of all its channels.
    pub columns: usize,
    /// Rows away at most.
    pub rows: usize,
    /// Columns away at most, less than `columns`.
    pub reach: usize,
}

impl Patch {
    /// The largest number of tokens, up to and including its own, that a token attends to: rows · (2·reach + 1) + reach + 1.
    pub fn tokens(self) -> usize {
        self.rows * (2 * self.reach + 1) + self.reach + 1
    }

    /// Length of the shortest one-dimensional window, in tokens, that contains the patch: rows · columns + reach + 1.
    pub fn span(self) -> usize {
        self.rows * self.columns + self.reach + 1
    }

    /// The columns to which row `row` of `n` may attend, as ranges in ascending order, one per image row.
    pub(super) fn segments(
        self,
        row: usize,
        n: usize,
        visibility: Visibility,
    ) -> impl Iterator<Item = Range<usize>> + use<> {
        let (here, column) = (row / self.columns, row % self.columns);
        let end = visibility.columns(row, n).end;
        let sides = column.saturating_sub(self.reach)..self.columns.min(column + self.reach + 1);
        let rows = here.saturating_sub(self.rows)..=here + self.rows;
        rows.map(move |above| above * self.columns)
            .take_while(move |first| *first < end)
            .map(move |first| first + sides.start..end.min(first + sides.end))
            .filter(|segment| !segment.is_empty())
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.columns, self.rows, self.reach)
    }
}
