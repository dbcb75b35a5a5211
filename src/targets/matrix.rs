//! The target attention matrix: row-stochastic, sparse, checked when it is built.

use std::ops::Range;

use ndarray::Array2;

use super::{HeadKind, TargetError, Visibility};

/// Largest deviation of a row sum from 1 that is accepted (float32 softmax rows are off by about 1e-6).
pub(super) const ROW_SUM_TOLERANCE: f64 = 1e-5;

/// A row-stochastic n × n attention matrix A under a mask, stored sparse, row by row.
///
/// It may hold several sequences of equal length one after another, which do not attend to each other. It may also hold only
/// some of the rows ([`Target::from_some_rows`]).
///
/// Invariants: every stored entry is a finite probability above 0, every row sums to 1 up to float64 rounding, columns ascend
/// within a row, and the mask allows every entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    visibility: Visibility,
    /// Number of columns, over all sequences.
    n: usize,
    /// Number of columns of one sequence.
    sequence: usize,
    /// Position of each stored row in the full matrix; `None` if all rows are stored.
    positions: Option<Vec<u32>>,
    /// Start of each row in `columns` and `probabilities`; one offset more than there are rows.
    offsets: Vec<usize>,
    columns: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Target {
    /// Builds a target from sparse rows of (column, probability), in any column order.
    ///
    /// Entries that are exactly zero are dropped. A row whose sum is within 1e-5 of 1 is divided by its sum, so that the stored
    /// row sums to 1 up to rounding.
    ///
    /// ```
    /// use rank_study::targets::{Target, TargetError, Visibility};
    ///
    /// let rows = vec![vec![(0, 1.0)], vec![(0, 0.25), (1, 0.75)]];
    /// assert_eq!(Target::from_rows(rows, Visibility::Causal)?.dense()[[1, 0]], 0.25);
    ///
    /// let ahead = Target::from_rows(vec![vec![(1, 1.0)], vec![(1, 1.0)]], Visibility::Causal);
    /// assert!(matches!(ahead, Err(TargetError::Mask(_))));
    /// # Ok::<(), TargetError>(())
    /// ```
    ///
    /// # Errors
    /// No rows, or the first bad row: a column twice or out of range, an entry that is no probability or that the mask
    /// forbids, a sum other than 1.
    pub fn from_rows(
        rows: Vec<Vec<(usize, f64)>>,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        let n = rows.len();
        Self::build(n, None, rows, visibility)
    }

    /// Builds a target from some of the rows of an n × n matrix. Each row comes with its position, and positions ascend. A row
    /// may have entries in every column that the mask allows. The max |logit| that these rows need is no larger than that of
    /// all rows.
    ///
    /// # Errors
    /// As [`Target::from_rows`].
    ///
    /// # Panics
    /// If the positions do not ascend or one is n or more.
    pub fn from_some_rows(
        n: usize,
        rows: Vec<(usize, Vec<(usize, f64)>)>,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        let (positions, rows): (Vec<usize>, Vec<_>) = rows.into_iter().unzip();
        assert!(positions.is_sorted_by(|a, b| a < b) && positions.iter().all(|&at| at < n));
        let positions = positions.into_iter().map(|at| at as u32).collect();
        Self::build(n, Some(positions), rows, visibility)
    }

    fn build(
        n: usize,
        positions: Option<Vec<u32>>,
        rows: Vec<Vec<(usize, f64)>>,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        if rows.is_empty() {
            return Err(TargetError::empty());
        }
        let mut target = Self {
            visibility,
            n,
            sequence: n,
            positions,
            offsets: Vec::with_capacity(rows.len() + 1),
            columns: Vec::new(),
            probabilities: Vec::new(),
        };
        target.offsets.push(0);
        for (place, mut entries) in rows.into_iter().enumerate() {
            let row = target.position(place);
            check_row(row, &entries, n, visibility)?;
            entries.retain(|&(_, p)| p > 0.0);
            entries.sort_unstable_by_key(|&(column, _)| column);
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let column = pair[0].0;
                return Err(TargetError::Other(format!(
                    "target row {row} lists column {column} (from 0) twice; add the two entries"
                )));
            }
            let sum: f64 = entries.iter().map(|&(_, p)| p).sum();
            if (sum - 1.0).abs() > ROW_SUM_TOLERANCE {
                return Err(TargetError::Other(format!(
                    "target row {row} (from 0) sums to {sum}; every row must sum to 1 within 1e-5, so divide it \
                     by its sum"
                )));
            }
            for (column, p) in entries {
                target.columns.push(column as u32);
                target.probabilities.push(p / sum);
            }
            target.offsets.push(target.columns.len());
        }
        Ok(target)
    }

    /// Packs sequences one after another: their rows and columns follow those of the sequences before. A fit then has one
    /// error, the mean over all rows, and one logit bound for all sequences.
    ///
    /// # Errors
    /// No sequences, or some that differ in length or mask.
    pub fn packed(parts: &[Self]) -> Result<Self, TargetError> {
        let Some(first) = parts.first() else { return Err(TargetError::empty()) };
        let sampled = parts.iter().any(|part| part.positions.is_some());
        let mut all = Self {
            visibility: first.visibility,
            n: 0,
            sequence: first.sequence,
            positions: sampled.then(Vec::new),
            offsets: vec![0],
            columns: Vec::new(),
            probabilities: Vec::new(),
        };
        for part in parts {
            if (part.sequence, part.visibility) != (all.sequence, all.visibility) {
                return Err(TargetError::Other(format!(
                    "sequences of {} and {} rows, or with different masks, cannot be packed; make them alike",
                    all.sequence, part.sequence
                )));
            }
            let (before, entries) = (all.n, all.nonzeros());
            all.n += part.n;
            if let Some(positions) = &mut all.positions {
                positions.extend((0..part.rows()).map(|row| (before + part.position(row)) as u32));
            }
            all.offsets.extend(part.offsets[1..].iter().map(|offset| entries + offset));
            all.columns.extend(part.columns.iter().map(|&column| before as u32 + column));
            all.probabilities.extend(&part.probabilities);
        }
        Ok(all)
    }

    /// Position in the full matrix of stored row `row`.
    pub fn position(&self, row: usize) -> usize {
        self.positions.as_ref().map_or(row, |positions| positions[row] as usize)
    }

    /// The number of stored rows. It equals the number of columns unless rows were sampled.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of columns of one sequence.
    pub fn sequence(&self) -> usize {
        self.sequence
    }

    /// The columns to which stored row `row` may attend through a head of this kind.
    pub fn seen(&self, kind: HeadKind, row: usize) -> Range<usize> {
        let at = self.position(row);
        let first = at / self.sequence * self.sequence;
        let seen = kind.columns(at - first, self.sequence, self.visibility);
        first + seen.start..first + seen.end
    }

    /// The number of columns, and of rows if none is left out.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The mask under which the target was checked.
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Columns of row `row`, ascending, and their probabilities, all above 0.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let stored = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[stored.clone()], &self.probabilities[stored])
    }

    /// The number of entries above 0.
    pub fn nonzeros(&self) -> usize {
        self.columns.len()
    }

    /// The full n × n matrix including zeros. It is for files and spectra; solvers use the sparse rows.
    pub fn dense(&self) -> Array2<f64> {
        let mut dense = Array2::zeros((self.n(), self.n()));
        for row in 0..self.rows() {
            let (columns, probabilities) = self.row(row);
            for (&column, &p) in columns.iter().zip(probabilities) {
                dense[[self.position(row), column as usize]] = p;
            }
        }
        dense
    }

    /// The sum of Σⱼ aᵢⱼ log aᵢⱼ over rows divided by the number of rows: minus the mean row entropy, in nats.
    pub fn mean_log_likelihood_of_itself(&self) -> f64 {
        self.probabilities.iter().map(|p| p * p.ln()).sum::<f64>() / self.rows() as f64
    }
}

fn check_row(
    row: usize,
    entries: &[(usize, f64)],
    n: usize,
    visibility: Visibility,
) -> Result<(), TargetError> {
    let visible = visibility.columns(row, n);
    for &(column, value) in entries {
        if column >= n {
            return Err(TargetError::not_square(n, column + 1));
        }
        if !value.is_finite() || value < 0.0 {
            return Err(TargetError::Other(format!(
                "target row {row}, column {column} (from 0) is {value}; every entry must be a finite \
                 probability ≥ 0, and 0 where it is masked; for logits give --softmax"
            )));
        }
        if value > 0.0 && !visible.contains(&column) {
            return Err(TargetError::Mask(format!(
                "target row {row}, column {column} (from 0) is {value}, which the {visibility} mask forbids; \
                 set it to 0, or use the other mask"
            )));
        }
    }
    Ok(())
}
