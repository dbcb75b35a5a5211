//! What the slots of an evaluation read and add up: packed keys, sizes of packing, and totals.

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

/// Sums and extremes over the rows of a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Σᵢ Σⱼ aᵢⱼ log Pᵢⱼ.
    pub likelihood: f64,
    /// The penalty.
    pub penalty: f64,
    pub max_abs_logit: f64,
    pub logit_spread: f64,
    /// Σᵢ sₕᵢ per head: the target's mass of each head.
    pub usage: Vec<f64>,
}

impl Totals {
    pub fn new(heads: usize) -> Self {
        Self { usage: vec![0.0; heads], ..Self::default() }
    }

    pub fn add(&mut self, other: &Self) {
        self.likelihood += other.likelihood;
        self.penalty += other.penalty;
        self.max_abs_logit = self.max_abs_logit.max(other.max_abs_logit);
        self.logit_spread = self.logit_spread.max(other.logit_spread);
        self.usage.iter_mut().zip(&other.usage).for_each(|(to, from)| *to += from);
    }
}
