//! Queries and keys that are projections of given inputs by one pair of matrices, as in a trained head.

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2};

use super::Varied;
use super::inputs::Inputs;
use crate::numerics::{Real, product};
use crate::solver::curvature::Preconditioner;
use crate::solver::error::FitError;
use crate::solver::factors::Factors;
use crate::solver::penalty::Penalty;
use crate::solver::problem::{Precision, Problem};

/// Queries Q = X·W_q and keys K = X·W_k of one head, with free W_q and W_k of (C, d) and given X of every row: the attention of
/// all rows comes from the same two matrices. If a head normalises its queries and keys, each row is normalised and multiplied
/// by a gain, which is free as well. If several heads are normalised together, each row is multiplied by a given number
/// instead. With RoPE, rows are rotated by their positions.
///
/// A point is W_q, then W_k, in coordinates in which the columns of X are orthogonal and of length √n, so that inputs of very
/// different sizes do not slow the descent. With normalisation the gains of both, (d) each, follow.
#[derive(Clone, Debug)]
pub struct SharedProjection {
    pub(super) inputs: Inputs,
    rank: usize,
    normalisation: Option<Normalisation>,
    /// The given factor of each row of queries and of keys, (n) each.
    scales: Option<[Vec<f64>; 2]>,
    /// (cos θ, sin θ) per row and pair of channels, (n, d/2).
    turns: Option<Array2<[f64; 2]>>,
    /// Whether the descent is faster and less exact; see [`Self::sparing`].
    sparing: bool,
}

impl SharedProjection {
    /// Factors of `rank` that are projections of `inputs`. `turns`, (n, d/2), are the cosines and sines of the angles by which
    /// channels 2i and 2i + 1 of each row are rotated (RoPE).
    ///
    /// # Errors
    /// The turns have another shape.
    pub fn new(
        inputs: Inputs,
        rank: usize,
        normalisation: Option<Normalisation>,
        turns: Option<Array2<[f64; 2]>>,
    ) -> Result<Self, FitError> {
        let n = inputs.n();
        if let Some(turns) = &turns
            && turns.dim() != (n, rank / 2)
        {
            let found = turns.dim();
            return Err(FitError::inputs(format!("{n} rows of rank {rank}, but turns {found:?}")));
        }
        Ok(Self { inputs, rank, normalisation, scales: None, turns, sparing: false })
    }

    /// The rank of the inputs. If it is the number of rows, any queries and keys are projections of the inputs.
    pub fn input_rank(&self) -> usize {
        self.inputs.dimension()
    }

    /// A copy whose descents are faster: products are float32 if the descent is, and directions start with an approximate
    /// inverse of the Hessian. Results differ by as much as those of descents from other starts.
    #[must_use]
    #[cfg(feature = "lm")]
    pub(crate) fn sparing(self) -> Self {
        Self { sparing: true, ..self }
    }

    /// A copy with each row of queries and of keys multiplied by its own number, (n) each.
    ///
    /// # Errors
    /// `Inputs` if there is not one finite number per row.
    pub fn with_scales(self, scales: [Vec<f64>; 2]) -> Result<Self, FitError> {
        let n = self.n();
        let is_right = |of: &Vec<f64>| of.len() == n && of.iter().all(|v| v.is_finite());
        match scales.iter().all(is_right) {
            true => Ok(Self { scales: Some(scales), ..self }),
            false => Err(FitError::inputs(format!("{n} rows, but not a finite number for each"))),
        }
    }

    /// A copy with queries only for the rows at `positions`, in this order; the queries after them are 0.
    #[must_use]
    pub fn with_queries_at(self, positions: Vec<usize>) -> Self {
        Self { inputs: self.inputs.with_queries_at(positions), ..self }
    }

    /// Checks that the factors fit the problem, and that `points` are points of this parametrisation.
    pub(in crate::solver) fn check(
        &self,
        problem: &Problem,
        points: &[Vec<f64>],
    ) -> Result<(), FitError> {
        let of_this_problem = problem.heads() == 1
            && (self.n(), self.rank) == (problem.n(), problem.rank())
            && points.iter().all(|point| point.len() == self.length());
        let error = || FitError::inputs("they are not of this problem");
        of_this_problem.then_some(()).ok_or_else(error)
    }

    /// Whether logits are X·W_q·W_kᵀ·Xᵀ: queries and keys are neither normalised nor rotated.
    fn is_bilinear(&self) -> bool {
        self.normalisation.is_none() && self.scales.is_none() && self.turns.is_none()
    }

