//! The best of the lower bounds at one error.

use std::collections::HashMap;

use super::lift::Lift;
use crate::solver::floor::Floor;
use crate::solver::problem::Problem;

/// Above this n no singular values are computed, and only the floor remains.
const LARGEST_DECOMPOSED: usize = 1024;

/// The argument that gave a lower bound.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::EnumString,
)]
#[strum(serialize_all = "kebab-case")]
pub enum BoundKind {
    /// L⁰(ε): the smallest max |logit| of logits of *any* rank.
    Floor,
    /// √P is nearly of rank C(d + k, k), and √A is not (`lift.rs`).
    Lift,
}

impl BoundKind {
    /// The name in table rows.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Lower bounds on all factors of the problem's rank with kl_nats ≤ ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowerBound {
    /// L⁰(ε), the smallest max |logit| at any rank.
    pub floor: f64,
    /// Lower bound on max_abs_logit. The lift proves at most [`LARGEST_CAP`](crate::solver::LARGEST_CAP): a bound of
    /// this value or more proves that no logits up to it reach ε.
    pub max_abs_logit: f64,
    /// The argument that gave it.
    pub by: BoundKind,
}

/// The lower bounds of one problem, with everything that can be computed once for every ε.
///
/// The floor applies to any layout, the lift to one head of either kind with n up to 1024.
#[derive(Debug)]
pub struct LowerBounds<'p> {
    floor: Floor<'p>,
    /// E⁰(L) by the bits of L: a frontier's rows are written again as they improve.
    known_floors: HashMap<u64, f64>,
    lift: Option<Lift>,
}

impl<'p> LowerBounds<'p> {
    /// Computes the singular values that the bounds need, in O(n³), for one head and n up to 1024.
    pub fn new(problem: &'p Problem) -> Self {
        let whole = problem.rows() == problem.n();
        let decomposed = problem.heads() == 1 && problem.n() <= LARGEST_DECOMPOSED && whole;
        Self {
            floor: Floor::new(problem),
            known_floors: HashMap::new(),
            lift: decomposed.then(|| Lift::new(problem)),
        }
    }

    /// The best bound at error ε = `kl_nats`. Returns `None` if there is no floor: ε is not above 0, or the heads cannot attend
    /// to all of the target.
    pub fn at(&mut self, kl_nats: f64) -> Option<LowerBound> {
        let floor = self.floor.max_abs_logit(kl_nats)?;
        let lifted = self.lift.as_mut().and_then(|lift| lift.max_abs_logit(kl_nats, floor));
        Some(match lifted.filter(|lifted| *lifted > floor) {
            Some(max_abs_logit) => LowerBound { floor, max_abs_logit, by: BoundKind::Lift },
            None => LowerBound { floor, max_abs_logit: floor, by: BoundKind::Floor },
        })
    }

    /// E⁰(L), see [`Floor::kl_nats`].
    pub fn floor_kl_nats(&mut self, max_logit: f64) -> f64 {
        let floor = &self.floor;
        *self.known_floors.entry(max_logit.to_bits()).or_insert_with(|| floor.kl_nats(max_logit))
    }
}

/// The best lower bound at one ε; see [`LowerBounds`].
///
/// ```
/// use rank_study::solver::{Problem, lower_bound};
/// use rank_study::targets::{Family, Layout, Visibility};
///
/// let target = Family::DirichletBand { window: 4, alpha: 1.0 }.build(12, 0, Visibility::Causal)?;
/// let problem = Problem::new(target, Layout::global(), 2)?;
/// let bound = lower_bound(&problem, 0.05).expect("a global head sees all of the target");
/// println!("no queries and keys do with less than {}, by {}", bound.max_abs_logit, bound.by);
/// assert!(bound.max_abs_logit >= bound.floor);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lower_bound(problem: &Problem, kl_nats: f64) -> Option<LowerBound> {
    LowerBounds::new(problem).at(kl_nats)
}
