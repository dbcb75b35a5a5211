//! How few tokens, and how small a rank, hold the attention of trained heads.

use super::TableError;
use super::grid::{Cell, Column, Table};
use super::groups::{groups, keep_last_steps};
use super::spread::Spread;
use crate::pattern::HeadKind;
use crate::row::{ConcentrationFound, FarFound, Row, Rows};

/// A head's far part is told of where it has this much of its mass, in the mean.
pub const FAR_MASS: f64 = 0.1;

/// One head of a model at its last step here, on a group of passages.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcentratedHead {
    /// The study of its run.
    pub of: String,
    /// The run's name there; none of uniform attention.
    pub run: Option<String>,
    /// The arm.
    pub arm: String,
    /// The run's seed.
    pub seed: u64,
    /// The step of the weights.
    pub step: usize,
    /// What is so many tokens back or more is far.
    pub window: usize,
    /// What was found of it.
    pub found: ConcentrationFound,
}

impl ConcentratedHead {
    fn of_row(row: &Row<ConcentrationFound>) -> Option<Self> {
        let of = &row.of;
        Some(Self {
            of: of.of.clone().unwrap_or_default(),
            run: Some(of.run.clone()),
            arm: of.arm.clone(),
            seed: of.seed.unwrap_or(0),
            step: of.step.unwrap_or(0),
            window: of.window?,
            found: row.found.clone(),
        })
    }

    /// Of a head that attends to all that it sees alike; none where no row is held.
    fn uniform(n: usize, window: usize) -> Option<Self> {
        let found = ConcentrationFound::of_uniform(n, window).ok()?;
        Some(Self {
            of: String::new(),
            run: None,
            arm: String::new(),
            seed: 0,
            step: 0,
            window,
            found,
        })
    }

    /// Whether it sees everything.
    pub fn is_global(&self) -> bool {
        self.found.kind == HeadKind::Global
    }

    /// Its far part, where it has [`FAR_MASS`] of the mass.
    pub fn far(&self) -> Option<&FarFound> {
        self.found.far.as_ref().filter(|_| self.found.far_mass >= FAR_MASS)
    }

    /// The share of the far columns that hold 0.9 of the far mass.
    pub fn far_tokens(&self) -> Option<f64> {
        Some(self.far()?.far_tokens_90 / self.found.far_columns)
    }

    /// The rank that holds 0.9 of the far part's ‖·‖_F² over that of the same entries in random order.
    pub fn far_rank_of_shuffled(&self) -> Option<f64> {
        self.far().map(|far| far.far_rank_90 / far.shuffled_rank_90)
    }

    /// The model that it is of.
    pub fn model(&self) -> (String, Option<String>, u64) {
        (self.of.clone(), self.run.clone(), self.seed)
    }
}

/// Studies of concentration.
#[derive(Clone, Debug, PartialEq)]
pub struct Concentrations {
    /// The heads of each model at its last step, in the order of the rows.
    pub heads: Vec<ConcentratedHead>,
    /// Rows of cells that failed.
    pub failed: usize,
}

