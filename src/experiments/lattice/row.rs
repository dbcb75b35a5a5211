//! The rows of lattices: the logits that attention needs, by the inputs and the rank of queries and keys.

use crate::experiments::model_key::ModelKey;
use crate::heads::{Corner, HeadLattice, InputSet, RankLimit};
use crate::record::{InvariantChecker, Measurement, Row, record, to_milliseconds};
use crate::solver::Outcome;
use crate::targets::HeadKind;

/// The slack for float32 weights that are treated as exact.
const OF_WEIGHTS: f64 = 1e-5;

record! {
    /// The logits that a trained head's attention on a group of passages needs at one corner of its lattice, at one ε.
    pub struct LatticeMeasurement {
        /// the layer, from 0
        #[range = Placed]
        layer: usize,
        /// the head, from 0
        #[range = Placed]
        head: usize,
        /// the kind of head: `global` or `local:W`
        kind: HeadKind,
        /// the group of passages
        passage: usize,
        /// the number of passages in the group
        #[range = Counted]
        passages: usize,
        /// the tokens per passage
        #[range = Counted]
        n: usize,
        /// the rows per passage that were fitted
        #[range = Counted]
        rows: usize,
        /// the head dimension d
        #[range = Counted]
        own_rank: usize,
        /// max |logit| of the head
        #[unit = "nats"]
        actual: f64,
        /// logit range: the largest max − min of a row
        #[unit = "nats"]
        spread: f64,
        /// mean entropy of the rows, −Σ p ln p
        #[unit = "nats"]
        entropy_nats: f64,
        /// attention on the last 16 tokens
        mass_within_16: f64,
        /// ε, the allowed error
        #[unit = "nats"]
        #[range = Positive]
        epsilon: f64,
        /// the inputs of queries and keys: `own`, `bias`, `line`, `pair`, `pairs4`, `positions` or `free`
        inputs: InputSet,
        /// the rank allowed, or `any`
        rank: RankLimit,
        /// the least max |logit| found; empty if no bound up to the largest reached ε
        #[unit = "nats"]
        needed: Option<f64>,
        /// a proven lower bound for these inputs at any rank
        #[unit = "nats"]
        lower_bound: Option<f64>,
        /// the error of the fit; empty for free logits of any rank
        #[unit = "nats"]
        kl_nats: Option<f64>,
        /// the outcome of the fit
        outcome: Outcome,
        /// L-BFGS iterations of the fit
        iterations: usize,
        /// evaluations of objective and gradient
        evaluations: usize,
        /// the time of the fit
        #[unit = "s"]
        wall_time_s: f64,
    }
}

impl LatticeMeasurement {
    /// The rows of a head on one of several groups, each of `passages` passages.
    pub fn all(found: &HeadLattice<'_>, passages: usize) -> Vec<Self> {
        let HeadLattice { group, head, screened, corners } = found;
        let row = |corner: &Corner| Self {
            layer: head.layer,
            head: head.head,
            kind: head.kind,
            passage: *group,
            passages,
            n: head.tokens,
            rows: head.rows(),
            own_rank: head.rank(),
            actual: screened.max_abs_logit,
            spread: screened.logit_spread,
            entropy_nats: screened.entropy_nats,
            mass_within_16: screened.mass_within[2],
            epsilon: corner.epsilon,
            inputs: corner.inputs,
            rank: corner.rank,
            needed: corner.found.max_abs_logit,
            lower_bound: corner.lower_bound,
            kl_nats: corner.found.kl_nats,
            outcome: corner.found.outcome,
            iterations: corner.found.iterations,
            evaluations: corner.found.evaluations,
            wall_time_s: to_milliseconds(corner.wall_time_s),
        };
        corners.iter().map(row).collect()
    }

    /// Identifies the head among those of the cell: group, layer and head.
    fn head(&self) -> (usize, usize, usize) {
        (self.passage, self.layer, self.head)
    }

    /// The needed logits, or ∞ if none reached ε.
    fn needed_or_infinite(&self) -> f64 {
        self.needed.unwrap_or(f64::INFINITY)
    }
}

