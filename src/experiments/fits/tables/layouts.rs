//! Compares layouts of heads: the error at each logit bound.

use crate::experiments::fits::FitMeasurement;
use crate::record::{Row, Rows};
use crate::table::groups::{groups, sorted};
use crate::table::{Spread, Table, TableError};
use crate::targets::{HeadKind, Layout};

/// One fit: the error of one seed at one logit bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutSeed {
    /// The seed.
    pub seed: u64,
    /// The error reached, in nats.
    pub kl_nats: f64,
}

/// The seeds of one layout at one logit bound.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutCell {
    /// The target: its family and parameters.
    pub target: String,
    /// The heads.
    pub layout: Layout,
    /// The sequence length.
    pub n: usize,
    /// The rank of each head.
    pub rank: usize,
    /// The bound on max |logit|.
    pub cap: f64,
    /// The fits, one per seed, in order.
    pub seeds: Vec<LayoutSeed>,
    /// E⁰(cap) over the seeds: the smallest error without a rank limit.
    pub floor: Option<Spread>,
}

impl LayoutCell {
    /// The error over seeds.
    pub fn kl_nats(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().map(|seed| seed.kl_nats))
    }

    /// The number of parameters of the factors: heads · 2 · n · rank.
    pub fn parameters(&self) -> usize {
        let of_one = 2_usize.saturating_mul(self.n).saturating_mul(self.rank);
        self.layout.heads().len().saturating_mul(of_one)
    }

    /// The multiply–adds of QKᵀ and PV: twice the rank for each pair that a causal head may use.
    pub fn cost(&self) -> usize {
        // Row i has i + 1 columns, or the window if that is smaller.
        let pairs = |head: &HeadKind| -> usize {
            let most = head.window().map_or(self.n, |window| window.min(self.n));
            let growing = most.saturating_mul(most.saturating_add(1)) / 2;
            growing.saturating_add(most.saturating_mul(self.n - most))
        };
        let all = self.layout.heads().iter().map(pairs).fold(0, usize::saturating_add);
        2_usize.saturating_mul(self.rank).saturating_mul(all)
    }

    fn global_heads(&self) -> usize {
        self.layout.heads().iter().filter(|&&head| head == HeadKind::Global).count()
    }

    /// Whether the layout has both local and global heads.
    pub fn is_split(&self) -> bool {
        self.global_heads() > 0 && !self.is_global()
    }

    /// Whether every head is global.
    pub fn is_global(&self) -> bool {
        self.global_heads() == self.layout.heads().len()
    }
}

/// A study of layouts: its cells by target, layout, rank and logit bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Layouts {
    /// The cells in order.
    pub cells: Vec<LayoutCell>,
    /// The number of cells that failed and are left out.
    pub failed: usize,
}

impl Layouts {
    /// Gathers the rows of a study of fits that have a logit bound.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if no row has a logit bound and an error in nats.
    pub fn of(rows: &Rows<FitMeasurement>) -> Result<Self, TableError> {
        let fitted = rows.rows.iter().filter(|row| {
            row.of.terms.tolerance.is_none()
                && row.found.cap.is_some()
                && row.found.reached.is_some()
        });
        let place = |row: &Row<FitMeasurement>| {
            let asked = &row.of.asked;
            (row.of.label(), asked.n, asked.layout.to_string(), asked.rank, row.found.cap)
        };
        let sorted = sorted(fitted, |row| (place(row), row.of.asked.seed));
        let cells = groups(sorted, place).into_iter().filter_map(|cell| cell_of(&cell)).collect();
        let why = "no finished row has a cap, so there is nothing to compare";
        let advice = "give the study's definition caps and run it again";
        let cells = TableError::unless_empty(cells, &rows.path, why, advice)?;
        Ok(Self { cells, failed: rows.failed })
    }

    /// One table: every layout at every logit bound.
    pub fn tables(&self) -> Vec<Table> {
        let title = "Error of each layout of heads within each logit bound";
        let table = Table::from_items("layouts", title, &self.cells)
            .words("target", "target", |cell| &cell.target)
            .words("layout", "layout", |cell| cell.layout.to_string())
            .numbers("n", "n", |cell| cell.n)
            .numbers("rank", "rank per head", |cell| cell.rank)
            .numbers("parameters", "parameters", LayoutCell::parameters)
            .numbers("cost", "cost (multiply–adds)", LayoutCell::cost)
            .settings("cap", "logit bound", |cell| cell.cap)
            .numbers("kl_nats", "KL (nats)", LayoutCell::kl_nats)
            .numbers("floor_kl_nats", "floor, no rank limit (nats)", |cell| cell.floor)
            .numbers("seeds", "seeds", |cell| cell.seeds.len())
            .note(
                "Medians over seeds, with (least–greatest) where they differ. Parameters: heads · \
                 2 · n · rank. Cost: 2 · rank per unmasked pair of each head.",
            )
            .note_failed(self.failed);
        vec![table.build()]
    }
}

fn cell_of(rows: &[&Row<FitMeasurement>]) -> Option<LayoutCell> {
    let first = rows.first()?;
    let asked = &first.of.asked;
    let seed = |row: &&Row<FitMeasurement>| {
        let seed = row.of.asked.seed.unwrap_or(0);
        Some(LayoutSeed { seed, kl_nats: row.found.kl_nats? })
    };
    Some(LayoutCell {
        target: first.of.label(),
        layout: asked.layout.clone(),
        n: asked.n,
        rank: asked.rank,
        cap: first.found.cap?,
        seeds: rows.iter().filter_map(seed).collect(),
        floor: Spread::of(rows.iter().filter_map(|row| row.found.floor_kl_nats)),
    })
}
