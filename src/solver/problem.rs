//! One fitting problem: a target, a rank, and the heads that share it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::factors::Factors;
use crate::system::{NoMemory, check_memory};
use crate::targets::{HeadKind, Layout, Target};

/// The largest cap that a search from nothing tries, in nats. Logits of ±128 are e^{256} between two probabilities, far
/// past what a float32 softmax tells apart, so a target that needs more cannot be held at all. Trained heads may have
/// larger ones, since a shift of a row's logits costs nothing: a search that is given factors goes up to theirs.
pub const LARGEST_CAP: f64 = 128.0;

/// Why a fit cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// A rank of zero.
    #[error("rank must be at least 1")]
    RankZero,
    /// A head whose rows see no contiguous range of columns.
    #[error(
        "layout {0} has a two-dimensional window, which a fit cannot use; give global or local:W"
    )]
    NotContiguous(Layout),
    /// A cap that bounds nothing or everything.
    #[error("logit bound {0} must be a finite number above 0")]
    Cap(f64),
    /// A tolerance that no distribution or every one meets.
    #[error("tolerance {0} must be a finite number above 0")]
    Tolerance(f64),
    /// No caps given.
    #[error("no logit bound given; give at least one, such as 8")]
    NoCaps,
    /// No starts given.
    #[error("starts must be at least 1")]
    NoStarts,
    /// An arithmetic that there is not.
    #[error("unknown precision {0:?}; give f32 or f64")]
    Precision(String),
    /// A rank whose factors the machine's memory cannot hold.
    #[error(
        "queries and keys of rank {rank} need {room}; lower the rank, the number of heads or n"
    )]
    RankTooLarge {
        /// The rank.
        rank: usize,
        /// How much they take, and what there is.
        room: NoMemory,
    },
    /// More factors at once than the machine's memory can hold.
    #[error(
        "{starts} starts for each of {caps} goals need at least {room}; lower the starts, goals, rank or \
         threads"
    )]
    SearchTooLarge {
        /// Starts.
        starts: usize,
        /// Caps, or the one tolerance.
        caps: usize,
        /// How much they take, and what there is.
        room: NoMemory,
    },
    /// Inputs that no factors can be tied to.
    #[error("the inputs of queries and keys: {0}")]
    Inputs(String),
    /// Factors of another problem.
    #[error("factors have shape {found:?} (heads, n, rank); this problem needs {wanted:?}")]
    OtherFactors {
        /// Their shape.
        found: (usize, usize, usize),
        /// The problem's.
        wanted: (usize, usize, usize),
    },
    /// Factors that are not what the problem needs.
    #[error(transparent)]
    Factors(#[from] super::factors::FactorsError),
}

/// A target to be represented by H heads of rank d: minimise kl_nats(A ‖ Σₕ πₕ softmax(QₕKₕᵀ/√d)).
#[derive(Clone, Debug)]
pub struct Problem {
    target: Target,
    layout: Layout,
    rank: usize,
    /// L⁰(ε) where it was asked for, by the bits of ε: a search asks again and again.
    floors: Arc<Mutex<HashMap<u64, Option<f64>>>>,
}

impl Problem {
    /// Sets the problem up.
    ///
    /// ```
    /// use rank_study::solver::Problem;
    /// use rank_study::targets::{Family, Visibility};
    ///
    /// let target = Family::PreviousToken { k: 1 }.build(8, 0, Visibility::Causal)?;
    /// let problem = Problem::new(target, "local:2+2xglobal".parse()?, 4)?;
    /// assert_eq!((problem.n(), problem.heads(), problem.rank()), (8, 3, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `RankZero`, `NotContiguous`, `RankTooLarge`.
    pub fn new(target: Target, layout: Layout, rank: usize) -> Result<Self, FitError> {
        if rank == 0 {
            return Err(FitError::RankZero);
        }
        if layout.heads().iter().any(|kind| matches!(kind, HeadKind::Patch(_))) {
            return Err(FitError::NotContiguous(layout));
        }
        let problem = Self { target, layout, rank, floors: Arc::default() };
        check_memory(problem.bytes_of_factors())
            .map_err(|room| FitError::RankTooLarge { rank, room })?;
        Ok(problem)
    }

    /// What queries and keys take of memory, in float64.
    pub(super) fn bytes_of_factors(&self) -> f64 {
        2.0 * self.heads() as f64 * self.n() as f64 * self.rank as f64 * size_of::<f64>() as f64
    }

    /// The target A.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The heads.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The head dimension d.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The sequence length.
    pub fn n(&self) -> usize {
        self.target.n()
    }

    /// The rows that are fitted: n, unless the target holds a sample of them. Factors have a query for each column all
    /// the same; those after the first of this number are nobody's.
    pub fn rows(&self) -> usize {
        self.target.rows()
    }

    /// L⁰ at ε = `kl_nats`, kept once it was `found`.
    pub(super) fn floor(&self, kl_nats: f64, found: impl FnOnce() -> Option<f64>) -> Option<f64> {
        let mut floors = self.floors.lock().unwrap_or_else(PoisonError::into_inner);
        *floors.entry(kl_nats.to_bits()).or_insert_with(found)
    }

    /// The number of heads H.
    pub fn heads(&self) -> usize {
        self.layout.heads().len()
    }

    /// The columns that `row` sees through a head of this kind.
    pub(super) fn columns(&self, kind: HeadKind, row: usize) -> Range<usize> {
        self.target.seen(kind, row)
    }

    /// The columns that `row` sees through head number `head`.
    pub(super) fn seen(&self, head: usize, row: usize) -> Range<usize> {
        self.columns(self.layout.heads()[head], row)
    }

    /// The columns that any of `rows`, at least one, sees through head number `head`: what rows see
    /// begins and ends no earlier than what the rows before them do.
    pub(super) fn seen_by_any(&self, head: usize, rows: &Range<usize>) -> Range<usize> {
        self.seen(head, rows.start).start..self.seen(head, rows.end - 1).end
    }

    /// Checks that factors have this problem's heads, n and rank.
    ///
    /// # Errors
    /// `OtherFactors`.
    pub fn check_factors(&self, factors: &Factors) -> Result<(), FitError> {
        let (found, wanted) = (factors.queries().dim(), (self.heads(), self.n(), self.rank));
        if found == wanted { Ok(()) } else { Err(FitError::OtherFactors { found, wanted }) }
    }

    /// Whether every entry of the target is seen by some head; if not, kl_nats is infinite.
    pub fn covers_target(&self) -> bool {
        (0..self.rows()).all(|row| {
            self.target.row(row).0.iter().all(|&column| {
                self.layout
                    .heads()
                    .iter()
                    .any(|&kind| self.columns(kind, row).contains(&(column as usize)))
            })
        })
    }
}

/// Checks a cap on the logits.
///
/// # Errors
/// `Cap`.
pub fn check_cap(cap: f64) -> Result<(), FitError> {
    if cap.is_finite() && cap > 0.0 { Ok(()) } else { Err(FitError::Cap(cap)) }
}

/// Checks an error to be reached.
///
/// # Errors
/// `Tolerance`.
pub fn check_tolerance(tolerance: f64) -> Result<(), FitError> {
    if tolerance.is_finite() && tolerance > 0.0 {
        Ok(())
    } else {
        Err(FitError::Tolerance(tolerance))
    }
}
