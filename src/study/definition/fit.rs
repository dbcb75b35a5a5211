//! A study of fits: its grid, its targets, its search.

use serde::Deserialize;
use toml::{Table, Value};

use super::Top;
use super::keys::{check_keys, one_line};
use crate::fit::{Effort, SearchOptions};
use crate::pattern::{Family, Layout, Parameters, Visibility};

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

/// One target of a study.
#[derive(Clone, Debug)]
pub struct StudyTarget {
    /// What its cells are called; the family's name unless it was given one.
    pub name: String,
    /// The family, with its parameters.
    pub family: Family,
    /// The pairs that may have weight.
    pub visibility: Visibility,
}

/// What is asked of a fit.
#[derive(Clone, Debug, PartialEq)]
pub enum FitGoal {
    /// E*(L) at these caps.
    Caps(Vec<f64>),
    /// L*(ε) at each of these tolerances.
    Tolerances(Vec<f64>),
}

pub(super) const GRID_KEYS: &[&str] =
    &["n", "rank", "layout", "heads", "seed", "visibility", "caps", "tolerance"];
pub(super) const SEARCH_KEYS: &[&str] = &[
    "starts",
    "polished",
    "passes",
    "rough_iterations",
    "iterations",
    "relative_decrease",
    "dtype",
];
const TARGET_KEYS: &[&str] = &[
    "name",
    "family",
    "window",
    "tau",
    "alpha",
    "sigma",
    "k",
    "m",
    "c",
    "vocabulary",
    "lambda",
    "local",
    "global",
    "of",
    "path",
    "visibility",
];

#[derive(Deserialize)]
pub(super) struct Grid {
    pub n: Vec<usize>,
    #[serde(default)]
    rank: Vec<usize>,
    #[serde(default)]
    layout: Vec<String>,
    #[serde(default)]
    heads: Vec<Heads>,
    #[serde(default = "one_seed")]
    pub seed: Vec<u64>,
    visibility: Option<String>,
    #[serde(default)]
    caps: Vec<f64>,
    #[serde(default)]
    pub tolerance: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heads {
    layout: String,
    rank: usize,
}

#[derive(Deserialize, Default)]
pub(super) struct Search {
    starts: Option<usize>,
    polished: Option<usize>,
    passes: Option<usize>,
    rough_iterations: Option<usize>,
    iterations: Option<usize>,
    relative_decrease: Option<f64>,
    dtype: Option<String>,
}

fn one_seed() -> Vec<u64> {
    vec![0]
}

pub(super) fn read(top: &Top) -> Result<FitStudy, String> {
    let grid = top.grid.as_ref().ok_or("a study of fits needs a [grid]")?;
    let heads = heads(grid)?;
    if heads.iter().any(|&(_, rank)| rank == 0) {
        return Err("grid: a rank of 0; give head dimensions of at least 1".to_owned());
    }
    Ok(FitStudy {
        targets: targets(top, grid)?,
        n: grid_lengths(grid)?,
        heads,
        seeds: grid_seeds(grid)?,
        goal: goal(grid)?,
        search: search(&top.search)?,
    })
}

/// The targets of a grid.
pub(super) fn targets(top: &Top, grid: &Grid) -> Result<Vec<StudyTarget>, String> {
    if top.target.is_empty() {
        return Err("such a study needs at least one [[target]] with a family".to_owned());
    }
    let mut targets: Vec<StudyTarget> = Vec::new();
    for table in &top.target {
        let target = target(table, grid.visibility.as_deref())?;
        if targets.iter().any(|other| other.name == target.name) {
            return Err(format!(
                "two targets are called {:?}; give one of them a name = \"…\"",
                target.name
            ));
        }
        targets.push(target);
    }
    Ok(targets)
}

/// The sequence lengths of a grid.
pub(super) fn grid_lengths(grid: &Grid) -> Result<Vec<usize>, String> {
    if grid.n.is_empty() || grid.n.contains(&0) {
        return Err("grid.n needs sequence lengths of at least 1".to_owned());
    }
    Ok(grid.n.clone())
}

/// The seeds of a grid.
pub(super) fn grid_seeds(grid: &Grid) -> Result<Vec<u64>, String> {
    if grid.seed.is_empty() {
        return Err("grid.seed is empty; name at least one seed".to_owned());
    }
    Ok(grid.seed.clone())
}

/// A target, whose pairs are the `grid`'s unless it says which.
fn target(table: &Table, grid: Option<&str>) -> Result<StudyTarget, String> {
    check_keys(table, TARGET_KEYS, "target")?;
    let mut table = table.clone();
    let mut take = |key: &str| match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("target.{key} is {other}; it must be a text in quotes")),
    };
    let name = take("name")?;
    let family = take("family")?.ok_or("a [[target]] needs a family")?;
    let visibility = match take("visibility")?.as_deref().or(grid) {
        None => Visibility::Causal,
        Some(name) => name.parse().map_err(|e: crate::pattern::TargetError| e.to_string())?,
    };
    let parameters: Parameters = Value::Table(table)
        .try_into()
        .map_err(|e: toml::de::Error| format!("target {family}: {}", one_line(&e)))?;
    let built = Family::from_parameters(&family, &parameters).map_err(|e| e.to_string())?;
    Ok(StudyTarget { name: name.unwrap_or(family), family: built, visibility })
}

