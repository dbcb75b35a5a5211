//! Trained models whose heads attend otherwise: by model and edit, over groups of passages.

use super::TableError;
use super::grid::{Cell, Column, Table};
use super::groups::groups;
use super::interval::Interval;
use super::spread::Spread;
use crate::predict::{Edit, EditedHeads};
use crate::row::{Row, Rows, SurgeryFound};

/// A loss by less than this is harmless, in nats per token.
pub const HARMLESS_NATS: f64 = 0.01;

/// A model after an edit, over groups of passages.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatedModel {
    /// The study of its run.
    pub of: String,
    /// The run's name.
    pub run: String,
    /// The arm.
    pub arm: String,
    /// The seed.
    pub seed: usize,
    /// The step of the weights.
    pub step: usize,
    /// Tokens of a passage.
    pub n: usize,
    /// The window of its local heads, where it is known.
    pub window: Option<usize>,
    /// The head dimension d, where it is known.
    pub d_head: Option<usize>,
    /// Heads of all layers.
    pub heads: usize,
    /// The edit.
    pub edit: Edit,
    /// The heads that it was done to.
    pub edited_heads: EditedHeads,
    /// The loss less that of the model as it is, by group, in nats per token.
    pub deltas: Vec<f64>,
    /// The largest |logit| of QKᵀ/√d in the model as it is, over all groups.
    pub before: f64,
    /// After the edit, where it has one.
    pub after: Option<f64>,
    /// Of the head that was the largest before.
    pub after_of_largest: Option<f64>,
    /// KL from the unaltered attention, mean over groups, where it is finite.
    pub kl_nats: Option<f64>,
    /// Total variation, mean over groups.
    pub total_variation: f64,
    /// Of fits: the fewest heads of any group whose ε was reached.
    pub reached: Option<usize>,
}

impl OperatedModel {
    /// The mean of the deltas.
    pub fn delta(&self) -> f64 {
        self.deltas.iter().sum::<f64>() / self.deltas.len() as f64
    }

    /// The deltas' mean with its 95 % interval over groups; none with fewer than two.
    pub fn interval(&self) -> Option<Interval> {
        Interval::of(self.deltas.iter().copied())
    }

    /// Whether every head's ε was reached.
    pub fn is_reached(&self) -> bool {
        self.reached == Some(self.heads)
    }

    fn model(&self) -> (&str, &str, usize, usize) {
        (&self.of, &self.run, self.step, self.seed)
    }

    fn setting(&self) -> (&str, &str, usize, Edit, EditedHeads) {
        (&self.of, &self.run, self.step, self.edit, self.edited_heads)
    }
}

/// The ε of fits at one rank from which on a model is not harmed.
#[derive(Clone, Debug, PartialEq)]
pub struct HarmlessError<'r> {
    /// A fit of the model.
    pub model: &'r OperatedModel,
    /// The rank of the fits.
    pub rank: usize,
    /// The largest ε of the study at which, and at each smaller one, every head reached ε and the loss grows by less than
    /// [`HARMLESS_NATS`] in the mean.
    pub epsilon: Option<f64>,
    /// The same with the whole 95 % interval over groups under it.
    pub epsilon_surely: Option<f64>,
}

/// A study of trained models whose heads attend otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Surgeries {
    /// Each model after each edit, in the order of the rows.
    pub models: Vec<OperatedModel>,
    /// Rows of cells that failed.
    pub failed: usize,
}

