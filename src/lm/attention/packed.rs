//! Rows of a head's matrices, packed for the matrix products.

use std::ops::Range;

use rayon::prelude::*;

use super::heads::Dimensions;
use super::tasks::HeadRows;
use crate::numerics::Pool;
use crate::numerics::products::{panel_width, row_group, transpose};
use crate::numerics::{Buffer, Kernel, Real, Simd};

/// One head's keys or values for all T tokens.
#[derive(Default)]
pub(super) struct Packed {
    /// (T rounded up to whole panels, width): for products that sum over rows.
    pub(super) rows: Buffer<f32>,
    /// Panels of shape (D, panel width): for products with the transpose.
    pub(super) panels: Buffer<f32>,
}

/// Buffers kept between calls.
pub(super) static PACKED: Pool<Packed> = Pool::new();

/// Packs the keys and values of every head of every sequence.
pub(super) fn packed(dimensions: Dimensions, k: &[f32], v: &[f32]) -> Vec<[Packed; 2]> {
    let pack = |data, index| {
        let mut packed = PACKED.take();
        packed.fill(dimensions.head(data, index), dimensions.time);
        packed
    };
    let heads = 0..dimensions.batch * dimensions.heads;
    heads.into_par_iter().map(|index| [pack(k, index), pack(v, index)]).collect()
}

impl Packed {
    /// Packs all rows of a head.
    pub(super) fn fill(&mut self, from: HeadRows<'_>, time: usize) {
        f32::run(Pack { packed: self, from, time });
    }
}

struct Pack<'a> {
    packed: &'a mut Packed,
    from: HeadRows<'a>,
    time: usize,
}

impl Kernel<f32> for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<f32>>(self, simd: S) {
        let Self { packed: Packed { rows, panels }, from, time } = self;
        let d_head = from.d_head();
        let (panel, width) = (panel_width(simd), d_head.next_multiple_of(S::LANES));
        let padded = time.next_multiple_of(panel);
        rows.reserve(padded * width);
        panels.reserve(padded * d_head);
        copy_rows(from, 0..time, 1.0, rows, width);
        rows[time * width..padded * width].fill(0.0);
        let parts = panels.chunks_exact_mut(panel * d_head);
        for (to, rows) in parts.zip(rows[..padded * width].chunks_exact(panel * width)) {
            transpose(rows, width, to, panel);
        }
    }
}

/// One head's queries, or the gradients of its outputs, for one block of rows.
#[derive(Default)]
pub(super) struct BlockRows {
    /// (rows rounded up to whole groups, width).
    pub(super) rows: Buffer<f32>,
    /// Groups of shape (D, group).
    pub(super) groups: Buffer<f32>,
}

impl BlockRows {
    /// Packs the rows `here`, multiplied by `scale`.
    #[inline(always)]
    pub(super) fn fill<S: Simd<f32>>(
        &mut self,
        simd: S,
        from: HeadRows<'_>,
        here: &Range<usize>,
        scale: f32,
    ) {
        let d_head = from.d_head();
        let (group, width) = (row_group(simd), d_head.next_multiple_of(S::LANES));
        let count = here.len().next_multiple_of(group);
        self.rows.reserve(count * width);
        self.groups.reserve(count * d_head);
        copy_rows(from, here.clone(), scale, &mut self.rows, width);
        self.rows[here.len() * width..count * width].fill(0.0);
        let parts = self.groups.chunks_exact_mut(group * d_head);
        for (to, rows) in parts.zip(self.rows[..count * width].chunks_exact(group * width)) {
            transpose(rows, width, to, group);
        }
    }
}

#[inline(always)]
fn copy_rows(from: HeadRows<'_>, rows: Range<usize>, scale: f32, to: &mut [f32], width: usize) {
    for (row, to) in rows.zip(to.chunks_exact_mut(width)) {
        let from = from.row(row);
        let (to, rest) = to.split_at_mut(from.len());
        for (to, from) in to.iter_mut().zip(from) {
            *to = from * scale;
        }
        rest.fill(0.0);
    }
}
