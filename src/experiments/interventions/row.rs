//! Checks of the rows of trained models whose attention was replaced.

use crate::experiments::model_key::ModelKey;
use crate::heads::{Edit, InterventionMeasurement};
use crate::record::{InvariantChecker, Measurement, ROUNDING, Row};
use crate::solver::Outcome;
use crate::table::groups::by_key;

impl Measurement for InterventionMeasurement {
    type Key = ModelKey;

    const NAME: &'static str = "surgery";
    const VERSION: u32 = 1;

    fn check_row(row: &Row<Self>, check: &mut InvariantChecker) {
        let (of, f) = (&row.of, &row.found);
        check.at(format!(
            "{} {} {:?} {:?} {:?} of group {}",
            row.cell, f.edit, f.epsilon, f.rank, f.size, f.group
        ));
        let edit = f.edit();
        check.holds(edit.is_some(), || "is no edit, or has other numbers than it has".to_owned());
        let Some(edit) = edit else { return };
        check.there("reached", f.reached.as_ref(), edit.fit().is_some());
        check.there("outcome", f.outcome.as_ref(), edit.fit().is_some());
        check.there("max_abs_logit_after", f.max_abs_logit_after.as_ref(), edit.has_logits());
        let of_largest = f.max_abs_logit_of_largest.as_ref();
        check.there("max_abs_logit_of_largest", of_largest, edit.has_logits());
        check.there("kl_nats", f.kl_nats.as_ref(), !edit.cuts());
        check.within("n", f.n as f64, 2.0, of.context as f64);
        check.at_least("passages", f.passages as f64, 1.0);
        check.at_least("loss_nats", f.loss_nats, 0.0);
        check.at_least("max_abs_logit_before", f.max_abs_logit_before, 0.0);
        check.at_least("wall_time_s", f.wall_time_s, 0.0);
        if let Some(size) = f.size {
            check.at_least("size", size as f64, 1.0);
        }
        let (after, largest) = (f.max_abs_logit_after, f.max_abs_logit_of_largest);
        if let (Some(after), Some(largest)) = (after, largest) {
            check.within("max_abs_logit_of_largest", largest, 0.0, after);
        }
        check.within("total_variation", f.total_variation, 0.0, 1.0 + ROUNDING);
        if let Some(kl_nats) = f.kl_nats {
            check.at_least("kl_nats", kl_nats, 0.0);
            // Pinsker's inequality for each row, and Jensen's inequality over rows and heads.
            let least = (f.total_variation - ROUNDING).max(0.0).powi(2) * 2.0;
            check.at_most("total_variation is more than kl_nats allows", least, kl_nats, ROUNDING);
        }
        if edit == Edit::Own {
            check.within("the difference of a model from itself", f.delta_loss_nats, 0.0, 0.0);
            check.within("its kl_nats", f.kl_nats.unwrap_or(f64::NAN), 0.0, ROUNDING);
            check.equal("its largest logit", after, f.max_abs_logit_before, ROUNDING);
            check.equal("the largest of its largest head", largest, after, ROUNDING);
        }
        f.check_a_fit(of, check);
    }

    /// Checks the added losses against the model's own loss on the same passages, and that each edit covers the groups
    /// from the first one on.
    fn check_cell(rows: &[Row<Self>], check: &mut InvariantChecker) {
        for found in rows.iter().map(|row| &row.found) {
            let own = rows.iter().map(|row| &row.found);
            let own =
                own.clone().find(|own| own.edit() == Some(Edit::Own) && own.group == found.group);
            check.holds(own.is_some(), || format!("group {} has no row own", found.group));
            if let Some(own) = own {
                let delta = found.loss_nats - own.loss_nats;
                check.within(
                    "delta_loss_nats",
                    found.delta_loss_nats,
                    delta - ROUNDING,
                    delta + ROUNDING,
                );
                let [before, of_own] = [found, own].map(|found| found.max_abs_logit_before);
                check.equal("max_abs_logit_before of a group", before, of_own, 0.0);
            }
            let [first, found_of] = [&rows[0].found, found].map(|f| (f.passages, f.n));
            check.holds(first == found_of, || "passages of several sizes".to_owned());
        }
        for (edit, groups) in by_key(rows.iter().map(|row| (row.found.edit(), row.found.group))) {
            let whole = groups.iter().copied().eq(0..groups.len());
            check.holds(whole, || {
                format!("{edit:?} is of groups {groups:?}, not of the first ones")
            });
        }
    }
}

impl InterventionMeasurement {
    fn check_a_fit(&self, of: &ModelKey, check: &mut InvariantChecker) {
        let (Some(epsilon), Some(rank), Some(reached)) = (self.epsilon, self.rank, self.reached)
        else {
            return;
        };
        let heads = of.layers * of.heads;
        check.at_least("epsilon", epsilon, f64::MIN_POSITIVE);
        let width = of.head_dimension().map_or(f64::NAN, |d_head| d_head as f64);
        check.within("rank", rank as f64, 1.0, width.max(self.n as f64));
        check.within("reached", reached as f64, 0.0, heads as f64);
        let all = self.outcome != Some(Outcome::Infeasible);
        check.holds(all == (reached == heads), || {
            format!(
                "{reached} of {heads} heads reached ε, and the worst outcome is {:?}",
                self.outcome
            )
        });
        if all {
            check.at_most("kl_nats exceeds ε", self.kl_nats, epsilon, ROUNDING);
        }
        if rank as f64 >= width {
            // A head's own queries and keys are one of the starts, and they reach every ε.
            check.holds(all, || "a fit at the heads' own rank did not reach ε".to_owned());
            let before = self.max_abs_logit_before;
            let after = self.max_abs_logit_after;
            check.at_most("a fit's logits exceed the head's own", after, before, 1e-5);
        }
    }
}

#[cfg(test)]
mod tests;