fn heads(grid: &Grid) -> Result<Vec<(Layout, usize)>, String> {
    let parse = |text: &str| text.parse::<Layout>().map_err(|e| e.to_string());
    match (grid.heads.is_empty(), grid.rank.is_empty()) {
        (false, true) if grid.layout.is_empty() => {
            grid.heads.iter().map(|heads| Ok((parse(&heads.layout)?, heads.rank))).collect()
        }
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
            Err("grid needs either caps (for E*(L)) or tolerance (for L*(ε)), not both".to_owned())
        }
    }
}

/// How trained heads are searched: their own factors are the start, and no other is needed.
pub(super) const SEARCH_DEFAULTS_OF_HEADS: fn() -> SearchOptions = || {
    let effort = Effort { iterations: 1500, relative_decrease: 1e-4, ..Effort::default() };
    SearchOptions {
        starts: 0,
        polished: 1,
        passes: 0,
        rough: Effort { iterations: 600, relative_decrease: 3e-4, ..effort },
        fine: effort,
        ..SearchOptions::default()
    }
};

fn search(keys: &Search) -> Result<SearchOptions, String> {
    let options = search_over(keys, SearchOptions::default)?;
    if options.starts == 0 {
        return Err("search needs starts ≥ 1".to_owned());
    }
    Ok(options)
}

/// The search that `keys` make of the standard one.
pub(super) fn search_over(
    keys: &Search,
    standard: impl Fn() -> SearchOptions,
) -> Result<SearchOptions, String> {
    let standard = standard();
    let options = SearchOptions {
        starts: keys.starts.unwrap_or(standard.starts),
        polished: keys.polished.unwrap_or(standard.polished),
        passes: keys.passes.unwrap_or(standard.passes),
        rough: Effort {
            iterations: keys.rough_iterations.unwrap_or(standard.rough.iterations),
            ..standard.rough
        },
        fine: Effort {
            iterations: keys.iterations.unwrap_or(standard.fine.iterations),
            relative_decrease: keys.relative_decrease.unwrap_or(standard.fine.relative_decrease),
            ..standard.fine
        },
        precision: match keys.dtype.as_deref() {
            None => standard.precision,
            Some(name) => name.parse().map_err(|e: crate::fit::FitError| e.to_string())?,
        },
        ..standard
    };
    let decrease = options.fine.relative_decrease;
    if options.polished == 0 || !(0.0..1.0).contains(&decrease) {
        return Err("search needs polished ≥ 1 and 0 ≤ relative_decrease < 1".to_owned());
    }
    Ok(options)
}