impl Measurement for LatticeMeasurement {
    type Key = ModelKey;

    const NAME: &'static str = "lattice";
    const VERSION: u32 = 1;

    fn outcome(&self) -> String {
        self.outcome.name().to_owned()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, f) = (&row.of, &row.found);
        check.at(format!(
            "{} layer {} head {} inputs {} rank {} ε {}",
            row.cell, f.layer, f.head, f.inputs, f.rank, f.epsilon
        ));
        let n = f.n as f64;
        check.within("layer", f.layer as f64, 0.0, of.layers as f64 - 1.0);
        check.within("head", f.head as f64, 0.0, of.heads as f64 - 1.0);
        check.within("n", n, 1.0, of.context as f64);
        check.within("rows", f.rows as f64, 1.0, n);
        check.at_least("passages", f.passages as f64, 1.0);
        check.at_least("epsilon", f.epsilon, f64::MIN_POSITIVE);
        if let (HeadKind::Local { window }, Some(widest)) = (f.kind, of.window) {
            check.within("the window of kind", window as f64, widest as f64, widest as f64);
        }
        if let Some(d_head) = of.head_dimension() {
            let own = d_head as f64;
            check.within("own_rank", f.own_rank as f64, own, own);
        }
        check.at_least("actual", f.actual, 0.0);
        check.at_least("spread", f.spread, 0.0);
        check.at_most("spread exceeds twice actual", f.spread, 2.0 * f.actual, OF_WEIGHTS);
        check.within("entropy_nats", f.entropy_nats, 0.0, n.ln() + OF_WEIGHTS);
        check.within("mass_within_16", f.mass_within_16, 0.0, 1.0 + OF_WEIGHTS);
        check.there("needed", f.needed.as_ref(), f.outcome != Outcome::Infeasible);
        check.there("lower_bound", f.lower_bound.as_ref(), f.rank == RankLimit::Any);
        if let Some(needed) = f.needed {
            check.at_least("needed", needed, 0.0);
            // Attention within ε of uniform needs no logits and is not fitted, and neither is the floor.
            let is_floor = (f.inputs, f.rank) == (InputSet::Free, RankLimit::Any);
            let fitted = needed > 0.0 && !is_floor;
            check.there("kl_nats", f.kl_nats.as_ref(), fitted);
            if fitted {
                check.at_most("kl_nats exceeds ε", f.kl_nats, f.epsilon, OF_WEIGHTS);
            }
            if f.rank >= RankLimit::Of(f.own_rank) {
                check.at_most("actual is under needed", needed, f.actual, OF_WEIGHTS);
            }
        }
        if let Some(kl_nats) = f.kl_nats {
            // Logits of 0 meet every constraint and have KL(P ‖ uniform) ≤ ln n − H(P).
            check.within("kl_nats", kl_nats, 0.0, n.ln() - f.entropy_nats + OF_WEIGHTS);
            if f.outcome == Outcome::Infeasible {
                check.at_least("kl_nats of what reached no ε", kl_nats, f.epsilon);
            }
        }
        if let Some(bound) = f.lower_bound {
            check.at_least("lower_bound", bound, 0.0);
            check.at_most("needed is under its bound", bound, f.needed_or_infinite(), OF_WEIGHTS);
            if f.inputs == InputSet::Free {
                check.equal("the floor is not its own bound", f.needed, bound, OF_WEIGHTS);
            }
        }
        check.within("iterations", f.iterations as f64, 0.0, f.evaluations as f64);
        check.at_least("wall_time_s", f.wall_time_s, 0.0);
    }

    fn check_cell(rows: &[Row<Self>], check: &mut InvariantChecker) {
        let heads = || rows.chunk_by(|one, next| one.found.head() == next.found.head());
        let of_first = heads().next().map_or(&[][..], |rows| rows);
        for head in heads() {
            let first = &head[0].found;
            check.at(format!("{} layer {} head {}", head[0].cell, first.layer, first.head));
            let same = |f: &Self| {
                let LatticeMeasurement { kind, passages, n, rows, own_rank, .. } = *f;
                let numbers = [f.actual, f.spread, f.entropy_nats, f.mass_within_16];
                ((kind, passages, n, rows, own_rank), numbers.map(f64::to_bits))
            };
            check.holds(head.iter().all(|row| same(&row.found) == same(first)), || {
                "its rows differ in what the head is".to_owned()
            });
            let corner = |row: &Row<Self>| (row.found.epsilon, row.found.inputs, row.found.rank);
            check.holds(head.iter().map(corner).eq(of_first.iter().map(corner)), || {
                "its corners are not those of the cell's first head".to_owned()
            });
            check_lattice(head, check);
        }
    }
}

