//! Tables of inference latency, by model and length.

use crate::experiments::latency::LatencyMeasurement;
use crate::record::{Row, Rows};
use crate::table::groups::{groups, sorted};
use crate::table::{Spread, Table, TableError};

/// One model after reading n tokens, over its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyGroup {
    /// The model's name in the definition.
    pub run: String,
    /// Its variant.
    pub arm: String,
    /// The number of tokens read.
    pub n: usize,
    /// The rounds, in order.
    pub rounds: Vec<LatencyMeasurement>,
}

impl LatencyGroup {
    /// The median and range of a quantity over the rounds.
    pub fn over(&self, of: fn(&LatencyMeasurement) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(of))
    }
}

/// A study of inference latency, by model and n.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// The cells in order.
    pub cells: Vec<LatencyGroup>,
}

impl Latencies {
    /// Gathers the rows of a study of inference latency.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<LatencyMeasurement>) -> Result<Self, TableError> {
        let sorted = sorted(&rows.rows, |row| (&row.of.model.run, row.of.n, row.of.round));
        let alike = |row: &Row<LatencyMeasurement>| {
            (row.of.model.run.clone(), row.of.model.arm.clone(), row.of.n)
        };
        let cell = |rounds: Vec<&Row<LatencyMeasurement>>| {
            let (run, arm, n) = alike(rounds[0]);
            let rounds = rounds.iter().map(|row| row.found.clone()).collect();
            LatencyGroup { run, arm, n, rounds }
        };
        let cells = groups(sorted, alike).into_iter().map(cell).collect();
        let (why, advice) = ("no finished row has a time", "run the study again");
        Ok(Self { cells: TableError::unless_empty(cells, &rows.path, why, advice)? })
    }

    /// The cell of a variant at a length.
    pub fn at(&self, arm: &str, n: usize) -> Option<&LatencyGroup> {
        self.cells.iter().find(|cell| cell.arm == arm && cell.n == n)
    }

    /// One table: times and bytes, and their ratios to those of `mhsa`.
    pub fn tables(&self) -> Vec<Table> {
        let ratio = |cell: &LatencyGroup, of: fn(&LatencyMeasurement) -> f64| {
            let mhsa = self.at("mhsa", cell.n)?.over(of)?;
            Some(cell.over(of)?.median / mhsa.median)
        };
        let bytes = |cell: &LatencyGroup| {
            Some(cell.over(|round| round.cache_bytes as f64)?.median as usize)
        };
        let title =
            "Time to read n tokens, time of one more token, and size of the cached keys and values";
        let table = Table::from_items("latency", title, &self.cells)
            .words("run", "model", |cell| &cell.run)
            .numbers("n", "n", |cell| cell.n)
            .numbers("prefill_s", "reading n tokens (s)", |cell| cell.over(|r| r.prefill_s))
            .numbers("decode_s", "one more token (s)", |cell| cell.over(|r| r.decode_s))
            .numbers("cache_bytes", "cached keys and values (bytes)", bytes)
            .numbers("prefill_over_mhsa", "reading / multi-head", |c| ratio(c, |r| r.prefill_s))
            .numbers("decode_over_mhsa", "one token / multi-head", |c| ratio(c, |r| r.decode_s))
            .numbers("cache_over_mhsa", "cache / multi-head", |c| {
                ratio(c, |r| r.cache_bytes as f64)
            })
            .numbers("rounds", "rounds", |cell| cell.rounds.len())
            .note(
                "Medians over rounds, with (least–greatest) where they differ. Times are those of \
                 one machine; compare them only within a table.",
            );
        vec![table.build()]
    }
}
