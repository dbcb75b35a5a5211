//! Singular values of targets, and of the logits that attention of any rank would give them by.

use polars::prelude::{ChunkQuantile, PolarsResult};

use super::TableError;
use super::columns::{count, groups, measured, number, numbers, word};
use super::grid::{Cell, Column, Table};
use super::rows::Rows;
use super::spread::Spread;
use super::targets;

/// One matrix of one target at one length, over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumCell {
    /// The target family.
    pub family: String,
    /// The family with its parameters.
    pub label: String,
    /// `attention`, or `logits`.
    pub matrix: String,
    /// The sequence length.
    pub n: usize,
    /// exp of the entropy of the normalised singular values, over seeds.
    pub effective_rank: Option<Spread>,
    /// Singular values above rounding, over seeds.
    pub numerical_rank: Option<Spread>,
    /// (index from 1, median over seeds of σ/σ₁).
    pub spectrum: Vec<(f64, f64)>,
    /// How many seeds.
    pub seeds: usize,
}

/// A study of singular values, by label, matrix and n.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectra {
    /// The cells in order.
    pub cells: Vec<SpectrumCell>,
    /// Cells that failed with an error and are left out.
    pub failed: usize,
}

impl Spectra {
    /// Gathers the rows of a study of singular values.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where there is none.
    pub fn of(rows: &Rows) -> Result<Self, TableError> {
        let cells = gather(rows).map_err(TableError::frame(rows.path()))?;
        if cells.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path().to_owned(),
                why: "no finished row has a singular value".to_owned(),
                advice: "run the study again".to_owned(),
            });
        }
        Ok(Self { cells, failed: rows.failed()? })
    }

    /// One table: effective ranks of attention and of logits, by target and n.
    pub fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(
            "ranks",
            "Effective rank of each target's attention and of its logits",
            vec![
                Column::words("target", "target"),
                Column::words("matrix", "matrix"),
                Column::numbers("n", "n", None),
                Column::numbers("effective_rank", "effective rank", None),
                Column::numbers("effective_rank_over_n", "of n", None),
                Column::numbers("numerical_rank", "rank to rounding", None),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        for cell in &self.cells {
            let share = |spread: Spread| spread.median / cell.n as f64;
            table.push(vec![
                Cell::text(&cell.label),
                Cell::text(&cell.matrix),
                Cell::count(cell.n),
                Cell::over(cell.effective_rank),
                Cell::number(cell.effective_rank.map(share)),
                Cell::over(cell.numerical_rank),
                Cell::count(cell.seeds),
            ]);
        }
        table.notes.push(
            "Effective rank: exp of the entropy of σ/Σσ (Roy and Vetterli 2007). Logits: those with no rank \
             limit that reach the study's error with the least max |logit|, each row shifted so that its least \
             is 0; hidden pairs, which are nobody's business, count as 0, so a factorisation that chooses \
             them may need a lower rank."
                .to_owned(),
        );
        table.note_failed(self.failed);
        vec![table]
    }
}

fn gather(rows: &Rows) -> PolarsResult<Vec<SpectrumCell>> {
    let mut frame = rows.frame().clone();
    frame.with_column(targets::label_column(rows.frame())?)?;
    let sorted = measured(&frame, &["label", "matrix", "n", "index"])?;
    let mut cells = Vec::new();
    for rows in groups(&sorted, &["family", "label", "matrix", "n"])? {
        let (Some(family), Some(label), Some(matrix), Some(n)) = (
            word(&rows, "family")?,
            word(&rows, "label")?,
            word(&rows, "matrix")?,
            count(&rows, "n")?,
        ) else {
            continue;
        };
        // One group an index, with a row a seed.
        let indices = groups(&rows, &["index"])?;
        let mut medians = Vec::with_capacity(indices.len());
        for seeds in &indices {
            let median = seeds.column("singular_value")?.f64()?.median();
            medians.push((number(seeds, "index")?, median));
        }
        let (Some(first), Some(&(_, Some(largest)))) = (indices.first(), medians.first()) else {
            continue;
        };
        let spread =
            |name| PolarsResult::Ok(Spread::of(numbers(first, name)?.into_iter().flatten()));
        let relative =
            |(index, sigma): (Option<f64>, Option<f64>)| Some((index?, sigma? / largest));
        cells.push(SpectrumCell {
            family,
            label,
            matrix,
            n,
            effective_rank: spread("effective_rank")?,
            numerical_rank: spread("numerical_rank")?,
            spectrum: medians.into_iter().filter_map(relative).collect(),
            seeds: first.column("seed")?.n_unique()?,
        });
    }
    Ok(cells)
}
