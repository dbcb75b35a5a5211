//! Queries and keys that one pair of matrices makes out of given inputs, as a trained head's are.

use ndarray::{Array2, Array3, ArrayView2, ArrayViewMut2, Axis, s};
use ndarray_linalg::{JobSvd, LeastSquaresSvd, SVDDC};

use super::factors::Factors;
use super::problem::FitError;
use crate::numerics::blas::on_one_thread;
use crate::numerics::{gemm, product};

/// Singular values of the inputs under this share of the largest are taken for none.
const NEGLIGIBLE: f64 = 1e-6;

/// How a row is normalised before it is a query or a key: (row − mean)/√(variance + ε) ∘ gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// ε.
    pub epsilon: f64,
}

/// Queries Q = X·W_q and keys K = X·W_k of one head, with free W_q and W_k of (C, d) and the X of every row
/// given: the attention of all rows comes from the same two matrices. Where a head normalises its
/// queries and keys, each row is normalised and multiplied by a gain that is free too; where it turns
/// them by their positions, they are turned.
///
/// A point is W_q and then W_k in coordinates in which the columns of X are orthogonal and of length
/// √n, so that descent is not slowed by inputs of very different sizes; then the gains of both, (d) each, where
/// there are any.
#[derive(Clone, Debug)]
pub struct Tied {
    /// (n, r): an orthogonal basis of the columns of X.
    basis: Array2<f64>,
    /// The rows of it that have queries, where not all have one, and where they stand.
    queried: Option<(Vec<usize>, Array2<f64>)>,
    rank: usize,
    /// Whether keys are the basis itself and a point is W_q alone: logits are linear in it.
    linear: bool,
    normalisation: Option<Normalisation>,
    /// (cos θ, sin θ) by row and pair of channels, (n, d/2).
    turns: Option<Array2<[f64; 2]>>,
}

impl Tied {
    /// Factors of `rank` tied to `inputs`, (n, C). `turns` are the cosines and sines that channels 2i and 2i + 1
    /// of each row turn by, (n, d/2).
    ///
    /// # Errors
    /// `Inputs` where they are not finite, hold nothing or cannot be decomposed, or the turns have another
    /// shape.
    pub fn new(
        inputs: ArrayView2<'_, f64>,
        rank: usize,
        normalisation: Option<Normalisation>,
        turns: Option<Array2<[f64; 2]>>,
    ) -> Result<Self, FitError> {
        let n = inputs.nrows();
        let wrong = |why: String| FitError::Inputs(why);
        if n == 0 || !inputs.iter().all(|v| v.is_finite()) {
            return Err(wrong(format!("{n} rows, or an entry that is NaN or infinite")));
        }
        if let Some(turns) = &turns
            && turns.dim() != (n, rank / 2)
        {
            return Err(wrong(format!("{n} rows of rank {rank}, but turns {:?}", turns.dim())));
        }
        let (u, sigma, _) = on_one_thread(|| inputs.svddc(JobSvd::Some))
            .map_err(|e| wrong(format!("no singular values: {e}")))?;
        let u = u.ok_or_else(|| wrong("no singular vectors".to_owned()))?;
        let least = NEGLIGIBLE * sigma.first().copied().unwrap_or(0.0);
        let kept = sigma.iter().filter(|&&value| value > least).count();
        if kept == 0 {
            return Err(wrong("every entry is zero".to_owned()));
        }
        let basis = u.slice(s![.., ..kept]).to_owned() * (n as f64).sqrt();
        Ok(Self { basis, queried: None, rank, linear: false, normalisation, turns })
    }

    /// The same with queries for some rows alone, those at `positions`, in their order; the queries after them are 0.
    #[must_use]
    pub fn with_queries_at(self, positions: Vec<usize>) -> Self {
        let rows = self.basis.select(Axis(0), &positions);
        Self { queried: Some((positions, rows)), ..self }
    }

    /// Whether logits are X·W_q·W_kᵀ·Xᵀ: queries and keys are neither normalised nor turned.
    pub fn is_bilinear(&self) -> bool {
        self.normalisation.is_none() && self.turns.is_none()
    }

