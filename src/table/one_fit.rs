//! The folder of one fit: its rows, its target, and the attention that its queries and keys make.

use std::path::Path;

use ndarray::Array2;

use super::digits::significant;
use super::error::TableError;
use super::grid::{Cell, Column, Table};
use crate::fit::{Outcome, Problem, read_factors};
use crate::pattern::Target;
use crate::row::{FrontierRow, read_records};

/// The file of a fit's target, in its folder.
pub const TARGET: &str = "target.npy";
/// The rows, in a fit's folder.
const FRONTIER: &str = "frontier.csv";
/// Fits whose attention is held against the target at most: the outermost, and others evenly between.
const MOST_FOUND: usize = 5;

/// A fit as its folder tells of it.
#[derive(Clone, Debug)]
pub struct OneFit {
    /// The target's short text, n, rank and heads.
    pub label: String,
    /// The rank.
    pub rank: usize,
    /// The rows, as they stand.
    pub rows: Vec<FrontierRow>,
    /// The target; none where the folder does not have it.
    pub target: Option<Array2<f64>>,
    /// What was found, against the target; empty where that is not there.
    pub found: Vec<FoundAttention>,
}

/// The attention that the factors of one row make.
#[derive(Clone, Debug)]
pub struct FoundAttention {
    /// The row's terms and error: `within 8 nats, kl 0.05`.
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
    /// Rows, a target or factors that are damaged, or not of each other; no rows.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        let path = folder.join(FRONTIER);
        let advice = "fit again into another folder";
        let rows: Vec<FrontierRow> = read_records(&path, advice)?;
        let Some(FrontierRow { asked, terms, .. }) = rows.first() else {
            return Err(TableError::NoRows {
                path,
                why: "no row".to_owned(),
                advice: advice.to_owned(),
            });
        };
        let label =
            format!("{}, n = {}, rank {}, {}", asked.target, asked.n, asked.rank, asked.layout);
        let (layout, rank) = (asked.layout.clone(), asked.rank);
        let path = folder.join(TARGET);
        if !path.exists() {
            return Ok(Self { label, rank, rows, target: None, found: Vec::new() });
        }
        let problem = Problem::new(Target::read(&path, terms.visibility)?, layout, rank)?;
        let with: Vec<&FrontierRow> = rows.iter().filter(|r| r.found.factors.is_some()).collect();
        let found = spread_out(&with).into_iter().map(|row| {
            let factors = read_factors(&folder.join(row.found.factors.as_deref().unwrap_or("")))?;
            let attention = problem.attention(&factors)?;
            let kl_by_row = problem.kl_by_row(&attention);
            Ok(FoundAttention { name: name(row), attention, kl_by_row })
        });
        let found = found.collect::<Result<_, TableError>>()?;
        Ok(Self { label, rank, target: Some(problem.target().dense()), rows, found })
    }

    /// What each fit reached, how it ended, and what would help it.
    pub fn table(&self) -> Table {
        let nats = Some("nats");
        let columns = vec![
            Column::numbers("cap", "cap", nats),
            Column::numbers("kl_nats", "kl", nats),
            Column::numbers("floor_kl_nats", "floor of any rank", nats),
            Column::numbers("max_abs_logit", "max |logit|", nats),
            Column::numbers("lower_bound_max_abs_logit", "proven", nats),
            Column::numbers("floor_max_abs_logit", "floor", nats),
            Column::numbers("inflation", "inflation", None),
            Column::words("outcome", "how it ended"),
            Column::words("helps", "what would help"),
        ];
        let mut table = Table::new("frontier", "What was found", columns);
        for FrontierRow { found, .. } in &self.rows {
            let proven = found.proven.as_ref().map(|proven| proven.lower_bound_max_abs_logit);
            table.push(vec![
                found.cap.map_or(Cell::Missing, Cell::Setting),
                Cell::number(found.kl_nats()),
                Cell::number(found.floor_kl_nats),
                Cell::number(found.max_abs_logit()),
                Cell::number(proven),
                Cell::number(found.floor_max_abs_logit),
                Cell::number(found.inflation),
                Cell::text(found.outcome.name()),
                Cell::text(help(found.outcome)),
            ]);
        }
        table.notes.push(
            "Inflation is max |logit| over its floor at the same kl; what was found is an upper bound of what is needed."
                .to_owned(),
        );
        table
    }
}

fn name(row: &FrontierRow) -> String {
    let shown = |value: f64| significant(value, 3);
    let kl = row.found.kl_nats().map_or_else(String::new, |kl| format!("kl {}", shown(kl)));
    match (row.terms.tolerance, row.found.cap) {
        (None, Some(cap)) => format!("within {cap} nats, {kl}"),
        (Some(_), Some(cap)) => format!("{kl} with {} nats", shown(cap)),
        (_, None) => kl,
    }
}

fn help(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Converged => "more starts (--seeds)",
        Outcome::StepLimit => "more iterations (--iterations)",
        Outcome::Infeasible => "a larger cap or error, or heads that see more",
        _ => "another start (--seeds)",
    }
}

/// A few of them, the first and the last among these.
fn spread_out<T: Copy>(all: &[T]) -> Vec<T> {
    match all.len() {
        0..=MOST_FOUND => all.to_vec(),
        count => (0..MOST_FOUND).map(|at| all[at * (count - 1) / (MOST_FOUND - 1)]).collect(),
    }
}
