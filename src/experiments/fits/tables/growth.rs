//! Logits at equal error: L*(ε) against the floor L⁰(ε), cell by cell.

use crate::experiments::fits::FitMeasurement;
use crate::record::{Row, Rows};
use crate::solver::Outcome;
use crate::table::groups::{distinct, groups, sorted};
use crate::table::{Columns, Estimate, Spread, Table, TableError, plural};

/// One fit of a study of logit growth: one seed of one target at one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthSeed {
    /// The seed.
    pub seed: usize,
    /// L*(ε), the smallest max |logit| that reached ε; `None` if no logit bound tried did.
    pub needed: Option<f64>,
    /// L⁰(ε), the same with no rank limit.
    pub floor: Option<f64>,
    /// L*(ε) / L⁰(ε), the rank penalty.
    pub inflation: Option<f64>,
}

/// The seeds of one target family at one n and rank.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthCell {
    /// The target family.
    pub family: String,
    /// The family with its parameters: `dirichlet-band, w = 32`.
    pub label: String,
    /// The number of columns over which a row is spread: window of a band, m of `landmark`, k of `random-sparse`.
    pub support: Option<usize>,
    /// ε in nats.
    pub tolerance: f64,
    /// The sequence length.
    pub n: usize,
    /// The rank d of the factors.
    pub rank: usize,
    /// The fits, one per seed, in order.
    pub seeds: Vec<GrowthSeed>,
    /// The number of fits that reached ε and stopped at the step limit; their logits are upper bounds only.
    pub step_limited: usize,
}

impl GrowthCell {
    /// n/d.
    pub fn ratio(&self) -> f64 {
        self.n as f64 / self.rank as f64
    }

    /// L*(ε) over the seeds that reached ε.
    pub fn needed(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.needed))
    }

    /// L⁰(ε) over all seeds.
    pub fn floor(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.floor))
    }

    /// L*(ε) / L⁰(ε) over the seeds that reached ε.
    pub fn inflation(&self) -> Option<Spread> {
        Spread::of(self.seeds.iter().filter_map(|seed| seed.inflation))
    }

    /// Student's interval of the geometric mean of L*(ε) / L⁰(ε), over the seeds that reached ε.
    pub fn inflation_within(&self) -> Option<Estimate> {
        let logs = self.seeds.iter().filter_map(|seed| Some(seed.inflation?.ln()));
        Estimate::interval(logs).map(Estimate::exp)
    }

    /// The number of seeds that reached ε.
    pub fn reached(&self) -> usize {
        self.seeds.iter().filter(|seed| seed.needed.is_some()).count()
    }

    /// Whether more than half of the seeds reached ε.
    pub fn is_mostly_reached(&self) -> bool {
        2 * self.reached() > self.seeds.len()
    }

    /// The number of seeds that did not reach ε at any logit bound tried.
    pub fn unreached(&self) -> usize {
        self.seeds.len() - self.reached()
    }
}

/// The growth of the rank penalty with n/d in one family.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthSlope {
    /// The target family.
    pub family: String,
    /// The family with its parameters.
    pub label: String,
    /// The number of columns over which a row is spread.
    pub support: Option<usize>,
    /// ε in nats.
    pub tolerance: f64,
    /// The rank of its cells; `None` for cells of all ranks.
    pub rank: Option<usize>,
    /// The slope of log rank penalty on log(n/d), with one point per cell (the median over seeds).
    ///
    /// The points are cells, not rows. The seeds of one (n, d) share the deviation from the line there, so counting
    /// them separately would make the interval too narrow.
    pub slope: Option<Estimate>,
    /// The number of points.
    pub points: usize,
    /// The number of fits that reached ε; the slope is based on them.
    pub reached: usize,
    /// The number of fits that did not reach ε. They are censored, which biases the slope low.
    pub unreached: usize,
    /// The smallest number of seeds in any cell.
    pub seeds: usize,
}

/// A study of logit growth: its cells in order and the slope of each family.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// The cells, by label, tolerance, n and rank.
    pub cells: Vec<GrowthCell>,
    /// For each label and tolerance, the slope over all ranks, then the slope of each rank.
    pub slopes: Vec<GrowthSlope>,
    /// The number of cells that failed and are left out.
    pub failed: usize,
}

impl Growth {
    /// Gathers the L*(ε) rows of a study of fits.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if no row has a tolerance.
    pub fn of(rows: &Rows<FitMeasurement>) -> Result<Self, TableError> {
        let asked = rows.rows.iter().filter(|row| row.of.terms.tolerance.is_some());
        let place = |row: &Row<FitMeasurement>| {
            let asked = &row.of.asked;
            (row.of.label(), row.of.terms.tolerance, asked.n, asked.rank)
        };
        let sorted = sorted(asked, |row| (place(row), row.of.asked.seed));
        let cells = groups(sorted, place).into_iter().filter_map(|cell| cell_of(&cell)).collect();
        let why = "no finished row has a tolerance, so there is no L*(ε) to read";
        let advice = "give the study's definition a tolerance and run it again";
        let cells = TableError::unless_empty(cells, &rows.path, why, advice)?;
        let failed = rows.failed;
        Ok(Self { slopes: slopes(&cells), cells, failed })
    }
}