impl Surgeries {
    /// Gathers the rows of such a study.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<SurgeryFound>) -> Result<Self, TableError> {
        let key = |row: &Row<SurgeryFound>| {
            let found = &row.found;
            (row.cell.clone(), row.study.clone(), found.edit(), found.edited_heads())
        };
        let models: Vec<OperatedModel> =
            groups(&rows.rows, key).into_iter().filter_map(|of| operated(&of)).collect();
        if models.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path.clone(),
                why: "no finished row has a model after an edit".to_owned(),
                advice: "read the column err, and run the study again".to_owned(),
            });
        }
        Ok(Self { models, failed: rows.failed })
    }

    /// The models after fits at one rank, by rank from the heads' own down and, of each, by model.
    pub fn fits(&self) -> Vec<Vec<&OperatedModel>> {
        let fits = self.models.iter().filter(|model| model.edit.fit().is_some());
        let key = |model: &OperatedModel| {
            let (of, run, step, seed) = model.model();
            (model.edit.fit().map(|(_, rank)| rank), of.to_owned(), run.to_owned(), step, seed)
        };
        let mut found = groups(fits, key);
        found.sort_by_key(|of| std::cmp::Reverse(of[0].edit.fit().map(|(_, rank)| rank)));
        found
    }

    /// The ε from which on fits are harmless, by rank and model.
    pub fn harmless(&self) -> Vec<HarmlessError<'_>> {
        let each = |fits: Vec<&'_ OperatedModel>| {
            let mut by_epsilon: Vec<(f64, &OperatedModel)> =
                fits.iter().filter_map(|&m| Some((m.edit.fit()?.0, m))).collect();
            by_epsilon.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let last = |holds: &dyn Fn(&OperatedModel) -> bool| {
                let holding = by_epsilon.iter().take_while(|(_, m)| m.is_reached() && holds(m));
                holding.last().map(|(epsilon, _)| *epsilon)
            };
            (
                last(&|model| model.delta() < HARMLESS_NATS),
                last(&|model| model.interval().is_some_and(|i| i.high < HARMLESS_NATS)),
            )
        };
        self.fits()
            .into_iter()
            .filter_map(|fits| {
                let (model, rank) = (fits[0], fits[0].edit.fit()?.1);
                let (epsilon, epsilon_surely) = each(fits);
                Some(HarmlessError { model, rank, epsilon, epsilon_surely })
            })
            .collect()
    }

    /// The tables: what each edit costs, and the error of fits that costs nothing.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.edits_table()];
        let harmless = self.harmless();
        if !harmless.is_empty() {
            tables.push(harmless_table(&harmless));
        }
        tables
    }

    fn edits_table(&self) -> Table {
        let mut table = Table::new(
            "surgery",
            "Loss added by replacing the attention of heads",
            vec![
                Column::words("run", "run"),
                Column::numbers("n", "n", None),
                Column::words("edit", "replacement"),
                Column::words("heads", "heads"),
                Column::numbers("epsilon", "ε", Some("nats")),
                Column::numbers("rank", "rank r", None),
                Column::numbers("size", "size (k, W, r or degree)", None),
                Column::numbers("delta_loss", "added loss", Some("nats")),
                Column::numbers("delta_loss_low", "95 % CI, lowest", Some("nats")),
                Column::numbers("delta_loss_high", "95 % CI, highest", Some("nats")),
                Column::numbers("before", "max |logit| before", None),
                Column::numbers("after", "max |logit| after", None),
                Column::numbers("of_largest", "after, of the largest head before", None),
                Column::numbers("kl", "KL from the original attention", Some("nats")),
                Column::numbers("total_variation", "total variation", None),
                Column::numbers("reached", "heads within ε", None),
                Column::numbers("groups", "groups of passages", None),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        let other = self.models.iter().filter(|model| model.edit != Edit::Own);
        for seeds in groups(other, |m| {
            let (of, run, step, edit, heads) = m.setting();
            (of.to_owned(), run.to_owned(), step, edit, heads)
        }) {
            let first = seeds[0];
            let over = |value: &dyn Fn(&OperatedModel) -> Option<f64>| {
                Cell::over(Spread::of(seeds.iter().filter_map(|model| value(model))))
            };
            let ends = |end: &dyn Fn(Interval) -> f64| -> Option<Spread> {
                Spread::of(seeds.iter().filter_map(|model| model.interval().map(end)))
            };
            let fit = first.edit.fit();
            let reached = seeds.iter().filter_map(|model| model.reached).min();
            table.push(vec![
                Cell::text(&first.run),
                Cell::count(first.n),
                Cell::text(first.edit.name()),
                Cell::text(first.edited_heads.name()),
                fit.map_or(Cell::Missing, |(epsilon, _)| Cell::Setting(epsilon)),
                fit.map_or(Cell::Missing, |(_, rank)| Cell::count(rank)),
                first.edit.size().map_or(Cell::Missing, Cell::count),
                over(&|model| Some(model.delta())),
                Cell::number(ends(&|interval| interval.low).map(|spread| spread.low)),
                Cell::number(ends(&|interval| interval.high).map(|spread| spread.high)),
                over(&|model| Some(model.before)),
                over(&|model| model.after),
                over(&|model| model.after_of_largest),
                over(&|model| model.kl_nats),
                over(&|model| Some(model.total_variation)),
                reached.map_or(Cell::Missing, Cell::count),
                Cell::count(seeds.iter().map(|model| model.deltas.len()).min().unwrap_or(0)),
                Cell::count(seeds.len()),
            ]);
        }
        table.notes.push(
            "Added loss per token of held-out passages, mean over groups; medians over seeds with (least–greatest). Intervals are over \
             groups, the lowest and the highest end of any seed. KL and total variation are means over heads and rows. Heads \
             within ε: the fewest of any group and seed."
                .to_owned(),
        );
        table.note_failed(self.failed);
        table
    }
}

fn harmless_table(harmless: &[HarmlessError<'_>]) -> Table {
    let mut table = Table::new(
        "harmless",
        "Largest error ε in the attention of every head that adds less than 0.01 nats per token",
        vec![
            Column::words("run", "run"),
            Column::numbers("n", "n", None),
            Column::numbers("seed", "seed", None),
            Column::numbers("rank", "rank r", None),
            Column::numbers("epsilon", "ε by the mean added loss", Some("nats")),
            Column::numbers("epsilon_surely", "ε by the whole interval", Some("nats")),
        ],
    );
    for one in harmless {
        let setting = |epsilon: Option<f64>| epsilon.map_or(Cell::Missing, Cell::Setting);
        table.push(vec![
            Cell::text(&one.model.run),
            Cell::count(one.model.n),
            Cell::count(one.model.seed),
            Cell::count(one.rank),
            setting(one.epsilon),
            setting(one.epsilon_surely),
        ]);
    }
    table.notes.push(
        "The largest error tried for which this holds, also at every smaller one. An en dash: it holds at none, or a head did not \
         reach ε at this rank. Intervals are over groups of passages."
            .to_owned(),
    );
    table
}

/// One model after one edit, of the rows of its groups.
fn operated(rows: &[&Row<SurgeryFound>]) -> Option<OperatedModel> {
    let first = *rows.first()?;
    let (of, found) = (&first.of, &first.found);
    let each = || rows.iter().map(|row| &row.found);
    let greatest =
        |value: fn(&SurgeryFound) -> Option<f64>| each().filter_map(value).reduce(f64::max);
    let mean = |value: fn(&SurgeryFound) -> Option<f64>| {
        each().map(value).sum::<Option<f64>>().map(|sum| sum / rows.len() as f64)
    };
    Some(OperatedModel {
        of: of.of.clone().unwrap_or_default(),
        run: of.run.clone(),
        arm: of.arm.clone(),
        seed: of.seed.unwrap_or(0) as usize,
        step: of.step.unwrap_or(0),
        n: found.n,
        window: of.window,
        d_head: of.d_model.map(|d_model| d_model / of.heads),
        heads: of.layers * of.heads,
        edit: found.edit()?,
        edited_heads: found.edited_heads(),
        deltas: each().map(|found| found.delta_loss_nats).collect(),
        before: greatest(|found| Some(found.max_abs_logit_before))?,
        after: greatest(|found| found.max_abs_logit_after),
        after_of_largest: greatest(|found| found.max_abs_logit_of_largest),
        kl_nats: mean(|found| found.kl_nats),
        total_variation: mean(|found| Some(found.total_variation))?,
        reached: each().filter_map(|found| found.reached).min(),
    })
}