/// Checks that a looser corner never needs more than a stricter one, and that lower bounds of looser corners hold for
/// stricter ones. A corner is looser with more inputs, a larger rank or a larger ε.
fn check_lattice(head: &[Row<LatticeMeasurement>], check: &mut InvariantChecker) {
    for (at, one) in head.iter().enumerate() {
        for (other_at, other) in head.iter().enumerate() {
            let (below, above) = (&one.found, &other.found);
            let is_above = below.inputs.is_within(above.inputs)
                && below.rank <= above.rank
                && below.epsilon <= above.epsilon;
            if at == other_at || !is_above {
                continue;
            }
            let places = || {
                let of = |f: &LatticeMeasurement| {
                    format!("{} at rank {} and ε {}", f.inputs, f.rank, f.epsilon)
                };
                format!("{} against {}", of(above), of(below))
            };
            let corner = |f: &LatticeMeasurement| (f.inputs, f.rank, f.epsilon.to_bits());
            check.holds(corner(below) != corner(above), || format!("a corner twice: {}", places()));
            if let Some(needed) = below.needed {
                let more = above.needed_or_infinite();
                check.holds(more <= needed * (1.0 + OF_WEIGHTS), || {
                    format!("more is needed where more is allowed: {}", places())
                });
            }
            if let Some(bound) = above.lower_bound {
                let least = below.needed_or_infinite();
                check.holds(bound <= least * (1.0 + OF_WEIGHTS) + 1e-9, || {
                    format!("less is needed than is proven: {}", places())
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head of rank 8 at two ε, with its own inputs and free ones, at ranks 2, 8 and any rank.
    fn cell() -> Vec<Row<LatticeMeasurement>> {
        let of = ModelKey {
            of: Some("lm-length".to_owned()),
            run: "mhsa-256".to_owned(),
            arm: "mhsa".to_owned(),
            seed: Some(1),
            corpus: Some("books".to_owned()),
            layers: 2,
            d_model: Some(16),
            heads: 2,
            d_head: None,
            global_heads: Some(2),
            window: Some(16),
            context: 64,
            batch: Some(8),
            steps: Some(100),
            learning_rate: Some(1e-3),
            recall: None,
            step: Some(100),
        };
        let mut rows = Vec::new();
        for head in [1, 0] {
            for (epsilon, times) in [(0.01, 1.0), (0.1, 0.5)] {
                for (inputs, levels) in [
                    (InputSet::Own, [None, Some(12.0), Some(9.0)]),
                    (InputSet::Free, [Some(8.0), Some(5.0), Some(4.0)]),
                ] {
                    let ranks = [RankLimit::Of(2), RankLimit::Of(8), RankLimit::Any];
                    for (rank, level) in ranks.into_iter().zip(levels) {
                        let needed = level.map(|level| level * times);
                        let is_floor = (inputs, rank) == (InputSet::Free, RankLimit::Any);
                        let bound = if inputs == InputSet::Own { 8.5 } else { 4.0 };
                        let found = LatticeMeasurement {
                            layer: 1,
                            head,
                            kind: HeadKind::Global,
                            passage: 0,
                            passages: 2,
                            n: 64,
                            rows: 64,
                            own_rank: 8,
                            actual: 20.0,
                            spread: 30.0,
                            entropy_nats: 2.0,
                            mass_within_16: 0.7,
                            epsilon,
                            inputs,
                            rank,
                            needed,
                            lower_bound: (rank == RankLimit::Any).then_some(bound * times),
                            kl_nats: (needed.is_some() && !is_floor).then_some(0.99 * epsilon),
                            outcome: needed.map_or(Outcome::Infeasible, |_| Outcome::Converged),
                            iterations: 90,
                            evaluations: 100,
                            wall_time_s: 1.0,
                        };
                        let cell = "mhsa-256/s1/step-100".to_owned();
                        let (study, settings) = ("lattice".to_owned(), "made up".to_owned());
                        rows.push(Row { study, cell, of: of.clone(), found, settings });
                    }
                }
            }
        }
        rows
    }

    fn breaches(rows: &[Row<LatticeMeasurement>]) -> Vec<String> {
        let mut check = InvariantChecker::default();
        rows.iter().for_each(|row| LatticeMeasurement::check_row(row, &mut check));
        LatticeMeasurement::check_cell(rows, &mut check);
        check.breaches
    }

    #[test]
    fn every_altered_column_but_counts_and_passages_breaks_a_law() {
        assert_eq!(breaches(&cell()), [""; 0]);
        type Alter = fn(&mut LatticeMeasurement);
        let altered: [(&str, Alter); 24] = [
            ("layer", |f| f.layer = 0),
            ("head", |f| f.head = 0),
            ("kind", |f| f.kind = HeadKind::Local { window: 16 }),
            ("passage", |f| f.passage = 1),
            ("passages of a row", |f| f.passages = 3),
            ("n", |f| f.n = 63),
            ("rows", |f| f.rows = 63),
            ("own_rank", |f| f.own_rank = 4),
            ("actual", |f| f.actual = 20.1),
            ("spread", |f| f.spread = 29.0),
            ("entropy_nats", |f| f.entropy_nats = 2.1),
            ("mass_within_16", |f| f.mass_within_16 = 0.6),
            ("epsilon", |f| f.epsilon = 0.02),
            ("inputs", |f| f.inputs = InputSet::Bias),
            ("rank", |f| f.rank = RankLimit::Of(4)),
            ("needed above what is below", |f| f.needed = Some(30.0)),
            ("needed under what is proven", |f| f.needed = Some(3.0)),
            ("needed, none", |f| f.needed = None),
            ("lower_bound", |f| f.lower_bound = Some(1.0)),
            ("kl_nats", |f| f.kl_nats = Some(0.2)),
            ("kl_nats, none", |f| f.kl_nats = None),
            ("outcome", |f| f.outcome = Outcome::Infeasible),
            ("iterations", |f| f.iterations = 101),
            ("wall_time_s", |f| f.wall_time_s = -1.0),
        ];
        for (what, alter) in altered {
            // The row of own inputs at rank 8 and ε = 0.01.
            let mut rows = cell();
            alter(&mut rows[1].found);
            assert_ne!(breaches(&rows), [""; 0], "{what}");
        }
    }

    #[test]
    fn what_is_proven_is_held_against_every_corner_below_it() {
        let mut rows = cell();
        // The floor at the larger ε is above the needed logits at the smaller one.
        for row in rows.iter_mut().filter(|row| row.found.epsilon == 0.1) {
            if (row.found.inputs, row.found.rank) == (InputSet::Free, RankLimit::Any) {
                (row.found.needed, row.found.lower_bound) = (Some(4.5), Some(4.5));
            }
        }
        let found = breaches(&rows);
        assert!(
            found.iter().any(|breach| breach.contains("less is needed than is proven")),
            "{found:?}"
        );
        assert!(found.iter().any(|breach| breach.contains("more is needed where more is allowed")));
    }

    #[test]
    fn uniform_attention_needs_nothing_anywhere() {
        let mut rows = cell();
        for row in &mut rows {
            let found = &mut row.found;
            found.needed = Some(0.0);
            found.kl_nats = None;
            found.outcome = Outcome::Converged;
            found.lower_bound = found.lower_bound.map(|_| 0.0);
        }
        assert_eq!(breaches(&rows), [""; 0]);
    }
}
