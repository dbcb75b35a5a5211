//! The inputs that a head's queries and keys are made of.

use std::sync::{Arc, OnceLock};

use ndarray::{Array2, ArrayView2, Axis, concatenate, s};
use ndarray_linalg::{JobSvd, LeastSquaresSvd, SVDDC};

use crate::numerics::blas::on_one_thread;
use crate::solver::factors::Factors;
use crate::solver::problem::FitError;

/// Singular values of the inputs under this share of the largest are taken for none.
const NEGLIGIBLE: f64 = 1e-6;

/// Inputs in coordinates in which their columns are orthogonal and of length √n, so that descent is not slowed by
/// inputs of very different sizes.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    /// (n, r): an orthogonal basis of the columns.
    basis: Arc<Array2<f64>>,
    /// The rows of it that have queries, where not all have one, and where they stand.
    queried: Option<(Vec<usize>, Arc<Array2<f64>>)>,
    /// The same in float32, once it was asked for.
    single: Arc<OnceLock<Singles>>,
}

/// What keys are made of, and queries where that is something else, in float32.
type Singles = (Array2<f32>, Option<Array2<f32>>);

impl Inputs {
    /// Takes inputs of shape (n, C).
    pub fn new(inputs: ArrayView2<'_, f64>) -> Result<Self, FitError> {
        let n = inputs.nrows();
        let wrong = |why: String| FitError::Inputs(why);
        if n == 0 || !inputs.iter().all(|v| v.is_finite()) {
            return Err(wrong(format!("{n} rows, or an entry that is NaN or infinite")));
        }
        let (u, sigma, _) = on_one_thread(|| inputs.svddc(JobSvd::Some))
            .map_err(|e| wrong(format!("no singular values: {e}")))?;
        let u = u.ok_or_else(|| wrong("no singular vectors".to_owned()))?;
        let least = NEGLIGIBLE * sigma.first().copied().unwrap_or(0.0);
        let kept = sigma.iter().filter(|&&value| value > least).count();
        if kept == 0 {
            return Err(wrong("every entry is zero".to_owned()));
        }
        let basis = &u.slice(s![.., ..kept]) * (n as f64).sqrt();
        // Factors are vectors, row by row.
        let basis = Arc::new(basis.as_standard_layout().into_owned());
        Ok(Self { basis, queried: None, single: Arc::default() })
    }

    /// These inputs with more `columns`, (n, k), beside them, each made as long as the basis' own: what all of them
    /// together span.
    pub fn beside(&self, columns: ArrayView2<'_, f64>) -> Result<Self, FitError> {
        let n = self.n();
        if columns.nrows() != n {
            let rows = columns.nrows();
            return Err(FitError::Inputs(format!("{n} rows, but columns of {rows} beside them")));
        }
        let mut columns = columns.to_owned();
        for mut column in columns.columns_mut() {
            let length = column.dot(&column).sqrt();
            if length > 0.0 {
                column *= (n as f64).sqrt() / length;
            }
        }
        let all = concatenate(Axis(1), &[self.basis.view(), columns.view()])
            .map_err(|e| FitError::Inputs(e.to_string()))?;
        let wider = Self::new(all.view())?;
        Ok(match &self.queried {
            None => wider,
            Some((positions, _)) => wider.with_queries_at(positions.clone()),
        })
    }

    /// The same with queries for some rows alone, those at `positions`, in their order.
    pub fn with_queries_at(self, positions: Vec<usize>) -> Self {
        let rows = Arc::new(self.basis.select(Axis(0), &positions));
        Self { queried: Some((positions, rows)), single: Arc::default(), ..self }
    }

    /// Queries or keys of every row, whether they are made or 0.
    pub fn n(&self) -> usize {
        self.basis.nrows()
    }

    /// How many coordinates an input has.
    pub fn dimension(&self) -> usize {
        self.basis.ncols()
    }

    /// What queries (`side` = 0) or keys (1) are made of.
    pub fn of_side(&self, side: usize) -> &Array2<f64> {
        match &self.queried {
            Some((_, rows)) if side == 0 => rows,
            _ => &self.basis,
        }
    }

    /// The same in float32.
    pub fn in_single(&self, side: usize) -> &Array2<f32> {
        let single = |m: &Arc<Array2<f64>>| m.mapv(|v| v as f32);
        let (all, queried) = self.single.get_or_init(|| {
            (single(&self.basis), self.queried.as_ref().map(|(_, rows)| single(rows)))
        });
        queried.as_ref().filter(|_| side == 0).unwrap_or(all)
    }

    /// Where row number `row` of queries or keys stands among the inputs.
    pub fn position(&self, side: usize, row: usize) -> usize {
        match &self.queried {
            Some((positions, _)) if side == 0 => positions[row],
            _ => row,
        }
    }

    /// The queries or keys that are made, of each row its own.
    pub fn rows_of(&self, side: usize, factors: &Factors) -> Array2<f64> {
        let m = [factors.queries(), factors.keys()][side];
        m.slice(s![0, ..self.of_side(side).nrows(), ..]).to_owned()
    }

    /// The W with which inputs·W is nearest to the `rows` of queries or keys, in squares; none where LAPACK fails.
    pub fn nearest_weights(&self, side: usize, rows: &Array2<f64>) -> Option<Array2<f64>> {
        on_one_thread(|| self.of_side(side).least_squares(rows)).ok().map(|found| found.solution)
    }
}
