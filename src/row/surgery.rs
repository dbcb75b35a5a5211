//! The rows of trained models whose heads were given other attention.

use super::kind::{Kind, Row};
use super::laws::{Laws, ROUNDING};
use super::part::record;
use super::seconds::to_milliseconds;
use super::trained_model::ModelOf;
use crate::fit::Outcome;
use crate::predict::{Edit, Operated};

record! {
    /// A trained model on a group of passages, with other attention in the place of every head's own.
    pub struct SurgeryFound {
        /// what was put in its place: `own` for nothing
        edit: String,
        /// of a fit: ε
        #[unit = "nats"]
        epsilon: Option<f64>,
        /// of a fit: its rank
        rank: Option<usize>,
        /// of `top-k` and `window`: columns that are left; of edits of keys: powers of the position
        size: Option<usize>,
        /// which group of passages
        group: usize,
        /// how many are in it
        passages: usize,
        /// tokens of one
        n: usize,
        /// mean cross-entropy of their tokens after the first
        #[unit = "nats"]
        loss_nats: f64,
        /// that less the loss of the row `own`
        #[unit = "nats"]
        delta_loss_nats: f64,
        /// max |z| of QKᵀ/√d over every head of the model as it is
        #[unit = "nats"]
        max_abs_logit_before: f64,
        /// the same after the edit; empty where nothing is made of queries and keys
        #[unit = "nats"]
        max_abs_logit_after: Option<f64>,
        /// the same of the head that was the largest before
        #[unit = "nats"]
        max_abs_logit_of_largest: Option<f64>,
        /// KL of what stands in the place of the attention from it, mean over rows and heads; empty where columns are
        /// missing
        #[unit = "nats"]
        kl_nats: Option<f64>,
        /// ½ Σ|P − P̃|, mean over rows and heads
        total_variation: f64,
        /// of a fit: heads whose ε was reached
        reached: Option<usize>,
        /// of a fit: how that of the worst head ended
        outcome: Option<Outcome>,
        /// of the edit, without what it learned first
        #[unit = "s"]
        wall_time_s: f64,
    }
}

impl SurgeryFound {
    /// What was found on a group of so many passages of n tokens.
    pub fn of(found: &Operated, passages: usize, n: usize) -> Self {
        Self {
            edit: found.edit.name().to_owned(),
            epsilon: found.edit.fit().map(|(epsilon, _)| epsilon),
            rank: found.edit.fit().map(|(_, rank)| rank),
            size: found.edit.size(),
            group: found.group,
            passages,
            n,
            loss_nats: found.loss_nats,
            delta_loss_nats: found.loss_nats - found.own_loss_nats,
            max_abs_logit_before: found.max_abs_logit_before,
            max_abs_logit_after: found.max_abs_logit_after,
            max_abs_logit_of_largest: found.max_abs_logit_of_largest,
            kl_nats: found.kl_nats,
            total_variation: found.total_variation,
            reached: found.fitted.map(|(reached, _)| reached),
            outcome: found.fitted.map(|(_, outcome)| outcome),
            wall_time_s: to_milliseconds(found.wall_time_s),
        }
    }

    /// The edit; none where its numbers are not those that it has.
    pub fn edit(&self) -> Option<Edit> {
        let fit = match (self.epsilon, self.rank) {
            (None, None) => None,
            (epsilon, rank) => Some((epsilon?, rank?)),
        };
        Edit::from_parts(&self.edit, fit, self.size)
    }
}

impl Kind for SurgeryFound {
    type Of = ModelOf;

    const NAME: &'static str = "surgery";
    const VERSION: u32 = 1;

