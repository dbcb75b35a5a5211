//! How one head's matrices lie in the tensors, and the tiles in which its rows are handled.

use std::ops::Range;

use ndarray::{Array2, ArrayViewMut2, s};

use crate::target::HeadKind;

/// The sizes of a (B, T, H, D) tensor.
#[derive(Clone, Copy)]
pub(super) struct Dimensions {
    pub(super) batch: usize,
    pub(super) time: usize,
    pub(super) heads: usize,
    pub(super) d_head: usize,
}

impl Dimensions {
    /// Elements of the tensor.
    pub(super) fn count(self) -> usize {
        self.batch * self.time * self.heads * self.d_head
    }

    /// One head's T × D matrix, copied out and multiplied by `scale`. `index` counts heads within
    /// the batch: b·H + h.
    pub(super) fn gather(self, data: &[f32], index: usize, scale: f32) -> Array2<f32> {
        let (b, h) = (index / self.heads, index % self.heads);
        let rows = data[b * self.time * self.heads * self.d_head..]
            .chunks(self.heads * self.d_head)
            .take(self.time);
        let mut matrix = Array2::zeros((self.time, self.d_head));
        for (mut to, from) in matrix.rows_mut().into_iter().zip(rows) {
            for (to, from) in to.iter_mut().zip(&from[h * self.d_head..]) {
                *to = from * scale;
            }
        }
        matrix
    }

    /// Puts one head's T × D matrix back into the tensor.
    pub(super) fn scatter(self, matrix: &Array2<f32>, index: usize, data: &mut [f32]) {
        let (b, h) = (index / self.heads, index % self.heads);
        let rows = data[b * self.time * self.heads * self.d_head..]
            .chunks_mut(self.heads * self.d_head)
            .take(self.time);
        for (from, to) in matrix.rows().into_iter().zip(rows) {
            for (to, from) in to[h * self.d_head..].iter_mut().zip(from) {
                *to = *from;
            }
        }
    }
}

/// A block of rows and the columns that any of them sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl Tile {
    /// The columns, counted from the tile's first, that row `row` of the tensor sees.
    pub(super) fn visible(&self, row: usize, kind: HeadKind) -> Range<usize> {
        first_column(row, kind) - self.columns.start..row + 1 - self.columns.start
    }
}

/// The first column that causal row `row` sees.
fn first_column(row: usize, kind: HeadKind) -> usize {
    match kind {
        HeadKind::Global => 0,
        HeadKind::Local { window } => (row + 1).saturating_sub(window),
    }
}

/// The tiles that cover `time` rows. A local head's tiles are about as high as its window is
/// long: higher ones would compute mostly columns that no row sees.
pub(super) fn tiles(time: usize, kind: HeadKind) -> impl Iterator<Item = Tile> {
    let height = match kind {
        HeadKind::Global => 64,
        HeadKind::Local { window } => window.clamp(16, 64),
    };
    (0..time).step_by(height).map(move |start| {
        let end = time.min(start + height);
        Tile { rows: start..end, columns: first_column(start, kind)..end }
    })
}

/// Room for the largest of a head's tiles; a tile takes the part that it needs.
pub(super) fn scratch(time: usize, kind: HeadKind) -> Array2<f32> {
    let height = tiles(time, kind).map(|tile| tile.rows.len()).max().unwrap_or(0);
    let width = tiles(time, kind).map(|tile| tile.columns.len()).max().unwrap_or(0);
    Array2::zeros((height, width))
}

/// The logits' place in a scratch: the tile's rows × columns.
pub(super) fn part<'a>(scratch: &'a mut Array2<f32>, tile: &Tile) -> ArrayViewMut2<'a, f32> {
    scratch.slice_mut(s![..tile.rows.len(), ..tile.columns.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_row_once_and_every_visible_column() {
        for kind in
            [HeadKind::Global, HeadKind::Local { window: 1 }, HeadKind::Local { window: 40 }]
        {
            for time in [1, 15, 16, 17, 64, 200] {
                let mut next = 0;
                for tile in tiles(time, kind) {
                    assert_eq!(tile.rows.start, next);
                    next = tile.rows.end;
                    for row in tile.rows.clone() {
                        let seen = kind.columns(row, time, crate::Visibility::Causal);
                        let start = tile.columns.start;
                        assert_eq!(tile.visible(row, kind), seen.start - start..seen.end - start);
                    }
                }
                assert_eq!(next, time);
            }
        }
    }
}
