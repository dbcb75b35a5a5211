//! Singular values of targets, and of the logits that attention of any rank would give them by.

use polars::prelude::{IntoLazy, PolarsResult, col};

use super::TableError;
use super::columns::{counts, grouped, words};
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
    let indices = frame
        .lazy()
        .filter(col("err").is_null())
        .group_by(["family", "label", "matrix", "n", "index"].map(col))
        .agg([
            col("singular_value").median(),
            col("effective_rank"),
            col("numerical_rank"),
            col("seed").n_unique().alias("seeds"),
        ]);
    let groups = indices
        .sort(["label", "matrix", "n", "index"], Default::default())
        .group_by_stable(["family", "label", "matrix", "n"].map(col))
        .agg([
            col("index"),
            col("singular_value"),
            col("effective_rank").first(),
            col("numerical_rank").first(),
            col("seeds").first(),
        ])
        .collect()?;
    let (families, labels) = (words(&groups, "family")?, words(&groups, "label")?);
    let (matrices, n) = (words(&groups, "matrix")?, counts(&groups, "n")?);
    let (index, sigma) = (grouped(&groups, "index")?, grouped(&groups, "singular_value")?);
    let ranks = grouped(&groups, "effective_rank")?;
    let numerical = grouped(&groups, "numerical_rank")?;
    let seeds = counts(&groups, "seeds")?;
    let spread = |values: &[Option<f64>]| Spread::of(values.iter().flatten().copied());
    Ok((0..groups.height())
        .filter_map(|at| {
            let largest = sigma[at].first().copied().flatten()?;
            let points = index[at].iter().zip(&sigma[at]);
            Some(SpectrumCell {
                family: families[at].clone()?,
                label: labels[at].clone()?,
                matrix: matrices[at].clone()?,
                n: n[at]?,
                effective_rank: spread(&ranks[at]),
                numerical_rank: spread(&numerical[at]),
                spectrum: points
                    .filter_map(|(index, sigma)| Some(((*index)?, (*sigma)? / largest)))
                    .collect(),
                seeds: seeds[at].unwrap_or(0),
            })
        })
        .collect())
}
