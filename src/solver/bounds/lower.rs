//! The best of the lower bounds at one error.

use std::collections::HashMap;

use super::lift::Lift;
use super::log_rank::LogRank;
use super::packing::{Packed, Packing};
use crate::solver::floor::Floor;
use crate::solver::problem::Problem;

/// Above this n no singular values are computed, and only the floor and packing remain.
const LARGEST_DECOMPOSED: usize = 1024;

/// The argument that gave a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum BoundKind {
    /// L⁰(ε): the smallest max |logit| of logits of *any* rank.
    Floor,
    /// Keys that differ by a margin need space (`packing.rs`).
    Packing,
    /// √P is nearly of rank C(d + k, k), and √A is not (`lift.rs`).
    Lift,
    /// log A has a higher rank than d + 1 (`log_rank.rs`).
    LogRank,
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
    /// Lower bound on max_abs_logit. Lift and log-rank prove at most [`LARGEST_CAP`](crate::solver::LARGEST_CAP): a bound of
    /// this value or more proves that no logits up to it reach ε.
    pub max_abs_logit: f64,
    /// The argument that gave it; ties go to the first in the order of [`BoundKind`].
    pub by: BoundKind,
    /// Lower bound on norm_product for every choice of factors; at least max_abs_logit, by Cauchy and Schwarz.
    pub norm_product: f64,
}

/// The lower bounds of one problem, with everything that can be computed once for every ε.
///
/// The floor applies to any layout. Packing applies to one global head; it bounds norm_product, and max_abs_logit only without
/// a causal mask. Lift and log-rank apply to one head of either kind with n up to 1024.
#[derive(Debug)]
pub struct LowerBounds<'p> {
    floor: Floor<'p>,
    /// Cached results by the bits of ε and of L: a frontier's rows are written again as they improve.
    known: HashMap<u64, Option<LowerBound>>,
    known_floors: HashMap<u64, f64>,
    packing: Option<Packing>,
    by_rank: Option<(Lift, LogRank)>,
}

impl<'p> LowerBounds<'p> {
    /// Computes the singular values that the bounds need, in O(n³), for one head and n up to 1024.
    pub fn new(problem: &'p Problem) -> Self {
        let whole = problem.rows() == problem.n();
        let decomposed = problem.heads() == 1 && problem.n() <= LARGEST_DECOMPOSED && whole;
        Self {
            floor: Floor::new(problem),
            known: HashMap::new(),
            known_floors: HashMap::new(),
            packing: Packing::new(problem),
            by_rank: decomposed.then(|| (Lift::new(problem), LogRank::new(problem))),
        }
    }

    /// The best bound at error ε = `kl_nats`. Returns `None` if there is no floor: ε is not above 0, or the heads cannot attend
    /// to all of the target.
    pub fn at(&mut self, kl_nats: f64) -> Option<LowerBound> {
        if let Some(&known) = self.known.get(&kl_nats.to_bits()) {
            return known;
        }
        let found = self.find(kl_nats);
        self.known.insert(kl_nats.to_bits(), found);
        found
    }

    /// E⁰(L), see [`Floor::kl_nats`].
    pub fn floor_kl_nats(&mut self, max_logit: f64) -> f64 {
        let floor = &self.floor;
        *self.known_floors.entry(max_logit.to_bits()).or_insert_with(|| floor.kl_nats(max_logit))
    }

    fn find(&mut self, kl_nats: f64) -> Option<LowerBound> {
        let floor = self.floor.max_abs_logit(kl_nats)?;
        let packed = self.packing.as_ref().map_or(Packed::default(), |packing| packing.at(kl_nats));
        let mut best = (floor, BoundKind::Floor);
        let mut offer = |max_abs_logit: f64, by| {
            if max_abs_logit > best.0 {
                best = (max_abs_logit, by);
            }
            best.0
        };
        let so_far = offer(packed.max_abs_logit, BoundKind::Packing);
        if let Some((lift, log_rank)) = &mut self.by_rank {
            let lifted = lift.max_abs_logit(kl_nats, so_far).unwrap_or(0.0);
            offer(lifted, BoundKind::Lift);
            offer(log_rank.max_abs_logit(kl_nats), BoundKind::LogRank);
        }
        let (max_abs_logit, by) = best;
        Some(LowerBound {
            floor,
            max_abs_logit,
            by,
            norm_product: packed.norm_product.max(max_abs_logit),
        })
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