    /// The same inputs with factors of a larger `rank`, and the point there whose logits are those of `point` here: W_q
    /// has columns of zeros added, W_k columns orthogonal to its own and as long, as far as there are any, so that descent can
    /// use them. Both are scaled for √rank. From a rank of the inputs' dimension on W_q·W_kᵀ is any matrix.
    ///
    /// # Errors
    /// `Inputs` where the rank is smaller, or where queries and keys are normalised or turned: more channels would be so
    /// in another way.
    pub fn wider(&self, point: &[f64], rank: usize) -> Result<(Self, Vec<f64>), FitError> {
        let wrong = |why: String| Err(FitError::Inputs(why));
        if !self.is_bilinear() {
            return wrong(
                "queries and keys that are normalised or turned have no other rank".to_owned(),
            );
        }
        let (from, dimension) = (self.rank, self.basis.ncols());
        if rank < from {
            return wrong(format!("rank {rank}; these have rank {from}"));
        }
        let scale = (rank as f64 / from as f64).powf(0.25);
        let mut wider = vec![0.0; 2 * dimension * rank];
        for (side, to) in wider.chunks_exact_mut(dimension * rank).enumerate() {
            let (weights, _) = self.side(point, side);
            let mut to = ArrayViewMut2::from_shape((dimension, rank), to).expect("as many numbers");
            to.slice_mut(s![.., ..from]).assign(&weights);
            if side == 1 {
                let (u, ..) = on_one_thread(|| weights.svddc(JobSvd::All))
                    .map_err(|e| FitError::Inputs(format!("no singular values: {e}")))?;
                let u = u.ok_or_else(|| FitError::Inputs("no singular vectors".to_owned()))?;
                let length = (weights.iter().map(|w| w * w).sum::<f64>() / from as f64).sqrt();
                let orthogonal = u.slice(s![.., from.min(dimension)..rank.min(dimension)]);
                let mut added = to.slice_mut(s![.., from..from + orthogonal.ncols()]);
                added.assign(&(&orthogonal * length));
            }
            to *= scale;
        }
        Ok((Self { rank, ..self.clone() }, wider))
    }

    /// What queries (`side` = 0) or keys (1) are made of.
    pub(super) fn made_of(&self, side: usize) -> &Array2<f64> {
        match &self.queried {
            Some((_, rows)) if side == 0 => rows,
            _ => &self.basis,
        }
    }

    /// Where row number `row` of queries or keys stands among the inputs.
    fn position(&self, side: usize, row: usize) -> usize {
        match &self.queried {
            Some((positions, _)) if side == 0 => positions[row],
            _ => row,
        }
    }

    /// The same inputs with W_q·W_kᵀ any matrix C, and the C of `point`: keys are the inputs in their coordinates, the
    /// rank is their dimension, and a point is C, in which logits are linear. None where queries and keys are
    /// normalised or turned.
    pub fn linear(&self, point: &[f64]) -> Option<(Self, Vec<f64>)> {
        if !self.is_bilinear() {
            return None;
        }
        let rank = self.basis.ncols();
        let [(wq, _), (wk, _)] = [0, 1].map(|side| self.side(point, side));
        let c = product(wq, wk.t()) * (rank as f64 / self.rank as f64).sqrt();
        Some((Self { rank, linear: true, ..self.clone() }, c.iter().copied().collect()))
    }

    /// C of factors of a [`linear`](Self::linear) one, however they are scaled.
    pub(super) fn matrix_of(&self, factors: &Factors) -> Option<Vec<f64>> {
        let [wq, wk] = [factors.queries(), factors.keys()];
        let weights = |side: usize, m: &Array3<f64>| -> Option<Array2<f64>> {
            let made_of = self.made_of(side);
            let rows = m.slice(s![0, ..made_of.nrows(), ..]).to_owned();
            Some(on_one_thread(|| made_of.least_squares(&rows)).ok()?.solution)
        };
        let c = product(weights(0, wq)?.view(), weights(1, wk)?.t());
        Some(c.iter().copied().collect())
    }