    /// The point whose factors are nearest to the given ones, in squares. Returns `None` if rows are normalised or scaled,
    /// because it is then not a least-squares problem.
    pub fn nearest(&self, factors: &Factors) -> Option<Vec<f64>> {
        if self.normalisation.is_some() || self.scales.is_some() {
            return None;
        }
        let mut point = Vec::with_capacity(self.length());
        for side in [0, 1] {
            let mut rows = self.inputs.rows_of(side, factors);
            // Rotating back keeps distances.
            for (at, mut row) in rows.rows_mut().into_iter().enumerate() {
                let row = row.as_slice_mut().expect("rows lie together");
                self.turn(self.inputs.position(side, at), row, -1.0);
            }
            point.extend(&self.inputs.nearest_weights(side, &rows)?);
        }
        Some(point)
    }

    /// The number of rows of queries or keys.
    fn n(&self) -> usize {
        self.inputs.n()
    }

    /// The number of weights of queries, or of keys, without gains.
    fn matrix_length(&self) -> usize {
        self.inputs.dimension() * self.rank
    }

    fn gains_length(&self) -> usize {
        if self.normalisation.is_some() { self.rank } else { 0 }
    }

    /// The number of entries of a point.
    pub fn length(&self) -> usize {
        2 * (self.matrix_length() + self.gains_length())
    }

    /// The point whose queries and keys, before normalisation and rotation, are nearest to `queries` and `keys`, (n, d) each,
    /// in squares. They are equal if those are linear in the inputs. The gains are set to `gains`, or to 1.
    pub fn point(
        &self,
        queries: ArrayView2<'_, f64>,
        keys: ArrayView2<'_, f64>,
        gains: Option<[&[f64]; 2]>,
    ) -> Vec<f64> {
        let mut point = Vec::with_capacity(self.length());
        for side in [queries, keys] {
            let weights = product(self.inputs.of_sides()[1].t(), side) / self.n() as f64;
            point.extend(weights.iter());
        }
        if self.normalisation.is_some() {
            let ones = vec![1.0; self.rank];
            for side in 0..2 {
                point.extend(gains.map_or(&ones[..], |gains| gains[side]));
            }
        }
        point
    }

    /// The factors at a point.
    ///
    /// # Panics
    /// If `point` has the wrong length, or is not finite.
    pub fn at(&self, point: &[f64]) -> Factors {
        Factors::from_vector(&self.factors(Precision::F64, point), 1, self.n(), self.rank)
            .expect("finite weights make factors")
    }

    /// The weights and the gain of queries (`side` = 0) or keys (1).
    fn side<'x>(&self, x: &'x [f64], side: usize) -> (ArrayView2<'x, f64>, &'x [f64]) {
        let (matrix, gains) = (self.matrix_length(), self.gains_length());
        let weights = &x[side * matrix..(side + 1) * matrix];
        let shape = (self.inputs.dimension(), self.rank);
        let weights = ArrayView2::from_shape(shape, weights).expect("a point has its length");
        // The gains come last.
        (weights, &x[x.len() - 2 * gains + side * gains..][..gains])
    }

    /// Multiplies row `at` of queries or keys by its given factor.
    pub(super) fn scale(&self, side: usize, at: usize, row: &mut [f64]) {
        if let Some(scales) = &self.scales {
            row.iter_mut().for_each(|v| *v *= scales[side][at]);
        }
    }

    /// Rotates the pairs of channels of row `at` by their angles if `sign` is 1, and back if it is −1.
    pub(super) fn turn(&self, at: usize, row: &mut [f64], sign: f64) {
        let Some(turns) = &self.turns else { return };
        for (pair, [cos, sin]) in row.chunks_exact_mut(2).zip(turns.row(at)) {
            let (x, y, sin) = (pair[0], pair[1], sign * sin);
            pair[0] = x * cos - y * sin;
            pair[1] = x * sin + y * cos;
        }
    }
}

impl SharedProjection {
    /// The factors at x, with products of the inputs `basis` in the arithmetic of T.
    fn factors_by<T: Real>(&self, basis: [&Array2<T>; 2], x: &[f64]) -> Vec<f64> {
        let (n, d) = (self.n(), self.rank);
        let mut factors = vec![0.0; 2 * n * d];
        for (side, to) in factors.chunks_exact_mut(n * d).enumerate() {
            let (weights, gain) = self.side(x, side);
            let rows = product(basis[side].view(), weights.mapv(T::from_f64).view());
            for (at, (row, from)) in to.chunks_exact_mut(d).zip(rows.rows()).enumerate() {
                row.iter_mut().zip(from).for_each(|(to, v)| *to = v.to_f64());
                if let Some(normalisation) = self.normalisation {
                    let Normal { unit, .. } = normalisation.of(row);
                    row.iter_mut().zip(unit.iter().zip(gain)).for_each(|(to, (u, g))| *to = u * g);
                }
                let at = self.inputs.position(side, at);
                self.scale(side, at, row);
                self.turn(at, row, 1.0);
            }
        }
        factors
    }

