//! The inputs from which a head's queries and keys are projected.

use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayView2, Axis, s};
use ndarray_linalg::{JobSvd, LeastSquaresSvd, SVDDC};

use crate::numerics::blas::on_one_thread;
use crate::solver::error::FitError;
use crate::solver::factors::Factors;

/// Singular values of the inputs below this share of the largest count as 0.
const NEGLIGIBLE: f64 = 1e-6;

/// Inputs in coordinates in which their columns are orthogonal and of length √n, so that inputs of very different sizes do not
/// slow the descent.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// (n, r): an orthogonal basis of the columns.
    basis: Arc<Array2<f64>>,
    /// The rows that have queries and their positions; `None` if all rows have queries.
    queried: Option<(Vec<usize>, Arc<Array2<f64>>)>,
    /// The inputs in float32, computed at first use.
    single: Arc<OnceLock<Singles>>,
}

/// The inputs of the keys, and those of the queries if they differ, in float32.
type Singles = (Array2<f32>, Option<Array2<f32>>);

impl Inputs {
    /// Decomposes inputs of shape (n, C).
    ///
    /// # Errors
    /// They are not finite, are all zero or cannot be decomposed.
    pub fn new(inputs: ArrayView2<'_, f64>) -> Result<Self, FitError> {
        let n = inputs.nrows();
        if n == 0 || !inputs.iter().all(|v| v.is_finite()) {
            let why = format!("{n} rows, or an entry that is NaN or infinite");
            return Err(FitError::inputs(why));
        }
        let (u, sigma, _) = on_one_thread(|| inputs.svddc(JobSvd::Some))
            .map_err(|e| FitError::inputs(format!("no singular values: {e}")))?;
        let u = u.ok_or_else(|| FitError::inputs("no singular vectors"))?;
        let least = NEGLIGIBLE * sigma.first().copied().unwrap_or(0.0);
        let kept = sigma.iter().filter(|&&value| value > least).count();
        if kept == 0 {
            return Err(FitError::inputs("every entry is zero"));
        }
        let basis = &u.slice(s![.., ..kept]) * (n as f64).sqrt();
        // Stored row by row, as factors are.
        let basis = Arc::new(basis.as_standard_layout().into_owned());
        Ok(Self { basis, queried: None, single: Arc::default() })
    }

    /// The same inputs with queries only for the rows at `positions`, in this order.
    pub(super) fn with_queries_at(self, positions: Vec<usize>) -> Self {
        let rows = Arc::new(self.basis.select(Axis(0), &positions));
        Self { queried: Some((positions, rows)), single: Arc::default(), ..self }
    }

    /// The number of rows, with and without queries.
    pub(super) fn n(&self) -> usize {
        self.basis.nrows()
    }

    /// The rank of the inputs: the number of coordinates of an input.
    pub(super) fn dimension(&self) -> usize {
        self.basis.ncols()
    }

    /// The inputs of queries and of keys.
    pub(super) fn of_sides(&self) -> [&Array2<f64>; 2] {
        [self.queried.as_ref().map_or(&*self.basis, |(_, rows)| rows), &self.basis]
    }

    /// The inputs of queries and of keys in float32.
    pub(super) fn in_single(&self) -> [&Array2<f32>; 2] {
        let single = |m: &Arc<Array2<f64>>| m.mapv(|v| v as f32);
        let (all, queried) = self.single.get_or_init(|| {
            (single(&self.basis), self.queried.as_ref().map(|(_, rows)| single(rows)))
        });
        [queried.as_ref().unwrap_or(all), all]
    }

    /// The position among the inputs of row number `row` of queries or keys.
    pub(super) fn position(&self, side: usize, row: usize) -> usize {
        match &self.queried {
            Some((positions, _)) if side == 0 => positions[row],
            _ => row,
        }
    }

    /// The queries or keys of the rows that have inputs.
    pub(super) fn rows_of(&self, side: usize, factors: &Factors) -> Array2<f64> {
        let m = [factors.queries(), factors.keys()][side];
        m.slice(s![0, ..self.of_sides()[side].nrows(), ..]).to_owned()
    }

    /// The W for which inputs·W is nearest to the `rows` of queries or keys, in squares; `None` if LAPACK fails.
    pub(super) fn nearest_weights(&self, side: usize, rows: &Array2<f64>) -> Option<Array2<f64>> {
        on_one_thread(|| self.of_sides()[side].least_squares(rows)).ok().map(|found| found.solution)
    }
}