    fn laws(row: &Row<Self>, laws: &mut Laws) {
        let (of, f) = (&row.of, &row.found);
        laws.at(format!(
            "{} {} {:?} {:?} {:?} of group {}",
            row.cell, f.edit, f.epsilon, f.rank, f.size, f.group
        ));
        let edit = f.edit();
        laws.holds(edit.is_some(), || "is no edit, or has other numbers than it has".to_owned());
        let Some(edit) = edit else { return };
        laws.there("reached", f.reached.as_ref(), edit.fit().is_some());
        laws.there("outcome", f.outcome.as_ref(), edit.fit().is_some());
        laws.there("max_abs_logit_after", f.max_abs_logit_after.as_ref(), edit.has_logits());
        let of_largest = f.max_abs_logit_of_largest.as_ref();
        laws.there("max_abs_logit_of_largest", of_largest, edit.has_logits());
        laws.there("kl_nats", f.kl_nats.as_ref(), !edit.cuts());
        laws.within("n", f.n as f64, 2.0, of.context as f64);
        laws.at_least("passages", f.passages as f64, 1.0);
        laws.at_least("loss_nats", f.loss_nats, 0.0);
        laws.at_least("max_abs_logit_before", f.max_abs_logit_before, 0.0);
        laws.at_least("wall_time_s", f.wall_time_s, 0.0);
        if let Some(size) = f.size {
            laws.at_least("size", size as f64, 1.0);
        }
        let (after, largest) = (f.max_abs_logit_after, f.max_abs_logit_of_largest);
        if let (Some(after), Some(largest)) = (after, largest) {
            laws.within("max_abs_logit_of_largest", largest, 0.0, after);
        }
        laws.within("total_variation", f.total_variation, 0.0, 1.0 + ROUNDING);
        if let Some(kl_nats) = f.kl_nats {
            laws.at_least("kl_nats", kl_nats, 0.0);
            // Pinsker's inequality of each row, and Jensen's over rows and heads.
            let least = (f.total_variation - ROUNDING).max(0.0).powi(2) * 2.0;
            laws.at_most("total_variation is more than kl_nats allows", least, kl_nats, ROUNDING);
        }
        if edit == Edit::Own {
            laws.within("the difference of a model from itself", f.delta_loss_nats, 0.0, 0.0);
            laws.within("its kl_nats", f.kl_nats.unwrap_or(f64::NAN), 0.0, ROUNDING);
            laws.equal("its largest logit", after, f.max_abs_logit_before, ROUNDING);
            laws.equal("the largest of its largest head", largest, after, ROUNDING);
        }
        f.laws_of_a_fit(of, laws);
    }

    /// Losses are held against the model's own on the same passages, and each edit was done to the groups from the
    /// first on.
    fn laws_of_cell(rows: &[Row<Self>], laws: &mut Laws) {
        let mut edits: Vec<(Option<Edit>, Vec<usize>)> = Vec::new();
        for found in rows.iter().map(|row| &row.found) {
            let own = rows.iter().map(|row| &row.found);
            let own =
                own.clone().find(|own| own.edit() == Some(Edit::Own) && own.group == found.group);
            laws.holds(own.is_some(), || format!("group {} has no row own", found.group));
            if let Some(own) = own {
                let delta = found.loss_nats - own.loss_nats;
                laws.within(
                    "delta_loss_nats",
                    found.delta_loss_nats,
                    delta - ROUNDING,
                    delta + ROUNDING,
                );
                let [before, of_own] = [found, own].map(|found| found.max_abs_logit_before);
                laws.equal("max_abs_logit_before of a group", before, of_own, 0.0);
            }
            let [first, found_of] = [&rows[0].found, found].map(|f| (f.passages, f.n));
            laws.holds(first == found_of, || "passages of several sizes".to_owned());
            match edits.iter_mut().find(|(edit, _)| *edit == found.edit()) {
                Some((_, groups)) => groups.push(found.group),
                None => edits.push((found.edit(), vec![found.group])),
            }
        }
        for (edit, groups) in edits {
            let whole = groups.iter().copied().eq(0..groups.len());
            laws.holds(whole, || {
                format!("{edit:?} is of groups {groups:?}, not of the first ones")
            });
        }
    }
}