impl Concentrations {
    /// Gathers the rows of studies of concentration.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<ConcentrationFound>) -> Result<Self, TableError> {
        let mut heads: Vec<ConcentratedHead> =
            rows.rows.iter().filter_map(ConcentratedHead::of_row).collect();
        if heads.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path.clone(),
                why: "no finished row has a trained head".to_owned(),
                advice: "read the column err, and run the study again".to_owned(),
            });
        }
        keep_last_steps(&mut heads, ConcentratedHead::model, |head| head.step);
        Ok(Self { heads, failed: rows.failed })
    }

    /// The global heads of LS-attention, by model.
    pub fn global_of_ls(&self) -> Vec<Vec<&ConcentratedHead>> {
        let heads = self.heads.iter().filter(|head| head.arm == "ls" && head.is_global());
        groups(heads, ConcentratedHead::model)
    }

    /// Uniform attention at each length and window of the heads.
    pub fn uniform(&self) -> Vec<ConcentratedHead> {
        let sizes = groups(&self.heads, |head| (head.found.n, head.window));
        let uniform = |alike: Vec<&ConcentratedHead>| {
            ConcentratedHead::uniform(alike[0].found.n, alike[0].window)
        };
        sizes.into_iter().filter_map(uniform).collect()
    }

    /// The tables, the most telling first.
    pub fn tables(&self) -> Vec<Table> {
        let mut all = self.uniform();
        all.extend(self.heads.iter().cloned());
        vec![self.far_table(&all), self.whole_table(&all)]
    }

    fn far_table(&self, all: &[ConcentratedHead]) -> Table {
        let mut columns = of_which().to_vec();
        columns.extend([
            Column::numbers("heads", "heads", None),
            Column::numbers("far_heads", "heads with a far part", None),
            Column::numbers("far_mass", "far mass", None),
            Column::numbers("far_columns", "far columns", None),
            Column::numbers("effective", "effective tokens / far columns", None),
            Column::numbers("tokens_90", "tokens for 90 % / far columns", None),
            Column::numbers("top_4", "mass on the 4 largest", None),
            Column::numbers("top_16", "mass on 16", None),
            Column::numbers("top_64", "mass on 64", None),
            Column::numbers("rows", "rows", None),
            Column::numbers("rank_90", "rank for 90 %", None),
            Column::numbers("rank_99", "rank for 99 %", None),
            Column::numbers("shuffled_90", "rank for 90 %, shuffled", None),
            Column::numbers("shuffled_99", "rank for 99 %, shuffled", None),
        ]);
        let title = "Attention beyond the window: tokens and rank that hold it";
        let mut table = Table::new("far", title, columns);
        for alike in alike(all).into_iter().filter(|alike| alike[0].is_global()) {
            let far: Vec<&ConcentratedHead> =
                alike.iter().copied().filter(|head| head.far().is_some()).collect();
            let over = |value: &dyn Fn(&ConcentratedHead, &FarFound) -> f64| {
                let values = far.iter().filter_map(|head| Some(value(head, head.far()?)));
                Cell::over(Spread::of(values))
            };
            let mut row = which(alike[0]);
            row.extend([
                Cell::count(alike.len()),
                Cell::count(far.len()),
                Cell::over(Spread::of(alike.iter().map(|head| head.found.far_mass))),
                over(&|head, _| head.found.far_columns),
                over(&|head, far| far.far_effective_tokens / head.found.far_columns),
                over(&|head, far| far.far_tokens_90 / head.found.far_columns),
                over(&|_, far| far.far_top_4),
                over(&|_, far| far.far_top_16),
                over(&|_, far| far.far_top_64),
                Cell::count(alike[0].found.rows(alike[0].window)),
                over(&|_, far| far.far_rank_90),
                over(&|_, far| far.far_rank_99),
                over(&|_, far| far.shuffled_rank_90),
                over(&|_, far| far.shuffled_rank_99),
            ]);
            table.push(row);
        }
        table.notes.push(format!(
            "Far: relative distance W or more, without the first column, at the last step. Medians over heads and groups of passages of \
             all seeds with (least–greatest); after the far mass, only heads with {FAR_MASS} or more of it. Means over rows from \
             max(n/2, W + n/4) on. Ranks are the smallest that hold the share of ‖·‖_F². Shuffled: each row in random order. \
             Uniform: equal attention to all columns."
        ));
        table.note_failed(self.failed);
        table
    }

    fn whole_table(&self, all: &[ConcentratedHead]) -> Table {
        let mut columns = of_which().to_vec();
        columns.extend([
            Column::numbers("heads", "heads", None),
            Column::numbers("sink_mass", "attention on the first token", None),
            Column::numbers("far_mass", "far mass", None),
            Column::numbers("columns", "columns", None),
            Column::numbers("effective", "effective tokens / columns", None),
            Column::numbers("tokens_90", "tokens for 90 % / columns", None),
            Column::numbers("top_4", "mass on the 4 largest", None),
            Column::numbers("top_16", "mass on 16", None),
            Column::numbers("top_64", "mass on 64", None),
            Column::numbers("rows", "rows", None),
            Column::numbers("rank_90", "rank for 90 %", None),
            Column::numbers("rank_99", "rank for 99 %", None),
            Column::numbers("stable_rank", "stable rank", None),
        ]);
        let title = "All attention: tokens and rank that hold it";
        let mut table = Table::new("whole", title, columns);
        for alike in alike(all) {
            let over = |value: fn(&ConcentrationFound) -> f64| {
                Cell::over(Spread::of(alike.iter().map(|head| value(&head.found))))
            };
            let mut row = which(alike[0]);
            row.extend([
                Cell::count(alike.len()),
                over(|f| f.sink_mass),
                over(|f| f.far_mass),
                over(|f| f.columns),
                over(|f| f.effective_tokens / f.columns),
                over(|f| f.tokens_90 / f.columns),
                over(|f| f.top_4),
                over(|f| f.top_16),
                over(|f| f.top_64),
                Cell::count(alike[0].found.rows(alike[0].window)),
                over(|f| f.rank_90),
                over(|f| f.rank_99),
                over(|f| f.stable_rank),
            ]);
            table.push(row);
        }
        table.notes.push(
            "The same rows, and all heads. Columns are the unmasked ones of a row.".to_owned(),
        );
        table.note_failed(self.failed);
        table
    }
}

/// Heads that stand in one line of a table.
fn alike(heads: &[ConcentratedHead]) -> Vec<Vec<&ConcentratedHead>> {
    groups(heads, |head| (&head.of, &head.run, head.found.kind, head.found.n, head.window))
}

fn of_which() -> [Column; 5] {
    [
        Column::words("run", "run"),
        Column::words("kind", "kind"),
        Column::numbers("n", "n", None),
        Column::numbers("window", "window W", None),
        Column::numbers("d", "d_head", None),
    ]
}

fn which(head: &ConcentratedHead) -> Vec<Cell> {
    let is_trained = head.run.is_some();
    vec![
        Cell::text(head.run.clone().unwrap_or_else(|| "uniform".to_owned())),
        Cell::text(head.found.kind.to_string()),
        Cell::count(head.found.n),
        Cell::count(head.window),
        if is_trained { Cell::count(head.found.rank) } else { Cell::Missing },
    ]
}
