//! The target attention matrix: row-stochastic, sparse, checked once.

use std::ops::Range;

use ndarray::Array2;

use super::{HeadKind, TargetError, Visibility};

/// How far from 1 a row of a file may sum (float32 softmax rows are off by about 1e-6).
const ROW_SUM_TOLERANCE: f64 = 1e-5;

/// A row-stochastic n × n attention matrix A on a visible set, stored sparse, row by row.
///
/// It may be several sequences of equal length one after another, of which none sees the others.
///
/// A `Target` in hand holds: every stored entry is a finite probability above 0, every row sums to
/// 1 to float64 rounding, columns ascend within a row, and no entry lies outside the visibility.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    visibility: Visibility,
    /// Rows of one sequence.
    sequence: usize,
    /// Where each row starts in `columns` and `probabilities`; n + 1 offsets.
    offsets: Vec<usize>,
    columns: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Target {
    /// Builds a target from sparse rows of (column, probability), in any column order.
    ///
    /// Entries that are exactly zero are dropped. A row whose sum is within 1e-5 of 1 is divided by
    /// its sum, so that what is stored sums to 1 to rounding.
    ///
    /// # Errors
    /// `Empty`, `NotSquare`, `NotAProbability`, `OutsideVisibility`, `RepeatedColumn` or `RowSum`,
    /// naming the first bad row.
    pub fn from_rows(
        rows: Vec<Vec<(usize, f64)>>,
        visibility: Visibility,
    ) -> Result<Self, TargetError> {
        let n = rows.len();
        if n == 0 {
            return Err(TargetError::Empty);
        }
        let mut target = Self {
            visibility,
            sequence: n,
            offsets: Vec::with_capacity(n + 1),
            columns: Vec::new(),
            probabilities: Vec::new(),
        };
        target.offsets.push(0);
        for (row, mut entries) in rows.into_iter().enumerate() {
            check_row(row, &entries, n, visibility)?;
            entries.retain(|&(_, p)| p > 0.0);
            entries.sort_unstable_by_key(|&(column, _)| column);
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(TargetError::RepeatedColumn { row, column: pair[0].0 });
            }
            let sum: f64 = entries.iter().map(|&(_, p)| p).sum();
            if (sum - 1.0).abs() > ROW_SUM_TOLERANCE {
                return Err(TargetError::RowSum { row, sum });
            }
            for (column, p) in entries {
                target.columns.push(column as u32);
                target.probabilities.push(p / sum);
            }
            target.offsets.push(target.columns.len());
        }
        Ok(target)
    }

    /// Sequences one after another, the rows and columns of each after those of the one before: what is fitted
    /// to them is fitted to all, at one error (the mean over all rows) and one bound on the logits.
    ///
    /// # Errors
    /// `Empty` where there is none, `Unlike` where they differ in length or visibility.
    pub fn packed(parts: &[Self]) -> Result<Self, TargetError> {
        let Some(first) = parts.first() else { return Err(TargetError::Empty) };
        let mut all = Self {
            visibility: first.visibility,
            sequence: first.sequence,
            offsets: vec![0],
            columns: Vec::new(),
            probabilities: Vec::new(),
        };
        for part in parts {
            if (part.sequence, part.visibility) != (all.sequence, all.visibility) {
                return Err(TargetError::Unlike { lengths: (all.sequence, part.sequence) });
            }
            let (rows, entries) = (all.n(), all.nonzeros());
            all.offsets.extend(part.offsets[1..].iter().map(|offset| entries + offset));
            all.columns.extend(part.columns.iter().map(|&column| rows as u32 + column));
            all.probabilities.extend(&part.probabilities);
        }
        Ok(all)
    }

    /// The rows of one sequence.
    pub fn sequence(&self) -> usize {
        self.sequence
    }

    /// The columns that `row` sees through a head of this kind.
    pub fn seen(&self, kind: HeadKind, row: usize) -> Range<usize> {
        let first = row / self.sequence * self.sequence;
        let seen = kind.columns(row - first, self.sequence, self.visibility);
        first + seen.start..first + seen.end
    }

    /// The number of rows, and of columns.
    pub fn n(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The pairs that the rows may put weight on.
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// Row `row` as its columns, ascending, and their probabilities, all above 0.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let stored = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[stored.clone()], &self.probabilities[stored])
    }

    /// The number of entries above 0.
    pub fn nonzeros(&self) -> usize {
        self.columns.len()
    }

    /// The matrix in full, n × n, zeros included: for files and spectra, never for a solver.
    pub fn dense(&self) -> Array2<f64> {
        let mut dense = Array2::zeros((self.n(), self.n()));
        for row in 0..self.n() {
            let (columns, probabilities) = self.row(row);
            for (&column, &p) in columns.iter().zip(probabilities) {
                dense[[row, column as usize]] = p;
            }
        }
        dense
    }

    /// Σ over rows of Σⱼ aᵢⱼ log aᵢⱼ, divided by n: minus the mean row entropy, in nats.
    pub fn mean_log_likelihood_of_itself(&self) -> f64 {
        self.probabilities.iter().map(|p| p * p.ln()).sum::<f64>() / self.n() as f64
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
            return Err(TargetError::NotSquare { rows: n, columns: column + 1 });
        }
        if !value.is_finite() || value < 0.0 {
            return Err(TargetError::NotAProbability { row, column, value });
        }
        if value > 0.0 && !visible.contains(&column) {
            return Err(TargetError::OutsideVisibility { row, column, value, visibility });
        }
    }
    Ok(())
}
