//! Rotations that positions apply to queries and keys of exported heads.

use ndarray::{Array2, Zip};

use super::tensors::Tensors;
use crate::lm::LmError;
use crate::lm::pretrained::Pairs;

/// Tolerance of the length of cosines and sines, relative to 1 or to their mean, for rounding.
const ROUNDING: f64 = 0.01;

/// The rotation of adjacent pairs of channels by position.
pub(super) struct Rotation {
    /// The order of channels in which the channels of a pair are adjacent.
    pub(super) order: Vec<usize>,
    /// (cos θ, sin θ) by position and pair, (T, d/2).
    pub(super) turns: Array2<[f32; 2]>,
    /// An additional factor of the rotated channels.
    pub(super) factor: f64,
}

impl Rotation {
    pub(super) fn read(
        tensors: &Tensors<'_>,
        pairs: Pairs,
        tokens: usize,
        d: usize,
    ) -> Result<Self, LmError> {
        let [_, count] = tensors.shape("cos", [Some(tokens), None])?;
        let (cos, sin) =
            (tensors.matrix("cos", [tokens, count])?, tensors.matrix("sin", [tokens, count])?);
        if count == 0 || 2 * count > d || !d.is_multiple_of(2) {
            return Err(tensors.wrong(&format!("{count} angles for heads of {d} channels")));
        }
        let lengths = Zip::from(&cos).and(&sin).map_collect(|&c, &s| f64::from(c).hypot(s.into()));
        let mean = lengths.mean().unwrap_or(1.0);
        if lengths.iter().any(|length| (length / mean - 1.0).abs() > ROUNDING) {
            return Err(tensors.wrong("cosines and sines that are all zero"));
        }
        let factor = if (mean - 1.0).abs() < ROUNDING { 1.0 } else { mean };
        if factor != 1.0 && 2 * count < d {
            return Err(tensors.wrong(&format!(
                "cosines and sines of length {factor:.3} for {} of {d} channels, which is not supported",
                2 * count
            )));
        }
        let turns = Array2::from_shape_fn((tokens, d / 2), |(at, pair)| match pair < count {
            true => [cos[[at, pair]], sin[[at, pair]]].map(|v| (f64::from(v) / factor) as f32),
            false => [1.0, 0.0],
        });
        Ok(Self { order: pairs.order(count, d), turns, factor })
    }

    /// Undoes the rotation of rows.
    pub(super) fn undone(&self, rows: &Array2<f32>) -> Array2<f32> {
        let mut back = rows.clone();
        for (mut row, turns) in back.rows_mut().into_iter().zip(self.turns.rows()) {
            for (pair, &[cos, sin]) in turns.iter().enumerate() {
                let (x, y) = (row[2 * pair], row[2 * pair + 1]);
                let length = cos * cos + sin * sin;
                row[2 * pair] = (x * cos + y * sin) / length;
                row[2 * pair + 1] = (y * cos - x * sin) / length;
            }
        }
        back
    }
}
