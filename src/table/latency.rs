//! What inference takes: by model and length.

use polars::prelude::{DataFrame, PolarsResult};

use super::TableError;
use super::columns::{count, groups, measured, numbers, word};
use super::grid::{Cell, Column, Table};
use super::rows::Rows;
use super::spread::Spread;

/// One model after so many tokens, over its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyCell {
    /// The model's name in the definition.
    pub run: String,
    /// Its arm.
    pub arm: String,
    /// Tokens read.
    pub n: usize,
    /// Seconds to read them at once.
    pub prefill_s: Option<Spread>,
    /// Seconds that one token more takes.
    pub decode_s: Option<Spread>,
    /// Bytes of keys and values.
    pub cache_bytes: Option<Spread>,
    /// How many rounds.
    pub rounds: usize,
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
    pub fn of(rows: &Rows) -> Result<Self, TableError> {
        let cells = gather(rows.frame()).map_err(TableError::frame(rows.path()))?;
        if cells.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path().to_owned(),
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
            "Reading n tokens, one token more, and what is kept for it",
            vec![
                Column::words("run", "model"),
                Column::numbers("n", "n", None),
                Column::numbers("prefill_s", "prefill", Some("s")),
                Column::numbers("decode_s", "one token more", Some("s")),
                Column::numbers("cache_bytes", "keys and values", Some("bytes")),
                Column::numbers("prefill_over_mhsa", "prefill / mhsa's", None),
                Column::numbers("decode_over_mhsa", "one token / mhsa's", None),
                Column::numbers("cache_over_mhsa", "bytes / mhsa's", None),
                Column::numbers("rounds", "rounds", None),
            ],
        );
        for cell in &self.cells {
            let mhsa = self.at("mhsa", cell.n);
            let ratio = |of: fn(&LatencyCell) -> Option<Spread>| {
                let both = of(cell).zip(mhsa.and_then(of));
                Cell::number(both.map(|(own, mhsa)| own.median / mhsa.median))
            };
            table.push(vec![
                Cell::text(&cell.run),
                Cell::count(cell.n),
                Cell::over(cell.prefill_s),
                Cell::over(cell.decode_s),
                cell.cache_bytes.map_or(Cell::Missing, |b| Cell::count(b.median as usize)),
                ratio(|c| c.prefill_s),
                ratio(|c| c.decode_s),
                ratio(|c| c.cache_bytes),
                Cell::count(cell.rounds),
            ]);
        }
        table.notes.push(
            "Medians over rounds, with [least, greatest] where they differ. Times are of this machine; compare \
             them within a table."
                .to_owned(),
        );
        vec![table]
    }
}

fn gather(rows: &DataFrame) -> PolarsResult<Vec<LatencyCell>> {
    let sorted = measured(rows, &["run", "n", "round"])?;
    let mut cells = Vec::new();
    for rounds in groups(&sorted, &["run", "arm", "n"])? {
        let (Some(run), Some(arm), Some(n)) =
            (word(&rounds, "run")?, word(&rounds, "arm")?, count(&rounds, "n")?)
        else {
            continue;
        };
        let spread =
            |name| PolarsResult::Ok(Spread::of(numbers(&rounds, name)?.into_iter().flatten()));
        cells.push(LatencyCell {
            run,
            arm,
            n,
            prefill_s: spread("prefill_s")?,
            decode_s: spread("decode_s")?,
            cache_bytes: spread("cache_bytes")?,
            rounds: rounds.height(),
        });
    }
    Ok(cells)
}
