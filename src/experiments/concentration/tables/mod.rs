//! Tables of concentration: tokens and rank that hold the attention of trained heads.

#[cfg(test)]
pub mod concentration_tests;

use crate::experiments::concentration::{ConcentrationMeasurement, FarConcentration};
use crate::record::{Row, Rows};
use crate::table::Columns;
use crate::table::Table;
use crate::table::TableError;
use crate::table::error::READ_ERR;
use crate::table::groups::{groups, keep_last_steps};
use crate::targets::HeadKind;

/// A head's far part is reported only if it holds at least this share of the head's mass, on average over rows.
pub const FAR_MASS: f64 = 0.1;

/// One head of a model at its last measured step, on one group of passages.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcentratedHead {
    /// The study of its run.
    pub of: String,
    /// The run's name in that study; `None` for uniform attention.
    pub run: Option<String>,
    /// The variant.
    pub arm: String,
    /// The run's seed.
    pub seed: u64,
    /// The step of the weights.
    pub step: usize,
    /// The least relative distance that is far, in tokens.
    pub window: usize,
    /// The measurement.
    pub found: ConcentrationMeasurement,
}

impl ConcentratedHead {
    fn of_row(row: &Row<ConcentrationMeasurement>) -> Option<Self> {
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

    /// A head with uniform attention over all that it may attend to; `None` if no row is measured.
    fn uniform(n: usize, window: usize) -> Option<Self> {
        let found = ConcentrationMeasurement::of_uniform(n, window).ok()?;
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

    /// Whether the head is global.
    pub fn is_global(&self) -> bool {
        self.found.kind == HeadKind::Global
    }

    /// The number of rows of its attention that were measured.
    pub fn rows(&self) -> usize {
        self.found.rows(self.window)
    }

    /// Its far part, if that holds at least [`FAR_MASS`] of the mass.
    pub fn far(&self) -> Option<&FarConcentration> {
        self.found.far.as_ref().filter(|_| self.found.far_mass >= FAR_MASS)
    }

    /// The share of the far columns that hold 0.9 of the far mass.
    pub fn far_tokens(&self) -> Option<f64> {
        Some(self.far()?.far_tokens_90 / self.found.far_columns)
    }

    /// The rank that holds 0.9 of the far part's ‖·‖_F², over the same rank of its entries in random order.
    pub fn far_rank_of_shuffled(&self) -> Option<f64> {
        self.far().map(|far| far.far_rank_90 / far.shuffled_rank_90)
    }

    /// The model of the head: study, run and seed.
    pub fn model(&self) -> (String, Option<String>, u64) {
        (self.of.clone(), self.run.clone(), self.seed)
    }
}

/// Studies of concentration.
#[derive(Clone, Debug, PartialEq)]
pub struct Concentrations {
    /// The heads of each model at its last step, in the order of the rows.
    pub heads: Vec<ConcentratedHead>,
    /// The number of rows of failed cells.
    pub failed: usize,
}

impl Concentrations {
    /// Gathers the rows of studies of concentration.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<ConcentrationMeasurement>) -> Result<Self, TableError> {
        let heads = rows.rows.iter().filter_map(ConcentratedHead::of_row).collect();
        let why = "no finished row has a trained head";
        let mut heads = TableError::unless_empty(heads, &rows.path, why, READ_ERR)?;
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

    /// The tables, the most important first.
    pub fn tables(&self) -> Vec<Table> {
        let mut all = self.uniform();
        all.extend(self.heads.iter().cloned());
        vec![self.far_table(&all), self.whole_table(&all)]
    }

    fn far_table(&self, all: &[ConcentratedHead]) -> Table {
        let of_far = |value: fn(&FarConcentration) -> f64| {
            move |head: &ConcentratedHead| head.far().map(value)
        };
        let far_heads =
            |heads: &[&ConcentratedHead]| heads.iter().filter(|head| head.far().is_some()).count();
        let global = all.iter().filter(|head| head.is_global());
        let title = "Attention beyond the window: tokens and rank that hold it";
        table_of_heads("far", title, global)
            .sizes("heads", "heads")
            .per_group("far_heads", "heads with a far part", far_heads)
            .medians("far_mass", "far mass", |head| head.found.far_mass)
            .medians("far_columns", "far columns", |h| h.far().map(|_| h.found.far_columns))
            .medians("effective", "effective tokens / far columns", |head| {
                Some(head.far()?.far_effective_tokens / head.found.far_columns)
            })
            .medians("tokens_90", "tokens for 90 % / far columns", ConcentratedHead::far_tokens)
            .medians("top_4", "mass on the 4 largest", of_far(|far| far.far_top_4))
            .medians("top_16", "mass on 16", of_far(|far| far.far_top_16))
            .medians("top_64", "mass on 64", of_far(|far| far.far_top_64))
            .numbers("rows", "rows", ConcentratedHead::rows)
            .medians("rank_90", "rank for 90 %", of_far(|far| far.far_rank_90))
            .medians("rank_99", "rank for 99 %", of_far(|far| far.far_rank_99))
            .medians("shuffled_90", "rank for 90 %, shuffled", of_far(|far| far.shuffled_rank_90))
            .medians("shuffled_99", "rank for 99 %, shuffled", of_far(|far| far.shuffled_rank_99))
            .note(format!(
                "Far: relative distance W or more, without the first column, at the last step. \
                 Medians over heads and groups of passages of all seeds with (least–greatest); \
                 after the far mass, only heads with {FAR_MASS} or more of it. Means over rows \
                 from max(n/2, W + n/4) on. Ranks are the smallest that hold the share of ‖·‖_F². \
                 Shuffled: each row in random order. Uniform: equal attention to all columns."
            ))
            .note_failed(self.failed)
            .build()
    }

    fn whole_table(&self, all: &[ConcentratedHead]) -> Table {
        let title = "All attention: tokens and rank that hold it";
        table_of_heads("whole", title, all)
            .sizes("heads", "heads")
            .medians("sink_mass", "attention on the first token", |head| head.found.sink_mass)
            .medians("far_mass", "far mass", |head| head.found.far_mass)
            .medians("columns", "columns", |head| head.found.columns)
            .medians("effective", "effective tokens / columns", |head| {
                head.found.effective_tokens / head.found.columns
            })
            .medians("tokens_90", "tokens for 90 % / columns", |head| {
                head.found.tokens_90 / head.found.columns
            })
            .medians("top_4", "mass on the 4 largest", |head| head.found.top_4)
            .medians("top_16", "mass on 16", |head| head.found.top_16)
            .medians("top_64", "mass on 64", |head| head.found.top_64)
            .numbers("rows", "rows", ConcentratedHead::rows)
            .medians("rank_90", "rank for 90 %", |head| head.found.rank_90)
            .medians("rank_99", "rank for 99 %", |head| head.found.rank_99)
            .medians("stable_rank", "stable rank", |head| head.found.stable_rank)
            .note("The same rows, and all heads. Columns are the unmasked ones of a row.")
            .note_failed(self.failed)
            .build()
    }
}

/// A table with one row per group of heads that agree in its key columns.
fn table_of_heads<'r>(
    name: &str,
    title: &str,
    heads: impl IntoIterator<Item = &'r ConcentratedHead>,
) -> Columns<'r, ConcentratedHead> {
    let key = |head: &'r ConcentratedHead| {
        (&head.of, &head.run, head.found.kind, head.found.n, head.window)
    };
    Table::from_groups(name, title, groups(heads, key))
        .words("run", "run", |head| head.run.as_deref().unwrap_or("uniform"))
        .words("kind", "kind", |head| head.found.kind.to_string())
        .numbers("n", "n", |head| head.found.n)
        .numbers("window", "window W", |head| head.window)
        .numbers("d", "d_head", |head| head.run.as_ref().map(|_| head.found.rank))
}