impl SurgeryFound {
    fn laws_of_a_fit(&self, of: &ModelOf, laws: &mut Laws) {
        let (Some(epsilon), Some(rank), Some(reached)) = (self.epsilon, self.rank, self.reached)
        else {
            return;
        };
        let heads = of.layers * of.heads;
        laws.at_least("epsilon", epsilon, f64::MIN_POSITIVE);
        let width = of.d_model.map_or(f64::NAN, |d_model| (d_model / of.heads) as f64);
        laws.within("rank", rank as f64, 1.0, width);
        laws.within("reached", reached as f64, 0.0, heads as f64);
        let all = self.outcome != Some(Outcome::Infeasible);
        laws.holds(all == (reached == heads), || {
            format!(
                "{reached} of {heads} heads reached ε, and the worst outcome is {:?}",
                self.outcome
            )
        });
        if all {
            laws.at_most("kl_nats exceeds ε", self.kl_nats, epsilon, ROUNDING);
        }
        if rank as f64 == width {
            // A head's own queries and keys are a start, which reaches every ε.
            laws.holds(all, || "a fit at the heads' own rank did not reach ε".to_owned());
            let before = self.max_abs_logit_before;
            let after = self.max_abs_logit_after;
            laws.at_most("a fit's logits exceed the head's own", after, before, 1e-5);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fit::{Effort, SearchOptions};
    use crate::lm::{Model, ModelShape, TrainDefinition};
    use crate::predict::Surgery;

    const TOKENS: usize = 24;

    type Alteration = fn(&mut SurgeryFound);

    /// Rows of a small model at its start, of a deviation at which attention is far from uniform, after `edits`; what is
    /// learned is learned on the first group.
    fn rows(edits: &[Edit], fit_groups: usize) -> Vec<Row<SurgeryFound>> {
        let definition = TrainDefinition {
            layers: 2,
            d_model: 16,
            heads: 2,
            window: 7,
            context: TOKENS,
            arm: crate::lm::Arm::Ls,
            ..TrainDefinition::default()
        };
        let model = Model::new(ModelShape::new(&definition, 19), 0.5, 3).unwrap();
        let passage = |at: u32| -> Vec<u32> {
            (0..TOKENS as u32).map(|i| (i * i * 7 + i / 3 + at * i + at) % 19).collect()
        };
        let groups = [vec![passage(0), passage(1)], vec![passage(2), passage(3)]];
        let effort = Effort { iterations: 800, relative_decrease: 1e-5, ..Effort::default() };
        let search = SearchOptions {
            starts: 0,
            polished: 1,
            passes: 0,
            rough: effort,
            fine: effort,
            ..SearchOptions::default()
        };
        let surgery = Surgery { model: &model, edits, fit_groups, search };
        let mut found = Vec::new();
        let ended = surgery.run(&groups[0], &groups, &AtomicBool::new(false), |operated| {
            found.push(SurgeryFound::of(&operated, 2, TOKENS));
            Ok(())
        });
        assert!(ended.unwrap());
        let of = ModelOf {
            of: None,
            run: "ls".to_owned(),
            arm: "ls".to_owned(),
            seed: Some(3),
            corpus: None,
            layers: 2,
            d_model: Some(16),
            heads: 2,
            global_heads: Some(1),
            window: Some(7),
            context: TOKENS,
            batch: None,
            steps: None,
            learning_rate: None,
            recall: None,
            step: None,
        };
        let row = |found| Row {
            study: "s".to_owned(),
            cell: "ls/s3".to_owned(),
            of: of.clone(),
            found,
            settings: String::new(),
        };
        found.into_iter().map(row).collect()
    }

    fn breaches(rows: &[Row<SurgeryFound>]) -> Vec<String> {
        let mut laws = Laws::default();
        rows.iter().for_each(|row| SurgeryFound::laws(row, &mut laws));
        SurgeryFound::laws_of_cell(rows, &mut laws);
        laws.breaches
    }

    fn of(rows: &[Row<SurgeryFound>], edit: Edit) -> &SurgeryFound {
        rows.iter().map(|row| &row.found).find(|found| found.edit() == Some(edit)).unwrap()
    }

    #[test]
    fn every_edit_gives_rows_that_hold_and_costs_what_it_must() {
        use Edit::{Lag, Own, Position, PositionAndLag, Ramp, Uniform};
        let fits = [(0.1, 8), (1e-6, 8), (0.1, 2)];
        let cuts = [Edit::Largest { count: 3 }, Edit::Largest { count: TOKENS }];
        let windows = [Edit::Last { window: 3 }, Edit::Last { window: TOKENS }];
        let flat = [Edit::Flat { degree: 1 }, Edit::FlatSlope { degree: 1 }];
        let detrended = [Edit::Detrended { degree: 1 }, Edit::DetrendedSlope { degree: 1 }];
        let mut edits = vec![Uniform, Ramp, Position, Lag, PositionAndLag];
        edits.extend([cuts, windows, flat, detrended].concat());
        edits.extend(fits.map(|(epsilon, rank)| Edit::Fit { epsilon, rank }));
        let rows = rows(&edits, 1);
        assert_eq!(breaches(&rows), Vec::<String>::new());
        assert_eq!(rows.len(), 2 * (1 + edits.len()) - fits.len(), "fits are of one group");
        assert_eq!(of(&rows, Own).delta_loss_nats, 0.0);
        // What leaves all columns leaves the model as it is.
        for edit in [cuts[1], windows[1]] {
            let found = of(&rows, edit);
            let off = found.delta_loss_nats.abs().max(found.total_variation);
            assert!(off < 1e-5, "{edit:?}: {off}");
        }
        // A form is no farther than those that it holds, where it was learned.
        let kl = |edit: Edit| of(&rows, edit).kl_nats.unwrap();
        for (wide, narrow) in [
            (Ramp, Uniform),
            (Position, Ramp),
            (Lag, Ramp),
            (PositionAndLag, Position),
            (PositionAndLag, Lag),
        ] {
            assert!(
                kl(wide) < kl(narrow) + 1e-6,
                "{wide:?} {}, {narrow:?} {}",
                kl(wide),
                kl(narrow)
            );
        }
        // A fit is as near as it was asked to be, and one that is nearer costs less.
        let [loose, strict, _] = fits.map(|(epsilon, rank)| of(&rows, Edit::Fit { epsilon, rank }));
        assert_eq!((loose.reached, strict.reached), (Some(4), Some(4)));
        assert!(loose.kl_nats.unwrap() > 10.0 * strict.kl_nats.unwrap(), "{loose:?}");
        assert!(strict.delta_loss_nats.abs() < 0.01, "{strict:?}");
        assert!(of(&rows, Uniform).delta_loss_nats.abs() > 0.01);
        // The slope brings attention nearer than it is without.
        for pair in [flat, detrended] {
            let [without, sloped] = pair.map(|edit| of(&rows, edit).kl_nats.unwrap());
            assert!(sloped < without, "{pair:?}: {sloped} against {without}");
        }
    }

    #[test]
    fn rows_that_were_altered_break_a_law() {
        let edits = [Edit::Last { window: 3 }, Edit::Fit { epsilon: 0.1, rank: 8 }];
        let rows = rows(&edits, 2);
        assert_eq!(breaches(&rows), Vec::<String>::new());
        let alterations: [(&str, Alteration); 14] = [
            ("edit", |f| f.edit = "uniform".to_owned()),
            ("epsilon", |f| f.epsilon = Some(f.epsilon.unwrap_or(0.1) * 1e-6)),
            ("rank", |f| f.rank = f.rank.map_or(Some(3), |rank| Some(rank + 1))),
            ("size", |f| f.size = f.size.map_or(Some(2), |size| Some(size + 1))),
            ("group", |f| f.group += 1),
            ("n", |f| f.n += 1),
            ("loss_nats", |f| f.loss_nats += 0.01),
            ("delta_loss_nats", |f| f.delta_loss_nats += 0.01),
            ("max_abs_logit_before", |f| f.max_abs_logit_before += 0.1),
            ("max_abs_logit_after", |f| f.max_abs_logit_after = Some(0.0)),
            ("max_abs_logit_of_largest", |f| f.max_abs_logit_of_largest = None),
            ("kl_nats", |f| f.kl_nats = f.kl_nats.map_or(Some(0.1), |_| None)),
            ("total_variation", |f| f.total_variation = 1.1),
            ("reached", |f| f.reached = f.reached.map_or(Some(1), |reached| Some(reached - 1))),
        ];
        for (column, alter) in alterations {
            for at in 0..rows.len() {
                let mut altered = rows.clone();
                alter(&mut altered[at].found);
                let edit = &rows[at].found.edit;
                assert!(!breaches(&altered).is_empty(), "{column} of {edit}");
            }
        }
    }
}
