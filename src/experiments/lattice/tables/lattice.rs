//! Lattices of trained heads: the logits that their attention needs, by the inputs and the rank of queries and keys.

use crate::experiments::lattice::LatticeMeasurement;
use crate::heads::{InputSet, RankLimit};
use crate::record::{Row, Rows};
use crate::table::TableError;
use crate::table::error::READ_ERR;
use crate::table::groups::{epsilons, greatest_of_each, main_epsilon};

/// The logits needed at one corner: one set of inputs and one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeCorner {
    /// The inputs of queries and keys.
    pub inputs: InputSet,
    /// The largest rank allowed.
    pub rank: RankLimit,
    /// The smallest max |logit| found; `None` if no logits reached ε.
    pub needed: Option<f64>,
    /// A proven lower bound on `needed`, for any rank only.
    pub lower_bound: Option<f64>,
}

/// One head's lattice at one ε.
#[derive(Clone, Debug, PartialEq)]
pub struct LatticeOfHead {
    /// The study of its run.
    pub of: String,
    /// The run's name in that study.
    pub run: String,
    /// The variant.
    pub arm: String,
    /// The run's seed.
    pub seed: u64,
    /// The step of the weights.
    pub step: usize,
    /// The group of passages.
    pub passage: usize,
    /// The layer, from 0.
    pub layer: usize,
    /// The head, from 0.
    pub head: usize,
    /// Whether the head is local.
    pub is_local: bool,
    /// The number of tokens of a passage.
    pub n: usize,
    /// The head dimension d.
    pub own_rank: usize,
    /// ε in nats.
    pub epsilon: f64,
    /// max |z|.
    pub actual: f64,
    /// The largest max − min of a row's logits.
    pub spread: f64,
    /// The attention on the last 16 tokens.
    pub mass_within_16: f64,
    /// The corners in the order of the rows: by inputs, then rank.
    pub corners: Vec<LatticeCorner>,
}

/// Splits a head's log(half-range / floor) into the effects of the two constraints, each in either order, and a rest
/// that neither requires. All values are natural logarithms; the Shapley values and the rest sum to `whole`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// log(½ spread / floor).
    pub whole: f64,
    /// The effect of rank ≤ d: with free inputs, and with the head's own.
    pub rank: [f64; 2],
    /// The effect of the head's own inputs: at any rank, and at rank ≤ d.
    pub inputs: [f64; 2],
}

impl Shares {
    /// The Shapley value of rank: the mean over both orders.
    pub fn of_rank(&self) -> f64 {
        0.5 * (self.rank[0] + self.rank[1])
    }

    /// The Shapley value of the inputs.
    pub fn of_inputs(&self) -> f64 {
        0.5 * (self.inputs[0] + self.inputs[1])
    }

    /// The joint effect of both constraints beyond the sum of their single effects; negative if they overlap.
    pub fn interaction(&self) -> f64 {
        self.rank[1] - self.rank[0]
    }

    /// log(half-range / needed under both constraints): the rest that neither requires.
    pub fn rest(&self) -> f64 {
        self.whole - self.of_rank() - self.of_inputs()
    }
}

impl LatticeOfHead {
    /// The logits needed at a corner; `None` if it was not measured or no logits reached ε.
    pub fn needed(&self, inputs: InputSet, rank: RankLimit) -> Option<f64> {
        self.corner(inputs, rank)?.needed
    }

    /// A proven lower bound for these inputs at any rank.
    pub fn lower_bound(&self, inputs: InputSet) -> Option<f64> {
        self.corner(inputs, RankLimit::Any)?.lower_bound
    }

    fn corner(&self, inputs: InputSet, rank: RankLimit) -> Option<&LatticeCorner> {
        self.corners.iter().find(|corner| (corner.inputs, corner.rank) == (inputs, rank))
    }

    /// The floor L⁰(ε): the logits needed with any rank and inputs.
    pub fn floor(&self) -> Option<f64> {
        self.needed(InputSet::Free, RankLimit::Any)
    }

    /// The half-range of the head's logits: the smallest max |logit| over all shifts of rows.
    pub fn half_spread(&self) -> f64 {
        0.5 * self.spread
    }

