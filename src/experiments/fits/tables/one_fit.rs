//! Reads the folder of one fit: its rows, its target, and the attention of its queries and keys.

use std::path::Path;

use ndarray::Array2;

use crate::experiments::fits::FrontierRow;
use crate::record::read_records;
use crate::run::RunError;
use crate::solver::{Problem, read_factors};
use crate::system::below;
use crate::table::{Cell, Table, TableError, significant};
use crate::targets::Target;

/// The file of the target in a fit's folder.
pub const TARGET: &str = "target.npy";
/// The file of the rows in a fit's folder.
const FRONTIER: &str = "frontier.csv";
/// The maximum number of fits whose attention is compared with the target: the outermost, and others evenly between.
const MOST_FOUND: usize = 5;
/// The contents of a fit's folder.
#[derive(Clone, Debug)]
pub struct OneFit {
    /// The target's short text, n, rank and heads.
    pub label: String,
    /// The rank.
    pub rank: usize,
    /// The rows in the order of the file.
    pub rows: Vec<FrontierRow>,
    /// The number of rows whose queries and keys no longer exist.
    pub lost: usize,
    /// The target; `None` if the folder does not have it.
    pub target: Option<Array2<f64>>,
    /// The attention found, compared with the target; empty without a target.
    pub found: Vec<FoundAttention>,
}

/// The attention made by the factors of one row.
#[derive(Clone, Debug)]
pub struct FoundAttention {
    /// The row's logit bound and KL: `max |logit| ≤ 8: KL 0.05`.
    pub name: String,
    /// P, n × n.
    pub attention: Array2<f64>,
    /// KL(Aᵢ ‖ Pᵢ) in nats.
    pub kl_by_row: Vec<f64>,
}

impl OneFit {
    /// Reads the folder that `fit` wrote.
    ///
    /// # Errors
    /// Rows, a target or factors that are damaged or do not belong together; no rows.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        let path = folder.join(FRONTIER);
        let advice = "fit again into another folder";
        let rows: Vec<FrontierRow> =
            TableError::unless_empty(read_records(&path, advice)?, &path, "no row", advice)?;
        let FrontierRow { asked, terms, .. } = &rows[0];
        let label =
            format!("{}, n = {}, rank {}, {}", asked.target, asked.n, asked.rank, asked.layout);
        let (layout, rank) = (asked.layout.clone(), asked.rank);
        let path = folder.join(TARGET);
        if !path.exists() {
            return Ok(Self { label, rank, rows, lost: 0, target: None, found: Vec::new() });
        }
        let problem = Problem::new(Target::read(&path, terms.visibility)?, layout, rank)?;
        let named = rows.iter().filter_map(|row| Some((row, row.found.factors.as_ref()?)));
        let with = named.map(|(row, factors)| match below(folder, Path::new(factors)) {
            Ok(factors) => Ok((row, factors)),
            Err(why) => Err(RunError::Unusable {
                path: folder.join(FRONTIER),
                why: format!("the factors {factors:?}: the path {why}; {advice}"),
            }),
        });
        let with = with.collect::<Result<Vec<_>, _>>()?.into_iter();
        let (with, lost): (Vec<_>, Vec<_>) = with.partition(|(_, factors)| factors.is_dir());
        let found = spread_out(with.len()).into_iter().map(|at| {
            let (row, factors) = &with[at];
            let factors = read_factors(factors)?;
            let attention = problem.attention(&factors)?;
            let kl_by_row = problem.kl_by_row(&attention);
            Ok(FoundAttention { name: name(row), attention, kl_by_row })
        });
        let found = found.collect::<Result<_, TableError>>()?;
        let (lost, target) = (lost.len(), Some(problem.target().dense()));
        Ok(Self { label, rank, rows, lost, target, found })
    }

    /// The table of results: each fit and its outcome.
    pub fn table(&self) -> Table {
        let asked = |row: &FrontierRow| row.terms.tolerance.or(row.found.cap).map(Cell::Setting);
        let proven = |row: &FrontierRow| Some(row.found.proven.as_ref()?.lower_bound_max_abs_logit);
        let table = Table::from_items("frontier", "Fits", &self.rows);
        match self.rows.iter().any(|row| row.terms.tolerance.is_some()) {
            true => table.numbers("tolerance", "tolerance (nats)", asked),
            false => table.numbers("cap", "logit bound", asked),
        }
        .numbers("kl_nats", "KL (nats)", |row| row.found.kl_nats)
        .numbers("floor_kl_nats", "KL at unlimited rank (nats)", |row| row.found.floor_kl_nats)
        .numbers("max_abs_logit", "max |logit|", |row| row.found.max_abs_logit())
        .numbers("lower_bound_max_abs_logit", "proven minimum", proven)
        .numbers("floor_max_abs_logit", "floor", |row| row.found.floor_max_abs_logit)
        .numbers("inflation", "rank penalty (×)", |row| row.found.inflation)
        .words("outcome", "outcome", |row| row.found.outcome.name())
        .note(
            "The floor is the smallest max |logit| with which unlimited rank reaches the same KL. The \
             rank penalty is max |logit| over the floor. Both max |logit| and the rank penalty are \
             upper bounds: a longer search may find smaller ones.",
        )
        .build()
    }
}

fn name(row: &FrontierRow) -> String {
    let shown = |value: f64| significant(value, 3);
    let kl = row.found.kl_nats.map_or_else(String::new, |kl| format!("KL {}", shown(kl)));
    match (row.terms.tolerance, row.found.cap.or(row.found.unreached_max_abs_logit)) {
        (None, Some(cap)) => format!("max |logit| ≤ {cap}: {kl}"),
        (Some(_), Some(cap)) => format!("{kl}, max |logit| {}", shown(cap)),
        (_, None) => kl,
    }
}

/// The places of up to [`MOST_FOUND`] of `count` items, evenly, including the first and the last.
fn spread_out(count: usize) -> Vec<usize> {
    match count {
        0..=MOST_FOUND => (0..count).collect(),
        count => (0..MOST_FOUND).map(|at| at * (count - 1) / (MOST_FOUND - 1)).collect(),
    }
}
