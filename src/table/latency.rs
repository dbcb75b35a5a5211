//! What inference takes: by model and length.

use super::TableError;
use super::grid::{Cell, Column, Table};
use super::groups::{groups, sorted};
use super::spread::Spread;
use crate::row::{LatencyFound, Row, Rows};

/// One round of one model after so many tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyRound {
    /// Seconds to read the tokens at once.
    pub prefill_s: f64,
    /// Seconds that one token more takes.
    pub decode_s: f64,
    /// Bytes of keys and values.
    pub cache_bytes: f64,
}

/// One model after so many tokens, over its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyCell {
    /// The model's name in the definition.
    pub run: String,
    /// Its arm.
    pub arm: String,
    /// Tokens read.
    pub n: usize,
    /// The rounds, in order.
    pub rounds: Vec<LatencyRound>,
}

impl LatencyCell {
    /// The spread of a quantity over the rounds.
    pub fn over(&self, of: fn(&LatencyRound) -> f64) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(of))
    }
}

/// A study of inference, by model and n.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// The cells in order.
    pub cells: Vec<LatencyCell>,
}

impl Latencies {
    /// Gathers the rows of a study of inference.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows<LatencyFound>) -> Result<Self, TableError> {
        let cells = gather(&rows.rows);
        if cells.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path.clone(),
                why: "no finished row has a time".to_owned(),
                advice: "run the study again".to_owned(),
            });
        }
        Ok(Self { cells })
    }

    /// The cell of an arm at a length.
    pub fn at(&self, arm: &str, n: usize) -> Option<&LatencyCell> {
        self.cells.iter().find(|cell| cell.arm == arm && cell.n == n)
    }

    /// One table: times and bytes, and each against `mhsa`'s.
    pub fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(
            "latency",
            "Time to read n tokens, time of one more token, and size of the cached keys and values",
            vec![
                Column::words("run", "model"),
                Column::numbers("n", "n", None),
                Column::numbers("prefill_s", "reading n tokens", Some("s")),
                Column::numbers("decode_s", "one more token", Some("s")),
                Column::numbers("cache_bytes", "cached keys and values", Some("bytes")),
                Column::numbers("prefill_over_mhsa", "reading / multi-head", None),
                Column::numbers("decode_over_mhsa", "one token / multi-head", None),
                Column::numbers("cache_over_mhsa", "cache / multi-head", None),
                Column::numbers("rounds", "rounds", None),
            ],
        );
        for cell in &self.cells {
            let mhsa = self.at("mhsa", cell.n);
            let ratio = |of: fn(&LatencyRound) -> f64| {
                let both = cell.over(of).zip(mhsa.and_then(|mhsa| mhsa.over(of)));
                Cell::number(both.map(|(own, mhsa)| own.median / mhsa.median))
            };
            table.push(vec![
                Cell::text(&cell.run),
                Cell::count(cell.n),
                Cell::over(cell.over(|round| round.prefill_s)),
                Cell::over(cell.over(|round| round.decode_s)),
                cell.over(|round| round.cache_bytes)
                    .map_or(Cell::Missing, |bytes| Cell::count(bytes.median as usize)),
                ratio(|round| round.prefill_s),
                ratio(|round| round.decode_s),
                ratio(|round| round.cache_bytes),
                Cell::count(cell.rounds.len()),
            ]);
        }
        table.notes.push(
            "Medians over rounds, with (least–greatest) where they differ. Times are those of one machine; compare them only within a \
             table."
                .to_owned(),
        );
        vec![table]
    }
}

fn gather(rows: &[Row<LatencyFound>]) -> Vec<LatencyCell> {
    type Of = Row<LatencyFound>;
    let sorted = sorted(rows, |row| (row.of.model.run.as_str(), row.of.n, row.of.round));
    let alike = |row: &'_ Of| (row.of.model.run.clone(), row.of.model.arm.clone(), row.of.n);
    let cell = |rounds: Vec<&Of>| {
        let round = |row: &&Of| LatencyRound {
            prefill_s: row.found.prefill_s,
            decode_s: row.found.decode_s,
            cache_bytes: row.found.cache_bytes as f64,
        };
        let of = &rounds[0].of;
        LatencyCell {
            run: of.model.run.clone(),
            arm: of.model.arm.clone(),
            n: of.n,
            rounds: rounds.iter().map(round).collect(),
        }
    };
    groups(sorted, alike).into_iter().map(cell).collect()
}
