//! Tables of trained models whose attention was replaced: by model and edit, over groups of passages.

use crate::experiments::ModelKey;
use crate::experiments::interventions::InterventionMeasurement;
use crate::heads::Edit;
use crate::record::{Row, Rows};
use crate::table::error::READ_ERR;
use crate::table::groups::groups;
use crate::table::{Cell, Estimate, Spread, Table, TableError};

/// An added loss below this is harmless, in nats per token.
pub const HARMLESS_NATS: f64 = 0.01;

/// A model after an edit, over groups of passages.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatedModel {
    /// The model.
    pub of: ModelKey,
    /// The number of tokens of a passage.
    pub n: usize,
    /// The edit.
    pub edit: Edit,
    /// The added loss over the unchanged model, by group, in nats per token.
    pub deltas: Vec<f64>,
    /// The largest |logit| of QKᵀ/√d in the unchanged model, over all groups.
    pub before: f64,
    /// The same after the edit, if it uses queries and keys.
    pub after: Option<f64>,
    /// The same after the edit, for the head that was the largest before.
    pub after_of_largest: Option<f64>,
    /// KL from the unchanged attention, mean over groups; `None` if it is not finite.
    pub kl_nats: Option<f64>,
    /// Total variation, mean over groups.
    pub total_variation: f64,
    /// For fits: the fewest heads in any group that reached ε.
    pub reached: Option<usize>,
}

impl OperatedModel {
    /// The mean added loss.
    pub fn delta(&self) -> f64 {
        self.deltas.iter().sum::<f64>() / self.deltas.len() as f64
    }

    /// The mean added loss with its 95 % interval over groups; `None` for fewer than two.
    pub fn interval(&self) -> Option<Estimate> {
        Estimate::interval(self.deltas.iter().copied())
    }

    /// Whether every head reached ε.
    pub fn is_reached(&self) -> bool {
        self.reached == Some(self.of.layers * self.of.heads)
    }

    /// The run and step, which seeds share.
    pub(super) fn run(&self) -> (&Option<String>, &str, Option<usize>) {
        (&self.of.of, &self.of.run, self.of.step)
    }
}

/// A study of trained models whose attention was replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Surgeries {
    /// Each model after each edit, in the order of the rows.
    pub models: Vec<OperatedModel>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

impl Surgeries {
    /// Gathers the rows of a study of interventions.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<InterventionMeasurement>) -> Result<Self, TableError> {
        let key = |row: &Row<InterventionMeasurement>| {
            let found = &row.found;
            (row.cell.clone(), row.study.clone(), found.edit())
        };
        let models: Vec<OperatedModel> =
            groups(&rows.rows, key).into_iter().filter_map(|of| operated(&of)).collect();
        let why = "no finished row has a model after an edit";
        let models = TableError::unless_empty(models, &rows.path, why, READ_ERR)?;
        Ok(Self { models, failed: rows.failed })
    }

    /// The loss that each edit adds.
    pub fn table(&self) -> Table {
        let other = self.models.iter().filter(|model| model.edit != Edit::Own);
        let ends = |models: &[&OperatedModel], end: usize| {
            Spread::of(models.iter().filter_map(|model| Some(model.interval()?.ends()?[end])))
        };
        let fewest = |models: &[&OperatedModel]| {
            models.iter().map(|model| model.deltas.len()).min().unwrap_or(0)
        };
        let of_fit = |model: &OperatedModel| model.edit.fit();
        let title = "Loss added by replacing the attention of heads";
        Table::from_groups("surgery", title, groups(other, |model| (model.run(), model.edit)))
            .words("run", "run", |model| &model.of.run)
            .numbers("n", "n", |model| model.n)
            .words("edit", "replacement", |model| model.edit.name())
            .numbers("epsilon", "ε (nats)", |m| of_fit(m).map(|fit| Cell::Setting(fit.0)))
            .numbers("rank", "rank r", |model| of_fit(model).map(|fit| fit.1))
            .numbers("size", "size (k, W or bits)", |model| model.edit.size())
            .medians("delta_loss", "added loss (nats)", OperatedModel::delta)
            .per_group("delta_loss_low", "95 % CI, lowest (nats)", |models| {
                ends(models, 0).map(|ends| ends.low)
            })
            .per_group("delta_loss_high", "95 % CI, highest (nats)", |models| {
                ends(models, 1).map(|ends| ends.high)
            })
            .medians("before", "max |logit| before", |model| model.before)
            .medians("after", "max |logit| after", |model| model.after)
            .medians("of_largest", "after, of the largest head before", |m| m.after_of_largest)
            .medians("kl", "KL from the original attention (nats)", |model| model.kl_nats)
            .medians("total_variation", "total variation", |model| model.total_variation)
            .per_group("reached", "heads within ε", |m| m.iter().filter_map(|m| m.reached).min())
            .per_group("groups", "groups of passages", fewest)
            .sizes("seeds", "seeds")
            .note(
                "Added loss per token of held-out passages, mean over groups; medians over seeds \
                 with (least–greatest). Intervals are over groups, the lowest and the highest end \
                 of any seed. KL and total variation are means over heads and rows. Heads within \
                 ε: the fewest of any group and seed.",
            )
            .note_failed(self.failed)
            .build()
    }
}

/// Combines the rows of one model and one edit over groups; `None` if a row has no valid edit.
fn operated(rows: &[&Row<InterventionMeasurement>]) -> Option<OperatedModel> {
    let first = *rows.first()?;
    let found = &first.found;
    let each = || rows.iter().map(|row| &row.found);
    let greatest = |value: fn(&InterventionMeasurement) -> Option<f64>| {
        each().filter_map(value).reduce(f64::max)
    };
    let mean = |value: fn(&InterventionMeasurement) -> Option<f64>| {
        each().map(value).sum::<Option<f64>>().map(|sum| sum / rows.len() as f64)
    };
    Some(OperatedModel {
        of: first.of.clone(),
        n: found.n,
        edit: found.edit()?,
        deltas: each().map(|found| found.delta_loss_nats).collect(),
        before: greatest(|found| Some(found.max_abs_logit_before))?,
        after: greatest(|found| found.max_abs_logit_after),
        after_of_largest: greatest(|found| found.max_abs_logit_of_largest),
        kl_nats: mean(|found| found.kl_nats),
        total_variation: mean(|found| Some(found.total_variation))?,
        reached: each().filter_map(|found| found.reached).min(),
    })
}
