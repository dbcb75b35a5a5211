//! A study of fits: its grid, its targets, its search.

use serde::Deserialize;
use toml::Table;

use super::keys;
use super::search;
use super::targets::{StudyTarget, lengths, seeds, targets};
use crate::fit::SearchOptions;
use crate::pattern::Layout;

/// A grid of fits: every target × n × heads × seed × (all caps together, or each tolerance).
#[derive(Clone, Debug)]
pub struct FitStudy {
    /// The targets, each under a name of its own.
    pub targets: Vec<StudyTarget>,
    /// Sequence lengths.
    pub n: Vec<usize>,
    /// Layouts with the rank of each of their heads.
    pub heads: Vec<(Layout, usize)>,
    /// Seeds of target and starts.
    pub seeds: Vec<u64>,
    /// What is asked of each fit.
    pub goal: FitGoal,
    /// How the fits search.
    pub search: SearchOptions,
}

/// What is asked of a fit.
#[derive(Clone, Debug, PartialEq)]
pub enum FitGoal {
    /// E*(L) at these caps.
    Caps(Vec<f64>),
    /// L*(ε) at each of these tolerances.
    Tolerances(Vec<f64>),
}

#[derive(Deserialize)]
struct Grid {
    n: Vec<usize>,
    #[serde(default)]
    rank: Vec<usize>,
    #[serde(default)]
    layout: Vec<String>,
    #[serde(default)]
    heads: Vec<Table>,
    seed: Option<Vec<u64>>,
    visibility: Option<String>,
    #[serde(default)]
    caps: Vec<f64>,
    #[serde(default)]
    tolerance: Vec<f64>,
}

#[derive(Deserialize)]
struct Heads {
    layout: String,
    rank: usize,
}

pub(super) fn read(
    grid: Option<&Table>,
    search: &Table,
    target: &[Table],
) -> Result<FitStudy, String> {
    let grid: Grid = keys::read(grid.ok_or("a study of fits needs a [grid]")?, "grid")?;
    let heads = heads(&grid)?;
    if heads.iter().any(|&(_, rank)| rank == 0) {
        return Err("grid.rank must be at least 1".to_owned());
    }
    Ok(FitStudy {
        targets: targets(target, grid.visibility.as_deref())?,
        goal: goal(&grid)?,
        n: lengths(grid.n)?,
        heads,
        seeds: seeds(grid.seed)?,
        search: search::of_targets(search)?,
    })
}

fn heads(grid: &Grid) -> Result<Vec<(Layout, usize)>, String> {
    let parse = |text: &str| text.parse::<Layout>().map_err(|e| format!("grid.layout: {e}"));
    match (grid.heads.is_empty(), grid.rank.is_empty()) {
        (false, true) if grid.layout.is_empty() => keys::each(&grid.heads, "grid.heads", |table| {
            let heads: Heads = keys::read(table, "grid.heads")?;
            let layout = heads.layout.parse::<Layout>().map_err(|e| e.to_string())?;
            Ok((layout, heads.rank))
        }),
        (true, false) => {
            let default = ["global".to_owned()];
            let layouts = if grid.layout.is_empty() { &default } else { grid.layout.as_slice() };
            let mut heads = Vec::new();
            for layout in layouts {
                let layout = parse(layout)?;
                heads.extend(grid.rank.iter().map(|&rank| (layout.clone(), rank)));
            }
            Ok(heads)
        }
        _ => Err("grid needs either rank (with layout, if not global) or heads, a list of \
                  {layout, rank}"
            .to_owned()),
    }
}

fn goal(grid: &Grid) -> Result<FitGoal, String> {
    let positive = |values: &[f64], key: &str| match values
        .iter()
        .find(|v| !(v.is_finite() && **v > 0.0))
    {
        None => Ok(values.to_vec()),
        Some(v) => Err(format!("grid.{key} has {v}; every value must be a finite number above 0")),
    };
    match (grid.caps.as_slice(), grid.tolerance.as_slice()) {
        (caps @ [_, ..], []) => Ok(FitGoal::Caps(positive(caps, "caps")?)),
        ([], tolerances @ [_, ..]) => Ok(FitGoal::Tolerances(positive(tolerances, "tolerance")?)),
        _ => {
            Err("grid needs either caps (bounds on max |logit|) or tolerance (errors in nats), not both".to_owned())
        }
    }
}