    /// The point whose factors are nearest to those given, in squares; none where they are normalised or linear, since
    /// then no linear problem gives it.
    pub fn nearest(&self, factors: &Factors) -> Option<Vec<f64>> {
        if self.normalisation.is_some() || self.linear {
            return None;
        }
        let mut point = Vec::with_capacity(self.length());
        for (side, m) in [factors.queries(), factors.keys()].into_iter().enumerate() {
            let made_of = self.made_of(side);
            let mut rows = m.slice(s![0, ..made_of.nrows(), ..]).to_owned();
            // Turning back keeps distances.
            for (at, mut row) in rows.rows_mut().into_iter().enumerate() {
                let row = row.as_slice_mut().expect("rows lie together");
                self.turn(self.position(side, at), row, -1.0);
            }
            let weights = on_one_thread(|| made_of.least_squares(&rows)).ok()?.solution;
            point.extend(weights.iter());
        }
        Some(point)
    }

    /// The rank of the factors.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Queries or keys of every row.
    fn n(&self) -> usize {
        self.basis.nrows()
    }

    /// Weights of queries, or of keys, without gains.
    fn matrix_length(&self) -> usize {
        self.basis.ncols() * self.rank
    }

    fn gains_length(&self) -> usize {
        if self.normalisation.is_some() { self.rank } else { 0 }
    }

    /// The numbers of a point.
    pub fn length(&self) -> usize {
        let sides = if self.linear { 1 } else { 2 };
        sides * (self.matrix_length() + self.gains_length())
    }

    /// The numbers of its factors.
    pub(super) fn factors_length(&self) -> usize {
        2 * self.n() * self.rank
    }

