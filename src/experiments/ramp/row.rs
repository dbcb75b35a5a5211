//! The rows of trained heads compared with ramps over positions.

use crate::experiments::heads::check_precision;
use crate::experiments::model_key::CheckpointKey;
use crate::heads::{RampMeasurement, held_rows, ramp_half_spread, ramp_lag, reach};
use crate::lm::Slopes;
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row};
use crate::solver::Outcome;
use crate::targets::{HeadKind, Visibility};

/// The slack for the tolerances of least squares and of divergences.
const OF_TOLERANCE: f64 = 1e-5;

impl Measurement for RampMeasurement {
    type Key = CheckpointKey;

    const NAME: &'static str = "ramp";
    const VERSION: u32 = 1;

    fn outcome(&self) -> String {
        self.outcome.name().to_owned()
    }

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, f) = (&row.of.model, &row.found);
        check.at(format!("{} layer {} head {}", row.cell, f.layer, f.head));
        let n = f.n as f64;
        check.within("layer", f.layer as f64, 0.0, of.layers as f64 - 1.0);
        check.within("head", f.head as f64, 0.0, of.heads as f64 - 1.0);
        check.within("n", n, 1.0, of.context as f64);
        check.within("rows", f.rows as f64, 1.0, n);
        check.at_least("passages", f.passages as f64, 1.0);
        if let (HeadKind::Local { window }, Some(widest)) = (f.kind, of.window) {
            check.within("the window of kind", window as f64, widest as f64, widest as f64);
        }
        if let Some(d_head) = of.head_dimension() {
            let rank = d_head as f64;
            check.within("rank", f.rank as f64, rank, rank);
        }
        if let Some(slopes) = &row.of.slopes {
            check.there("given_slope", f.given_slope.as_ref(), slopes != "none");
            if slopes == Slopes::Alibi.name() {
                let fixed = Slopes::of_alibi(of.heads).get(f.head).copied().map(f64::from);
                check.equal("given_slope is not ALiBi's", f.given_slope, fixed, ROUNDING);
            }
        }
        f.check_looks(check);
        f.check_shares(check);
        f.check_divergences(check);
        check_precision(f.precision.as_ref(), check);
        check.holds(matches!(f.outcome, Outcome::Converged | Outcome::StepLimit), || {
            format!("outcome is {}, which such a row has not", f.outcome.name())
        });
        check.at_least("wall_time_s", f.wall_time_s, 0.0);
    }

    /// Checks that every head of every selected layer occurs once per group of passages, in order.
    fn check_cell(rows: &[Row<Self>], check: &mut InvariantChecker) {
        let mut heads: Vec<(usize, usize, usize)> =
            rows.iter().map(|row| (row.found.passage, row.found.layer, row.found.head)).collect();
        check.holds(heads.is_sorted_by(|a, b| a < b), || {
            "its rows are not each head of each layer and group once, in order".to_owned()
        });
        let size = |row: &Row<Self>| (row.found.passages, row.found.n, row.found.rows);
        check.holds(rows.windows(2).all(|two| size(&two[0]) == size(&two[1])), || {
            "passages of several sizes".to_owned()
        });
        heads.dedup_by_key(|(passage, layer, _)| (*passage, *layer));
        let expected = heads.len() * rows[0].of.model.heads;
        check.holds(rows.len() == expected, || {
            format!("{} rows where the heads of its layers are {expected}", rows.len())
        });
    }
}

impl RampMeasurement {
    fn check_looks(&self, check: &mut InvariantChecker) {
        let n = self.n as f64;
        check.at_least("actual", self.actual, 0.0);
        check.at_least("half_spread", self.half_spread, 0.0);
        check.at_most("half_spread exceeds actual", self.half_spread, self.actual, ROUNDING);
        check.within("mean_lag", self.mean_lag, 0.0, n - 1.0);
        check.within("median_lag", self.median_lag as f64, 0.0, n - 1.0);
        // Half of the mass lies at the median or beyond, so the mean is at least half of the median.
        let median = 0.5 * self.median_lag as f64;
        check.at_most("half the median_lag exceeds mean_lag", median, self.mean_lag, ROUNDING);
        let half = |lag: usize, mass: f64, check: &mut InvariantChecker| {
            let within = self.median_lag < lag;
            let agrees = if within { mass >= 0.5 - ROUNDING } else { mass <= 0.5 + ROUNDING };
            check.holds(agrees, || {
                format!("median_lag is {}, and {mass} within {lag}", self.median_lag)
            });
        };
        let masses = [
            (1, self.mass_within_1),
            (4, self.mass_within_4),
            (16, self.mass_within_16),
            (64, self.mass_within_64),
        ];
        let mut before = 0.0;
        for (lag, mass) in masses {
            check.at_most("mass falls with the lag", before, mass, ROUNDING);
            half(lag, mass, check);
            before = mass;
        }
        check.at_most("mass exceeds 1", before, 1.0, ROUNDING);
        let formula = ramp_half_spread(reach(self.kind, self.n), self.mean_lag);
        check.there("formula", self.formula.as_ref(), formula.is_some());
        if formula.is_some() {
            check.equal("formula is not that of mean_lag", self.formula, formula, ROUNDING);
        }
        let most = (reach(self.kind, self.n) as f64).ln();
        check.within("entropy_nats", self.entropy_nats, 0.0, most + ROUNDING);
        if let Some(slope) = self.given_slope {
            check.holds(slope.is_finite(), || format!("given_slope is {slope}"));
        }
        let rank = self.rank as f64 + ROUNDING;
        check.within("effective_rank_logits", self.effective_rank_logits, 1.0 - ROUNDING, rank);
        check.within("effective_rank_centred", self.effective_rank_centred, 1.0 - ROUNDING, rank);
        check.within("stable_rank_centred", self.stable_rank_centred, 0.0, rank);
        // Σσ² ≤ σ₁Σσ, and the entropy of σ/Σσ is at least −ln of its largest term.
        let stable = self.stable_rank_centred;
        let effective = self.effective_rank_centred;
        check.at_most("stable_rank_centred exceeds the effective one", stable, effective, ROUNDING);
    }