    fn pull_back_by<T: Real>(
        &self,
        basis: [&Array2<T>; 2],
        x: &[f64],
        of_factors: &[f64],
        to: &mut [f64],
    ) {
        let (n, d) = (self.n(), self.rank);
        let (matrix, gains) = (self.matrix_length(), self.gains_length());
        let (matrices, gain_gradients) = to.split_at_mut(self.length() - 2 * gains);
        gain_gradients.fill(0.0);
        for (side, from) in of_factors.chunks_exact(n * d).enumerate() {
            let made_of = basis[side];
            let shape = (made_of.nrows(), d);
            let from = &from[..made_of.nrows() * d];
            let mut rows = ArrayView2::from_shape(shape, from).expect("as many numbers").to_owned();
            let (weights, gain) = self.side(x, side);
            let projected = self
                .normalisation
                .map(|_| product(made_of.view(), weights.mapv(T::from_f64).view()));
            if !self.is_bilinear() {
                for (at, mut row) in rows.rows_mut().into_iter().enumerate() {
                    let row = row.as_slice_mut().expect("rows lie together");
                    let position = self.inputs.position(side, at);
                    self.turn(position, row, -1.0);
                    self.scale(side, position, row);
                    if let (Some(normalisation), Some(projected)) = (self.normalisation, &projected)
                    {
                        let before: Vec<f64> =
                            projected.row(at).iter().map(|v| v.to_f64()).collect();
                        let gain_gradient = &mut gain_gradients[side * gains..(side + 1) * gains];
                        normalisation.of(&before).pull_back(gain, row, gain_gradient);
                    }
                }
            }
            let pulled = product(made_of.t(), rows.mapv(T::from_f64).view());
            let to = &mut matrices[side * matrix..(side + 1) * matrix];
            to.iter_mut().zip(&pulled).for_each(|(to, v)| *to = v.to_f64());
        }
    }
}

impl Varied for SharedProjection {
    fn factors<'x>(&self, precision: Precision, x: &'x [f64]) -> Cow<'x, [f64]> {
        Cow::Owned(match (precision, self.sparing) {
            (Precision::F32, true) => self.factors_by(self.inputs.in_single(), x),
            _ => self.factors_by(self.inputs.of_sides(), x),
        })
    }

    fn pull_back(&self, precision: Precision, x: &[f64], of_factors: &[f64], to: &mut [f64]) {
        match (precision, self.sparing) {
            (Precision::F32, true) => {
                self.pull_back_by(self.inputs.in_single(), x, of_factors, to);
            }
            _ => self.pull_back_by(self.inputs.of_sides(), x, of_factors, to),
        }
    }

    fn preconditioner(&self, of: &Problem, x: &[f64], penalty: &Penalty) -> Option<Preconditioner> {
        let is_linear = self.sparing && self.normalisation.is_none();
        is_linear.then(|| self.sides(of, &self.factors(Precision::F64, x), penalty)).flatten()
    }
}

/// The normalisation of a row before it is a query or a key: (row − mean)/√(variance + ε) ∘ gain, or if not centred
/// row/√(mean square + ε) ∘ gain (Zhang and Sennrich 2019, arXiv 1910.07467).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// ε.
    pub epsilon: f64,
    /// Whether the mean is subtracted.
    pub centred: bool,
}

/// A normalised row, and 1/√(variance + ε).
pub(super) struct Normal {
    pub unit: Vec<f64>,
    scale: f64,
    centred: bool,
}

impl Normalisation {
    pub(super) fn of(self, row: &[f64]) -> Normal {
        let d = row.len() as f64;
        let mean = if self.centred { row.iter().sum::<f64>() / d } else { 0.0 };
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / d;
        let scale = 1.0 / (variance + self.epsilon).sqrt();
        let unit = row.iter().map(|v| (v - mean) * scale).collect();
        Normal { unit, scale, centred: self.centred }
    }
}

impl Normal {
    /// Replaces the gradient of gain ∘ unit by that of the row before normalisation, and adds the gradient of the gain to
    /// `of_gain`.
    pub fn pull_back(&self, gain: &[f64], gradient: &mut [f64], of_gain: &mut [f64]) {
        let d = gradient.len() as f64;
        for ((of_gain, g), u) in of_gain.iter_mut().zip(&*gradient).zip(&self.unit) {
            *of_gain += g * u;
        }
        gradient.iter_mut().zip(gain).for_each(|(g, gain)| *g *= gain);
        let mean = if self.centred { gradient.iter().sum::<f64>() / d } else { 0.0 };
        let along = gradient.iter().zip(&self.unit).map(|(g, u)| g * u).sum::<f64>() / d;
        for (g, u) in gradient.iter_mut().zip(&self.unit) {
            *g = (*g - mean - u * along) * self.scale;
        }
    }
}

#[cfg(test)]
mod tests;