    /// The point whose queries and keys, before any normalisation and turn, are nearest to `queries` and
    /// `keys`, (n, d) each, in squares; they are met where they are linear in the inputs. The gains are
    /// those given.
    pub fn point(
        &self,
        queries: ArrayView2<'_, f64>,
        keys: ArrayView2<'_, f64>,
        gains: Option<[&[f64]; 2]>,
    ) -> Vec<f64> {
        let mut point = Vec::with_capacity(self.length());
        for side in [queries, keys] {
            let weights = product(self.basis.t(), side) / self.n() as f64;
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
    /// Where it has not the length of a point, or is not finite.
    pub fn at(&self, point: &[f64]) -> Factors {
        let mut x = vec![0.0; self.factors_length()];
        self.factors(point, &mut x);
        Factors::from_vector(&x, 1, self.n(), self.rank).expect("finite weights make factors")
    }

    /// Weights and gain of queries (`side` = 0) or keys (1).
    fn side<'x>(&self, x: &'x [f64], side: usize) -> (ArrayView2<'x, f64>, &'x [f64]) {
        let (matrix, gains) = (self.matrix_length(), self.gains_length());
        let weights = &x[side * matrix..(side + 1) * matrix];
        let shape = (self.basis.ncols(), self.rank);
        let weights = ArrayView2::from_shape(shape, weights).expect("a point has its length");
        // The gains come last, after one matrix or two.
        (weights, &x[x.len() - 2 * gains + side * gains..][..gains])
    }

    /// Writes the queries and keys of a point, (n, d) each.
    pub(super) fn factors(&self, x: &[f64], to: &mut [f64]) {
        let (n, d) = (self.n(), self.rank);
        for (side, to) in to.chunks_exact_mut(n * d).enumerate() {
            let made_of = self.made_of(side);
            if self.linear && side == 1 {
                to.copy_from_slice(made_of.as_slice().expect("rows lie together"));
                continue;
            }
            let (weights, gain) = self.side(x, side);
            let (to, nobodys) = to.split_at_mut(made_of.nrows() * d);
            nobodys.fill(0.0);
            let shape = (made_of.nrows(), d);
            let mut rows = ArrayViewMut2::from_shape(shape, to).expect("as many numbers");
            gemm(1.0, made_of.view(), weights, 0.0, rows.view_mut());
            for (at, mut row) in rows.rows_mut().into_iter().enumerate() {
                let row = row.as_slice_mut().expect("rows lie together");
                if let Some(normalisation) = self.normalisation {
                    let Normal { unit, .. } = normalisation.of(row);
                    row.iter_mut().zip(unit.iter().zip(gain)).for_each(|(to, (u, g))| *to = u * g);
                }
                self.turn(self.position(side, at), row, 1.0);
            }
        }
    }

    /// Writes the gradient at point x, given that of its queries and keys.
    pub(super) fn pull_back(&self, x: &[f64], of_factors: &[f64], to: &mut [f64]) {
        let (n, d) = (self.n(), self.rank);
        let (matrix, gains) = (self.matrix_length(), self.gains_length());
        let (matrices, gain_gradients) = to.split_at_mut(self.length() - 2 * gains);
        gain_gradients.fill(0.0);
        let sides = if self.linear { 1 } else { 2 };
        for (side, from) in of_factors.chunks_exact(n * d).take(sides).enumerate() {
            let made_of = self.made_of(side);
            let shape = (made_of.nrows(), d);
            let from = &from[..made_of.nrows() * d];
            let from = ArrayView2::from_shape(shape, from).expect("as many numbers");
            let (weights, gain) = self.side(x, side);
            let shape = weights.raw_dim();
            let to = &mut matrices[side * matrix..(side + 1) * matrix];
            let to = ArrayViewMut2::from_shape(shape, to).expect("r·d numbers");
            if self.normalisation.is_none() && self.turns.is_none() {
                gemm(1.0, made_of.t(), from, 0.0, to);
                continue;
            }
            let mut rows = from.to_owned();
            let projected = self.normalisation.map(|_| product(made_of.view(), weights));
            for (at, mut row) in rows.rows_mut().into_iter().enumerate() {
                let row = row.as_slice_mut().expect("rows lie together");
                self.turn(self.position(side, at), row, -1.0);
                if let (Some(normalisation), Some(projected)) = (self.normalisation, &projected) {
                    let before = projected.index_axis(Axis(0), at);
                    let normal = normalisation.of(before.as_slice().expect("rows lie together"));
                    let gain_gradient = &mut gain_gradients[side * gains..(side + 1) * gains];
                    normal.pull_back(gain, row, gain_gradient);
                }
            }
            gemm(1.0, made_of.t(), rows.view(), 0.0, to);
        }
    }

    /// Turns the pairs of channels of row `at`, forwards where `sign` is 1 and back where it is −1.
    fn turn(&self, at: usize, row: &mut [f64], sign: f64) {
        let Some(turns) = &self.turns else { return };
        for (pair, [cos, sin]) in row.chunks_exact_mut(2).zip(turns.row(at)) {
            let (x, y, sin) = (pair[0], pair[1], sign * sin);
            pair[0] = x * cos - y * sin;
            pair[1] = x * sin + y * cos;
        }
    }
}

/// A row normalised, and 1/√(variance + ε).
struct Normal {
    unit: Vec<f64>,
    scale: f64,
}

impl Normalisation {
    fn of(self, row: &[f64]) -> Normal {
        let d = row.len() as f64;
        let mean = row.iter().sum::<f64>() / d;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / d;
        let scale = 1.0 / (variance + self.epsilon).sqrt();
        Normal { unit: row.iter().map(|v| (v - mean) * scale).collect(), scale }
    }
}

impl Normal {
    /// Turns the gradient of gain ∘ unit into that of the row before; adds the gain's.
    fn pull_back(&self, gain: &[f64], gradient: &mut [f64], of_gain: &mut [f64]) {
        let d = gradient.len() as f64;
        for ((of_gain, g), u) in of_gain.iter_mut().zip(&*gradient).zip(&self.unit) {
            *of_gain += g * u;
        }
        gradient.iter_mut().zip(gain).for_each(|(g, gain)| *g *= gain);
        let mean = gradient.iter().sum::<f64>() / d;
        let along = gradient.iter().zip(&self.unit).map(|(g, u)| g * u).sum::<f64>() / d;
        for (g, u) in gradient.iter_mut().zip(&self.unit) {
            *g = (*g - mean - u * along) * self.scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::objective::{Objective, Precision};
    use crate::fit::penalty::Penalty;
    use crate::fit::problem::Problem;
    use crate::pattern::{Family, Parameters, Target, Visibility};

    fn packed() -> Target {
        let band = Parameters { window: Some(6), ..Parameters::default() };
        let family = Family::from_parameters("dirichlet-band", &band).unwrap();
        let part = |seed| family.build(20, seed, Visibility::Causal).unwrap();
        Target::packed(&[part(0), part(1)]).unwrap()
    }

    fn wave(rows: usize, columns: usize, shift: f64) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| (0.7 * (i * (j + 1)) as f64 + shift).sin())
    }