    /// The effects of rank and inputs; `None` if the floor is 0 or one of the four corners is missing.
    ///
    /// They are computed as a game of two players, the constraints R (rank ≤ d) and I (the head's own inputs). A
    /// coalition S has the value v(S) = log needed(ε; S), the logits that attention within ε needs under the
    /// constraints S. v(∅) = log L⁰; v(R) is for free queries and keys of rank d, v(I) for any matrix W_q·W_kᵀ, v(RI)
    /// for both constraints.
    pub fn shares(&self) -> Option<Shares> {
        let own_rank = RankLimit::Of(self.own_rank);
        let v = |inputs, rank| {
            let log = self.needed(inputs, rank)?.ln();
            log.is_finite().then_some(log)
        };
        let none = v(InputSet::Free, RankLimit::Any)?;
        let [r, i, both] = [
            v(InputSet::Free, own_rank)?,
            v(InputSet::Own, RankLimit::Any)?,
            v(InputSet::Own, own_rank)?,
        ];
        let whole = self.half_spread().ln() - none;
        Some(Shares { whole, rank: [r - none, both - i], inputs: [i - none, both - r] })
    }

    /// needed(own, any rank) / needed(`given`, any rank): the factor by which adding these columns to the head's inputs
    /// reduces the needed logits. Both are minima of convex problems, found by descent.
    pub fn saved_by(&self, given: InputSet) -> Option<f64> {
        ratio(self.needed(InputSet::Own, RankLimit::Any)?, self.needed(given, RankLimit::Any)?)
    }

    /// A proven lower bound on that factor: the lower bound for the head's own inputs over the logits found with the columns.
    pub fn saved_by_proven(&self, given: InputSet) -> Option<f64> {
        ratio(self.lower_bound(InputSet::Own)?, self.needed(given, RankLimit::Any)?)
    }

    /// The share of log(needed(own, any rank) / floor) that vanishes with the added columns.
    pub fn share_saved_by(&self, given: InputSet) -> Option<f64> {
        let all = ratio(self.needed(InputSet::Own, RankLimit::Any)?, self.floor()?)?.ln();
        let share = self.saved_by(given)?.ln() / all;
        (all > 0.0 && share.is_finite()).then_some(share)
    }

    /// As [`share_saved_by`](Self::share_saved_by), without the effect of a column of ones. Every set with positions has one,
    /// and it separates no positions. It is log(needed(bias) / needed(`given`)) over log(needed(own) / floor), at any rank.
    pub fn share_saved_beyond_bias(&self, given: InputSet) -> Option<f64> {
        Some(self.share_saved_by(given)? - self.share_saved_by(InputSet::Bias)?)
    }

    /// The smallest fitted rank at which free queries and keys reach ε with logits up to `most`; `None` if no fitted rank does.
    pub fn realised_rank(&self, most: f64) -> Option<usize> {
        self.corners
            .iter()
            .filter(|corner| corner.inputs == InputSet::Free)
            .filter(|corner| corner.needed.is_some_and(|needed| needed <= most))
            .find_map(|corner| match corner.rank {
                RankLimit::Of(rank) => Some(rank),
                RankLimit::Any => None,
            })
    }

    /// needed(rank ≤ d) / needed(any rank) with these inputs; `None` if a corner is missing or needs no logits. With
    /// RoPE, queries and keys are not W_q·W_kᵀ of any rank.
    pub fn cost_of_rank(&self, inputs: InputSet) -> Option<f64> {
        let at = |rank| self.needed(inputs, rank);
        ratio(at(RankLimit::Of(self.own_rank))?, at(RankLimit::Any)?)
    }

    /// The half-range of the head over the logits needed with its inputs and its rank.
    pub fn over_needed(&self) -> Option<f64> {
        let needed = self.needed(InputSet::Own, RankLimit::Of(self.own_rank))?;
        ratio(self.half_spread(), needed)
    }

    /// Identifies the model, its step and ε.
    pub(crate) fn model(&self) -> (&str, &str, u64, usize, u64) {
        (&self.of, &self.run, self.seed, self.step, self.epsilon.to_bits())
    }