fn cell_of(rows: &[&Row<FitMeasurement>]) -> Option<GrowthCell> {
    let of = &rows.first()?.of;
    let tolerance = of.terms.tolerance?;
    let one = |row: &&Row<FitMeasurement>| {
        let found = &row.found;
        let reached = found.has_reached(tolerance);
        GrowthSeed {
            seed: row.of.asked.seed.unwrap_or(0) as usize,
            needed: found.max_abs_logit().filter(|_| reached),
            floor: found.floor_max_abs_logit,
            inflation: found.inflation.filter(|value| reached && value.is_finite()),
        }
    };
    let is_limited = |row: &&&Row<FitMeasurement>| {
        row.found.outcome == Outcome::StepLimit && row.found.has_reached(tolerance)
    };
    Some(GrowthCell {
        family: of.of.family.clone(),
        label: of.label(),
        support: of.of.support(),
        tolerance,
        n: of.asked.n,
        rank: of.asked.rank,
        seeds: rows.iter().map(one).collect(),
        step_limited: rows.iter().filter(is_limited).count(),
    })
}

fn slopes(cells: &[GrowthCell]) -> Vec<GrowthSlope> {
    let families = cells.chunk_by(|a, b| a.label == b.label && a.tolerance == b.tolerance);
    families
        .flat_map(|family| {
            // The slope over all ranks may differ from the slope of every single rank.
            let each = distinct(family.iter().map(|cell| cell.rank)).into_iter().map(Some);
            [None].into_iter().chain(each).map(|rank| slope(family, rank))
        })
        .collect()
}

fn slope(family: &[GrowthCell], rank: Option<usize>) -> GrowthSlope {
    let cells: Vec<&GrowthCell> =
        family.iter().filter(|cell| rank.is_none_or(|rank| cell.rank == rank)).collect();
    let points: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.ratio().ln(), cell.inflation()?.median.ln())))
        .filter(|(_, y)| y.is_finite())
        .collect();
    GrowthSlope {
        family: family[0].family.clone(),
        label: family[0].label.clone(),
        support: family[0].support,
        tolerance: family[0].tolerance,
        rank,
        slope: Estimate::of_slope(&points),
        points: points.len(),
        reached: cells.iter().map(|cell| cell.reached()).sum(),
        unreached: cells.iter().map(|cell| cell.unreached()).sum(),
        seeds: cells.iter().map(|cell| cell.seeds.len()).min().unwrap_or(0),
    }
}

impl Growth {
    /// The slopes over all ranks.
    pub(crate) fn pooled_slopes(&self) -> impl Iterator<Item = &GrowthSlope> {
        self.slopes.iter().filter(|slope| slope.rank.is_none())
    }

    /// The tables: slopes of the families, and all cells.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.slope_table(), self.cell_table()]
    }

    fn slope_table(&self) -> Table {
        let title = "Growth of the rank penalty with n/d: slope of log rank penalty on log(n/d)";
        let rank = |of: &GrowthSlope| of.rank.map_or("all".to_owned(), |rank| rank.to_string());
        let table = Table::from_items("slopes", title, &self.slopes)
            .words("target", "target", |of| &of.label)
            .settings("tolerance", "ε (nats)", |of| of.tolerance)
            .words("rank", "rank d", rank)
            .numbers("slope", "slope", |of| of.slope.map(|slope| slope.value))
            .numbers("slope_low", "95 % CI, low", |of| Some(of.slope?.ends()?[0]))
            .numbers("slope_high", "95 % CI, high", |of| Some(of.slope?.ends()?[1]))
            .numbers("points", "configurations (n, d)", |of| of.slope.map(|_| of.points))
            .numbers("reached", "fits that reached ε", |of| of.reached)
            .numbers("not_reached", "fits that did not reach ε", |of| of.unreached)
            .note(
                "Ordinary least squares through the medians over seeds, one point per (n, d); \
                 Student's t interval.",
            );
        self.note_censored(table).build()
    }

    fn cell_table(&self) -> Table {
        let title = "Logits needed at equal error, and the rank penalty";
        let table = Table::from_items("cells", title, &self.cells)
            .words("target", "target", |cell| &cell.label)
            .settings("tolerance", "ε (nats)", |cell| cell.tolerance)
            .numbers("n", "n", |cell| cell.n)
            .numbers("rank", "rank d", |cell| cell.rank)
            .numbers("n_over_d", "n/d", GrowthCell::ratio)
            .numbers("max_abs_logit", "needed L*(ε)", GrowthCell::needed)
            .numbers("floor_max_abs_logit", "floor L⁰(ε)", GrowthCell::floor)
            .numbers("inflation", "rank penalty", GrowthCell::inflation)
            .numbers("reached", "seeds that reached ε", GrowthCell::reached)
            .numbers("not_reached", "seeds that did not reach ε", GrowthCell::unreached)
            .numbers("step_limited", "reached at the step limit", |cell| cell.step_limited)
            .note("Medians over seeds, with (least–greatest) where they differ.")
            .note_if(
                self.cells.iter().any(|cell| cell.step_limited > 0),
                "A fit that stopped at the step limit gives an upper bound of L*(ε).",
            );
        self.note_censored(table).build()
    }

    fn note_censored<'r, R>(&self, table: Columns<'r, R>) -> Columns<'r, R> {
        let unreached: usize = self.pooled_slopes().map(|family| family.unreached).sum();
        let fits = plural(unreached, "fit");
        let note = format!(
            "{fits} reached ε at no logit bound tried and so have no L*(ε). Medians and slopes \
             leave them out. This biases both low: the configurations that need the largest logits \
             are missing."
        );
        table.note_if(unreached > 0, note).note_failed(self.failed)
    }
}