    fn turns(n: usize, pairs: usize) -> Array2<[f64; 2]> {
        Array2::from_shape_fn((n, pairs), |(i, pair)| {
            let (sin, cos) = (i as f64 * 0.3 / (1 + pair) as f64).sin_cos();
            [cos, sin]
        })
    }

    #[test]
    fn the_gradient_in_the_weights_is_that_of_differences() {
        let (n, c, d) = (40, 7, 4);
        let problem = Problem::new(packed(), "global".parse().unwrap(), d).unwrap();
        let penalty = Penalty::new(&problem, 0.4, 0.3);
        let normalisation = Some(Normalisation { epsilon: 1e-5 });
        for (normalisation, turns) in [
            (None, None),
            (None, Some(turns(n, d / 2))),
            (normalisation, None),
            (normalisation, Some(turns(n, d / 2))),
        ] {
            let tied = Tied::new(wave(n, c, 0.5).view(), d, normalisation, turns).unwrap();
            let point = tied.point(wave(n, d, 1.0).view(), wave(n, d, 2.0).view(), None);
            let mut objective = Objective::tied(&problem, Precision::F64, &tied);
            let mut gradient = vec![0.0; tied.length()];
            objective.evaluate(&point, Some(&penalty), &mut gradient);
            let mut value = |at: usize, offset: f64| {
                let mut moved = point.clone();
                moved[at] += offset;
                let mut unused = vec![0.0; moved.len()];
                objective.evaluate(&moved, Some(&penalty), &mut unused).value
            };
            for (at, &g) in gradient.iter().enumerate() {
                let difference = (value(at, 1e-5) - value(at, -1e-5)) / 2e-5;
                let off = (g - difference).abs();
                assert!(off < 1e-8, "{normalisation:?}, weight {at}: {g} against {difference}");
            }
        }
    }