    /// The same without the seed.
    pub(crate) fn setting(&self) -> (&str, &str, usize, u64) {
        (&self.of, &self.run, self.step, self.epsilon.to_bits())
    }
}

fn ratio(over: f64, under: f64) -> Option<f64> {
    (over > 0.0 && under > 0.0).then(|| over / under)
}

/// A study of lattices.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattices {
    /// The lattices by head and ε, in the order of the rows.
    pub heads: Vec<LatticeOfHead>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

impl Lattices {
    /// Gathers the rows of a study of lattices.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<LatticeMeasurement>) -> Result<Self, TableError> {
        let same = |a: &Row<LatticeMeasurement>, b: &Row<LatticeMeasurement>| {
            let of = |row: &Row<LatticeMeasurement>| {
                let f = &row.found;
                (f.passage, f.layer, f.head, f.epsilon.to_bits())
            };
            (&a.study, &a.cell, of(a)) == (&b.study, &b.cell, of(b))
        };
        let heads = rows.rows.chunk_by(same).filter_map(LatticeOfHead::of_rows).collect();
        let why = "no finished row has a corner of a lattice";
        let heads = TableError::unless_empty(heads, &rows.path, why, READ_ERR)?;
        Ok(Self { heads, failed: rows.failed })
    }

    /// The errors ε in descending order.
    pub fn epsilons(&self) -> Vec<f64> {
        epsilons(self.heads.iter().map(|head| head.epsilon))
    }

    /// The ε of figures and verdicts: 0.01 if the study has it, else the middle one.
    pub fn epsilon_told(&self) -> f64 {
        main_epsilon(&self.epsilons())
    }

    /// The sets of inputs that at least one head has.
    pub fn inputs(&self) -> Vec<InputSet> {
        let has = |set: &InputSet| {
            self.heads.iter().any(|head| head.corners.iter().any(|corner| corner.inputs == *set))
        };
        InputSet::ALL.into_iter().filter(has).collect()
    }

    /// The last step of any run.
    pub fn last_step(&self) -> usize {
        self.heads.iter().map(|head| head.step).max().unwrap_or(0)
    }

    /// The head with the largest logit of each model, step and ε, among those for which `are` is true.
    pub fn largest(&self, are: impl Fn(&LatticeOfHead) -> bool) -> Vec<&LatticeOfHead> {
        let heads = self.heads.iter().filter(|head| are(head));
        greatest_of_each(heads, LatticeOfHead::model, |head| head.actual)
    }
}

impl LatticeOfHead {
    /// Combines the rows of one head at one ε; `None` if there are no rows.
    fn of_rows(rows: &[Row<LatticeMeasurement>]) -> Option<Self> {
        let Row { of, found, .. } = rows.first()?;
        let corner = |row: &Row<LatticeMeasurement>| {
            let LatticeMeasurement { inputs, rank, needed, lower_bound, .. } = row.found;
            LatticeCorner { inputs, rank, needed, lower_bound }
        };
        Some(Self {
            of: of.of.clone().unwrap_or_default(),
            run: of.run.clone(),
            arm: of.arm.clone(),
            seed: of.seed.unwrap_or(0),
            step: of.step.unwrap_or(0),
            passage: found.passage,
            layer: found.layer,
            head: found.head,
            is_local: found.kind != crate::targets::HeadKind::Global,
            n: found.n,
            own_rank: found.own_rank,
            epsilon: found.epsilon,
            actual: found.actual,
            spread: found.spread,
            mass_within_16: found.mass_within_16,
            corners: rows.iter().map(corner).collect(),
        })
    }
}

/// Synthetic lattices for tests.
#[cfg(test)]
pub(crate) mod made_up {
    use super::*;

