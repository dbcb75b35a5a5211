//! Packs keys before the slots run, and adds up their gradients afterwards.

use super::slot::Slot;
use crate::numerics::products::{panel_width, transpose};
use crate::numerics::{Kernel, Real, Simd};

/// Packs whole panels of keys from `from`, (keys, d). The last panel may be incomplete; its other places stay zero.
pub(super) struct PackKeys<'a, T> {
    pub from: &'a [f64],
    pub d: usize,
    /// (keys, width).
    pub rows: &'a mut [T],
    /// One matrix (d, panel width) per panel, divided by √d.
    pub panels: &'a mut [T],
}

impl<T: Real> Kernel<T> for PackKeys<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, simd: S) {
        let Self { from, d, rows, panels } = self;
        let (width, panel) = (d.next_multiple_of(S::LANES), panel_width(simd));
        for (to, key) in rows.chunks_exact_mut(width).zip(from.chunks_exact(d)) {
            for (to, &value) in to.iter_mut().zip(key) {
                *to = T::from_f64(value);
            }
        }
        let scale = T::from_f64(1.0 / (d as f64).sqrt());
        for (to, rows) in panels.chunks_exact_mut(panel * d).zip(rows.chunks_exact(panel * width)) {
            transpose(rows, width, to, panel);
            for value in to {
                *value = *value * scale;
            }
        }
    }
}

/// Adds up the slots' gradients of the keys from `first` on, in the order of the slots, times 1/√d.
pub(super) struct AddSlots<'a, T> {
    pub slots: &'a [Slot<T>],
    pub head: usize,
    pub d: usize,
    pub first: usize,
    /// (keys, d).
    pub keys: &'a mut [f64],
}

impl<T: Real> Kernel<T> for AddSlots<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd<T>>(self, _: S) {
        let Self { slots, head, d, first, keys } = self;
        let scale = 1.0 / (d as f64).sqrt();
        for (column, key) in (first..).zip(keys.chunks_exact_mut(d)) {
            key.fill(0.0);
            for slot in slots {
                if let Some(sums) = slot.key_gradients[head].column(column) {
                    for (key, g) in key.iter_mut().zip(sums) {
                        *key += g.to_f64();
                    }
                }
            }
            for key in key {
                *key *= scale;
            }
        }
    }
}
