//! Inputs shared by all slots of an evaluation: packed keys, and sizes of packing.

use crate::numerics::products::panel_width;
use crate::numerics::{Buffer, Kernel, Real, Simd};
use crate::solver::problem::Problem;

/// Inputs that every slot reads.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a, T> {
    pub problem: &'a Problem,
    pub x: &'a [f64],
    pub keys: &'a [Keys<T>],
    /// π, one per head.
    pub weights: &'a [f64],
}

/// One head's keys, packed for the products.
pub(super) struct Keys<T> {
    /// One matrix (d, panel width) per panel, divided by √d, for the logits.
    pub panels: Buffer<T>,
    /// (n rounded up to whole panels, width), for the queries' gradient.
    pub rows: Buffer<T>,
}

/// The sizes of packed operands, which depend on the vector extension.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// d rounded up to whole vectors.
    pub width: usize,
    /// The columns of a panel.
    pub panel: usize,
}

/// Finds the sizes for a head dimension.
pub(super) struct FindSizes(pub usize);

impl<T: Real> Kernel<T> for FindSizes {
    type Output = Sizes;

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) -> Sizes {
        Sizes { width: self.0.next_multiple_of(S::LANES), panel: panel_width(simd) }
    }
}