    /// A head of rank 16 and half-range 40 at ε = 0.01. Free queries and keys need 4 at any rank and 5 at rank 16. Its
    /// own inputs need `own` at any rank and at 16; with a line they need `line`.
    pub(crate) fn head(seed: u64, own: [f64; 2], line: f64) -> LatticeOfHead {
        use InputSet::{Free, Line, Own};
        let at =
            |inputs, rank, needed, lower_bound| LatticeCorner { inputs, rank, needed, lower_bound };
        let [any, at_16] = own;
        LatticeOfHead {
            of: "lm-length".to_owned(),
            run: "mhsa-256".to_owned(),
            arm: "mhsa".to_owned(),
            seed,
            step: 6000,
            passage: 0,
            layer: 2,
            head: 1,
            is_local: false,
            n: 256,
            own_rank: 16,
            epsilon: 0.01,
            actual: 50.0,
            spread: 80.0,
            mass_within_16: 0.9,
            corners: vec![
                at(Own, RankLimit::Of(2), None, None),
                at(Own, RankLimit::Of(16), Some(at_16), None),
                at(Own, RankLimit::Any, Some(any), Some(0.9 * any)),
                at(Line, RankLimit::Of(2), Some(2.0 * line), None),
                at(Line, RankLimit::Of(16), Some(1.1 * line), None),
                at(Line, RankLimit::Any, Some(line), Some(4.0)),
                at(Free, RankLimit::Of(2), Some(30.0), None),
                at(Free, RankLimit::Of(16), Some(5.0), None),
                at(Free, RankLimit::Any, Some(4.0), Some(4.0)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::head;
    use super::*;

    /// Shapley's axioms: shares sum to the whole, a constraint without effect has share 0, and equal ones have equal shares.
    #[test]
    fn shares_are_shapley_values() {
        let shares = head(1, [20.0, 32.0], 8.0).shares().unwrap();
        assert!((shares.whole - 10f64.ln()).abs() < 1e-12);
        // The two orders: rank first 4 → 5 → 32, inputs first 4 → 20 → 32.
        assert!((shares.of_rank() - 0.5 * (1.25f64 * 1.6).ln()).abs() < 1e-12);
        assert!((shares.of_inputs() - 0.5 * (5.0f64 * 6.4).ln()).abs() < 1e-12);
        assert!((shares.interaction() - (1.6f64 / 1.25).ln()).abs() < 1e-12);
        let sum = shares.of_rank() + shares.of_inputs() + shares.rest();
        assert!((sum - shares.whole).abs() < 1e-12);
        assert!((shares.rest() - (40.0f64 / 32.0).ln()).abs() < 1e-12);
        // Own inputs add nothing in either order.
        let idle = head(1, [4.0, 5.0], 4.0).shares().unwrap();
        assert!(idle.of_inputs().abs() < 1e-12 && (idle.of_rank() - 1.25f64.ln()).abs() < 1e-12);
        let alike = head(1, [5.0, 9.0], 4.0).shares().unwrap();
        assert!((alike.of_inputs() - alike.of_rank()).abs() < 1e-12);
    }

    #[test]
    fn what_positions_save_is_told_and_proven() {
        let head = head(1, [20.0, 32.0], 8.0);
        assert_eq!(head.saved_by(InputSet::Line), Some(2.5));
        assert_eq!(head.saved_by_proven(InputSet::Line), Some(2.25));
        let share = head.share_saved_by(InputSet::Line).unwrap();
        assert!((share - 2.5f64.ln() / 5f64.ln()).abs() < 1e-12);
        assert_eq!(head.saved_by(InputSet::Pair), None, "it was not asked for");
        assert_eq!(head.share_saved_beyond_bias(InputSet::Line), None, "nor was bias");
        let bias = LatticeCorner {
            inputs: InputSet::Bias,
            rank: RankLimit::Any,
            needed: Some(10.0),
            lower_bound: Some(4.0),
        };
        let corners = [&head.corners[..], &[bias]].concat();
        let with_bias = LatticeOfHead { corners, ..head };
        let beyond = with_bias.share_saved_beyond_bias(InputSet::Line).unwrap();
        assert!((beyond - 1.25f64.ln() / 5f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn realised_rank_is_the_least_that_the_heads_own_logits_allow() {
        let head = head(1, [20.0, 32.0], 8.0);
        assert_eq!(head.realised_rank(head.half_spread()), Some(2));
        assert_eq!(head.realised_rank(29.0), Some(16));
        assert_eq!(head.realised_rank(4.5), None);
    }
}