    fn check_shares(&self, check: &mut InvariantChecker) {
        let both = self.share_position_and_lag;
        let is_there = self.share_ramp.is_some();
        for (column, share) in [
            ("share_ramp", self.share_ramp),
            ("share_lines", self.share_lines),
            ("share_position", self.share_position),
            ("share_lag", self.share_lag),
            ("share_position_and_lag", both),
        ] {
            check.there(column, share.as_ref(), is_there);
            if let Some(share) = share {
                check.within(column, share, 0.0, 1.0);
            }
        }
        if let Some(share) = self.share_key {
            check.within("share_key", share, 0.0, 1.0);
        }
        check.holds(self.slope.is_finite(), || format!("slope is {}", self.slope));
        if !is_there || self.outcome != Outcome::Converged {
            return;
        }
        for (what, narrow, wide) in [
            ("share_ramp exceeds share_lines", self.share_ramp, self.share_lines),
            ("share_ramp exceeds share_position", self.share_ramp, self.share_position),
            ("share_ramp exceeds share_lag", self.share_ramp, self.share_lag),
            ("share_position exceeds that with the lag", self.share_position, both),
            ("share_lag exceeds that with the position", self.share_lag, both),
        ] {
            check.at_most(what, narrow, wide, OF_TOLERANCE);
        }
        if let Some(share) = self.share_key {
            let position = self.share_position;
            check.at_most("share_position exceeds share_key", position, share, OF_TOLERANCE);
        }
        // The variance of a row is at most (½ spread)², and the line's is its share of that.
        let (mut of_line, mut most) = (0.0, 0.0);
        for m in self.columns_seen() {
            of_line += self.slope * self.slope * m * (m * m - 1.0) / 12.0;
            most += m * self.half_spread * self.half_spread;
        }
        let share = self.share_ramp.map(|share| share * most);
        check.at_most(
            "slope is steeper than its share of the spread",
            of_line,
            share,
            OF_TOLERANCE,
        );
    }

    /// The number of columns that the mask allows in each measured row of a passage.
    fn columns_seen(&self) -> impl Iterator<Item = f64> {
        let (kind, n) = (self.kind, self.n);
        let held = held_rows(n, Some(self.rows)).into_iter();
        held.map(move |row| kind.columns(row, n, Visibility::Causal).len() as f64)
    }

    fn check_divergences(&self, check: &mut InvariantChecker) {
        let most = (reach(self.kind, self.n) as f64).ln();
        for (column, kl) in [
            ("kl_uniform", self.kl_uniform),
            ("kl_ramp", self.kl_ramp),
            ("kl_position", self.kl_position),
            ("kl_lag", self.kl_lag),
        ] {
            check.within(column, kl, 0.0, most + ROUNDING);
        }
        for (what, wide, narrow) in [
            ("kl_ramp exceeds kl_uniform", self.kl_ramp, self.kl_uniform),
            ("kl_position exceeds kl_ramp", self.kl_position, self.kl_ramp),
            ("kl_lag exceeds kl_ramp", self.kl_lag, self.kl_ramp),
        ] {
            check.at_most(what, wide, narrow, OF_TOLERANCE);
        }
        // KL(P ‖ uniform) is the entropy of uniform attention minus the entropy of P.
        let uniform = self.columns_seen().map(f64::ln).sum::<f64>() / self.rows as f64;
        let sum = self.kl_uniform + self.entropy_nats;
        check.equal("kl_uniform and entropy_nats are not ln m together", sum, uniform, ROUNDING);
        let share = (self.kl_uniform > 0.0).then(|| 1.0 - self.kl_ramp / self.kl_uniform);
        check.there("ramp_kl_share", self.ramp_kl_share.as_ref(), share.is_some());
        if share.is_some() {
            check.equal("ramp_kl_share is not that of kl", self.ramp_kl_share, share, ROUNDING);
        }
        let lag = ramp_lag(self.slope_kl);
        check.holds(self.slope_kl.is_finite(), || format!("slope_kl is {}", self.slope_kl));
        check.there("ramp_lag", self.ramp_lag.as_ref(), lag.is_some());
        if lag.is_some() {
            check.equal("ramp_lag is not that of slope_kl", self.ramp_lag, lag, ROUNDING);
        }
    }
}