    #[test]
    fn what_is_linear_in_the_inputs_is_met_by_a_point() {
        let (n, c, d) = (40, 7, 4);
        // The last column repeats the first: the inputs have one dimension less than columns.
        let mut inputs = wave(n, c, 0.0);
        let first = inputs.column(0).to_owned();
        inputs.column_mut(c - 1).assign(&first);
        let [wq, wk] = [wave(c, d, 3.0), wave(c, d, 4.0)];
        let (q, k) = (inputs.dot(&wq), inputs.dot(&wk));
        let tied = Tied::new(inputs.view(), d, None, None).unwrap();
        assert!(tied.basis.ncols() < c);
        let mut factors = vec![0.0; tied.factors_length()];
        tied.factors(&tied.point(q.view(), k.view(), None), &mut factors);
        let off = factors.iter().zip(q.iter().chain(&k)).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f64::max) < 1e-9);
    }

    /// QKᵀ/√rank at a point.
    fn logits(tied: &Tied, point: &[f64]) -> Array2<f64> {
        let factors = tied.at(point);
        let (q, k) = factors.head(0);
        q.dot(&k.t()) / (tied.rank as f64).sqrt()
    }

    #[test]
    fn a_larger_rank_begins_with_the_same_logits_and_can_use_what_was_added() {
        let (n, c, d) = (40, 7, 3);
        let tied = Tied::new(wave(n, c, 0.5).view(), d, None, None).unwrap();
        let some_rows = tied.clone().with_queries_at((0..n).step_by(2).collect());
        for tied in [tied, some_rows] {
            let point = tied.point(wave(n, d, 1.0).view(), wave(n, d, 2.0).view(), None);
            let before = logits(&tied, &point);
            for rank in [d, 5, c, c + 2] {
                let (wider, at) = tied.wider(&point, rank).unwrap();
                assert_eq!(at.len(), wider.length());
                let off = logits(&wider, &at) - &before;
                assert!(off.iter().all(|v| v.abs() < 1e-12), "rank {rank}: {off}");
                // What the new columns of keys are made of: none is another's multiple.
                let (keys, _) = wider.side(&at, 1);
                let (_, sigma, _) = keys.svddc(JobSvd::None).unwrap();
                assert!(sigma[rank.min(c) - 1] > 1e-3 * sigma[0], "rank {rank}: {sigma}");
            }
            let error = tied.wider(&point, d - 1).unwrap_err().to_string();
            assert!(error.contains("rank 2; these have rank 3"), "{error}");
        }
        let turned = Tied::new(wave(n, c, 0.5).view(), 4, None, Some(turns(n, 2))).unwrap();
        let point = turned.point(wave(n, 4, 1.0).view(), wave(n, 4, 2.0).view(), None);
        assert!(turned.wider(&point, 6).is_err());
    }

    #[test]
    fn a_matrix_of_any_rank_begins_with_the_same_logits_and_has_the_gradient_of_differences() {
        let (n, c, d) = (40, 7, 3);
        let tied = Tied::new(wave(n, c, 0.5).view(), d, None, None).unwrap();
        for tied in [tied.clone(), tied.with_queries_at((0..n).step_by(2).collect())] {
            let point = tied.point(wave(n, d, 1.0).view(), wave(n, d, 2.0).view(), None);
            let (linear, matrix) = tied.linear(&point).unwrap();
            assert_eq!((linear.rank(), linear.length(), matrix.len()), (c, c * c, c * c));
            let off = logits(&linear, &matrix) - logits(&tied, &point);
            assert!(off.iter().all(|v| v.abs() < 1e-12), "{off}");
            let again = linear.matrix_of(&linear.at(&matrix).scaled(0.25)).unwrap();
            let off = again.iter().zip(&matrix).map(|(a, b)| (a - 0.25 * b).abs());
            assert!(off.fold(0.0, f64::max) < 1e-12, "of scaled factors");
            assert!(linear.nearest(&linear.at(&matrix)).is_none());
        }
        let problem = Problem::new(packed(), "global".parse().unwrap(), c).unwrap();
        let tied = Tied::new(wave(n, c, 0.5).view(), d, None, None).unwrap();
        let point = tied.point(wave(n, d, 1.0).view(), wave(n, d, 2.0).view(), None);
        let (linear, matrix) = tied.linear(&point).unwrap();
        let penalty = Penalty::new(&problem, 0.4, 0.3);
        let mut objective = Objective::tied(&problem, Precision::F64, &linear);
        let mut gradient = vec![0.0; matrix.len()];
        objective.evaluate(&matrix, Some(&penalty), &mut gradient);
        for (at, &g) in gradient.iter().enumerate() {
            let mut value = |offset: f64| {
                let mut moved = matrix.clone();
                moved[at] += offset;
                let mut unused = vec![0.0; moved.len()];
                objective.evaluate(&moved, Some(&penalty), &mut unused).value
            };
            let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
            assert!((g - difference).abs() < 1e-8, "entry {at}: {g} against {difference}");
        }
        let turned = Tied::new(wave(n, c, 0.5).view(), 4, None, Some(turns(n, 2))).unwrap();
        assert!(turned.linear(&[]).is_none());
    }

    #[test]
    fn inputs_that_are_wrong_are_refused() {
        let nothing = Array2::zeros((5, 3));
        assert!(Tied::new(nothing.view(), 2, None, None).is_err());
        assert!(Tied::new((nothing + f64::NAN).view(), 2, None, None).is_err());
        let turned = Tied::new(wave(5, 3, 0.0).view(), 4, None, Some(turns(5, 1)));
        assert!(turned.unwrap_err().to_string().contains("turns (5, 1)"));
    }
}
