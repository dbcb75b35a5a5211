//! Tables of the singular values of targets, and of the smallest logits of any rank that reach them.

use crate::experiments::spectrum::SpectrumMeasurement;
use crate::record::{Row, Rows};
use crate::table::groups::{groups, sorted};
use crate::table::{Spread, Table, TableError};

/// One matrix of one target at one length, over seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumGroup {
    /// The family with its parameters.
    pub label: String,
    /// `attention` or `logits`.
    pub matrix: String,
    /// The sequence length.
    pub n: usize,
    /// exp of the entropy of the normalised singular values, over seeds.
    pub effective_rank: Option<Spread>,
    /// The number of singular values above rounding errors, over seeds.
    pub numerical_rank: Option<Spread>,
    /// Pairs of the index from 1 and the median over seeds of σ/σ₁.
    pub spectrum: Vec<(f64, f64)>,
    /// The number of seeds.
    pub seeds: usize,
}

/// A study of singular values, by label, matrix and n.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectra {
    /// The cells in order.
    pub cells: Vec<SpectrumGroup>,
    /// The number of cells that failed and are left out.
    pub failed: usize,
}

impl Spectra {
    /// Gathers the rows of a study of singular values.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if there are none.
    pub fn of(rows: &Rows<SpectrumMeasurement>) -> Result<Self, TableError> {
        let place = |row: &Row<SpectrumMeasurement>| {
            (row.of.of.label(row.of.visibility), row.found.matrix.clone(), row.of.n)
        };
        let sorted = sorted(&rows.rows, |row| (place(row), row.found.index));
        let cells = groups(sorted, place).into_iter().filter_map(|cell| cell_of(&cell)).collect();
        let why = "no finished row has a singular value";
        let cells = TableError::unless_empty(cells, &rows.path, why, "run the study again")?;
        Ok(Self { cells, failed: rows.failed })
    }

    /// One table: effective ranks of attention and of logits, by target and n.
    pub fn tables(&self) -> Vec<Table> {
        let title = "Effective rank of each target's attention matrix and of its logits";
        let share = |cell: &SpectrumGroup| Some(cell.effective_rank?.median / cell.n as f64);
        let table = Table::from_items("ranks", title, &self.cells)
            .words("target", "target", |cell| &cell.label)
            .words("matrix", "matrix", |cell| &cell.matrix)
            .numbers("n", "n", |cell| cell.n)
            .numbers("effective_rank", "effective rank", |cell| cell.effective_rank)
            .numbers("effective_rank_over_n", "effective rank / n", share)
            .numbers("numerical_rank", "numerical rank", |cell| cell.numerical_rank)
            .numbers("seeds", "seeds", |cell| cell.seeds)
            .note(
                "Effective rank: exp of the entropy of σ/Σσ (Roy and Vetterli 2007). Logits: the \
                 smallest of any rank that reach the study's error, each row shifted so that its \
                 minimum is 0. Masked pairs count as 0; a factorisation that chooses them may need \
                 a lower rank.",
            )
            .note_failed(self.failed);
        vec![table.build()]
    }
}

fn cell_of(rows: &[&Row<SpectrumMeasurement>]) -> Option<SpectrumGroup> {
    // One group per index, with one row per seed.
    let indices = groups(rows.iter().copied(), |row| row.found.index);
    let first = indices.first()?;
    let over =
        |of: fn(&SpectrumMeasurement) -> f64| Spread::of(first.iter().map(|row| of(&row.found)));
    let median = |seeds: &Vec<&Row<SpectrumMeasurement>>| {
        let sigma = Spread::of(seeds.iter().map(|row| row.found.singular_value))?.median;
        Some((seeds[0].found.index as f64, sigma))
    };
    let medians: Vec<(f64, f64)> = indices.iter().filter_map(median).collect();
    let &(_, largest) = medians.first()?;
    let of = &first[0].of;
    Some(SpectrumGroup {
        label: of.of.label(of.visibility),
        matrix: first[0].found.matrix.clone(),
        n: of.n,
        effective_rank: over(|found| found.effective_rank),
        numerical_rank: over(|found| found.numerical_rank as f64),
        spectrum: medians.iter().map(|&(index, sigma)| (index, sigma / largest)).collect(),
        seeds: groups(first.iter().copied(), |row| row.of.seed).len(),
    })
}
