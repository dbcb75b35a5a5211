//! The rows of a study of singular values.

use crate::experiments::target_columns::TargetColumns;
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row, record};
use crate::targets::Visibility;

record! {
    /// Identifies a cell of a study of singular values.
    pub struct SpectrumKey {
        /// the target
        of: TargetColumns,
        /// the target in words
        target: String,
        /// the sequence length
        #[range = Counted]
        n: usize,
        /// the seed of the target
        seed: u64,
        /// the mask: causal or bidirectional
        visibility: Visibility,
        /// ε, the error that the logits reach
        #[unit = "nats"]
        #[range = Positive]
        tolerance: f64,
    }
}

record! {
    /// One singular value of a target's attention, or of the logits with no rank limit that reach it.
    pub struct SpectrumMeasurement {
        /// density: entries above 0, as a share of allowed pairs
        density: f64,
        /// mean entropy of the rows, −Σ a ln a
        #[unit = "nats"]
        mean_row_entropy_nats: f64,
        /// L⁰(tolerance), the full-rank minimum of max |logit|
        #[unit = "nats"]
        floor_max_abs_logit: Option<f64>,
        /// `attention` or `logits`
        matrix: String,
        /// exp of the entropy of σ/Σσ (Roy and Vetterli 2007)
        effective_rank: f64,
        /// number of singular values above rounding errors
        numerical_rank: usize,
        /// the index of the singular value, 1 for the largest
        #[range = Counted]
        index: usize,
        /// σ, the singular value
        singular_value: f64,
    }
}

/// Names of the matrices whose singular values are measured.
pub const ATTENTION: &str = "attention";
/// See [`ATTENTION`].
pub const LOGITS: &str = "logits";

impl Measurement for SpectrumMeasurement {
    type Key = SpectrumKey;

    const NAME: &'static str = "spectrum";
    const VERSION: u32 = 4;

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (found, n) = (&row.found, row.of.n as f64);
        let is_of_logits = found.matrix == LOGITS;
        check.holds(is_of_logits || found.matrix == ATTENTION, || {
            format!("matrix is {:?}, not {ATTENTION} or {LOGITS}", found.matrix)
        });
        check.within("density", found.density, f64::MIN_POSITIVE, 1.0);
        check.within("mean_row_entropy_nats", found.mean_row_entropy_nats, 0.0, n.ln() + ROUNDING);
        check.within("effective_rank", found.effective_rank, 1.0 - ROUNDING, n + ROUNDING);
        // Uniform attention has logits of 0, whose rank is 0.
        check.within("numerical_rank", found.numerical_rank as f64, 0.0, n);
        check.within("index", found.index as f64, 1.0, n);
        check.at_least("singular_value", found.singular_value, 0.0);
        if let Some(floor) = found.floor_max_abs_logit {
            check.at_least("floor_max_abs_logit", floor, 0.0);
        }
        check.holds(found.floor_max_abs_logit.is_some() || !is_of_logits, || {
            "nothing in column floor_max_abs_logit, which rows of logits have".to_owned()
        });
        // Rows sum to one: A·1 = 1, so ‖A‖ ≥ 1.
        if found.index == 1 && !is_of_logits {
            check.at_most(
                "the largest singular value is under 1",
                1.0,
                found.singular_value,
                ROUNDING,
            );
        }
    }

    fn check_cell(rows: &[Row<Self>], check: &mut InvariantChecker) {
        for pair in rows.windows(2) {
            let [one, next] = [&pair[0].found, &pair[1].found];
            let same = (one.density, one.mean_row_entropy_nats, one.floor_max_abs_logit)
                == (next.density, next.mean_row_entropy_nats, next.floor_max_abs_logit);
            check.holds(same, || "rows of one target differ in what it is".to_owned());
            if one.matrix == next.matrix {
                let same = (one.effective_rank, one.numerical_rank)
                    == (next.effective_rank, next.numerical_rank);
                check.holds(same, || format!("rows of one {} differ in its rank", one.matrix));
                check.holds(one.index < next.index, || {
                    format!("index {} stands before {}", one.index, next.index)
                });
                let (larger, smaller) = (one.singular_value, next.singular_value);
                check.at_most("singular values rise", smaller, larger, ROUNDING);
            }
        }
        for matrix in [ATTENTION, LOGITS] {
            let of_matrix = || rows.iter().map(|row| &row.found).filter(|f| f.matrix == matrix);
            let (Some(first), Some(last)) = (of_matrix().next(), of_matrix().next_back()) else {
                continue;
            };
            let first = first.index as f64;
            check.within(&format!("the first index of {matrix}"), first, 1.0, 1.0);
            let (last, n) = (last.index as f64, rows[0].of.n as f64);
            check.within(&format!("the last index of {matrix}"), last, n, n);
            // σ up to numerical_rank is above 0; later values are rounding errors.
            let of_rank = of_matrix().all(|f| f.index > f.numerical_rank || f.singular_value > 0.0);
            check.holds(of_rank, || format!("a singular value of {matrix} within its rank is 0"));
        }
    }
}
