//! A study as it is asked for: a TOML file, checked key by key.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

use super::StudyError;
use crate::fit::{Effort, SearchOptions};
use crate::lm::TrainDefinition;
use crate::target::{Family, Layout, Parameters, Visibility, nearest::nearest};

/// A study: what it asks, and what is measured for it.
#[derive(Clone, Debug)]
pub struct StudyDefinition {
    /// The name; rows go to `data/NAME/`.
    pub study: String,
    /// One line for headings.
    pub title: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// Which analysis its rows are made for.
    pub analysis: String,
    /// The presets that include it.
    pub presets: Vec<String>,
    /// What is measured.
    pub work: StudyWork,
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
}

/// What a study measures.
#[derive(Clone, Debug)]
pub enum StudyWork {
    /// Fits over a grid.
    Fit(Box<FitStudy>),
    /// Training runs.
    Train(TrainStudy),
}

impl StudyWork {
    /// The numbers that it is computed in.
    pub(super) fn dtype(&self) -> String {
        match self {
            Self::Fit(_) => "float64".to_owned(),
            Self::Train(study) => {
                let mut names: Vec<_> = study.runs.iter().map(|(_, d, _)| d.dtype.name()).collect();
                names.sort_unstable();
                names.dedup();
                names.join(", ")
            }
        }
    }
}

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

/// Training runs that share a definition but for what each sets.
#[derive(Clone, Debug)]
pub struct TrainStudy {
    /// Each run's name, its definition but for the seed, and its seeds.
    pub runs: Vec<(String, TrainDefinition, Vec<u64>)>,
}

const TOP_KEYS: &[&str] = &[
    "study", "kind", "title", "question", "analysis", "presets", "grid", "search", "target",
    "train", "run",
];
const GRID_KEYS: &[&str] =
    &["n", "rank", "layout", "heads", "seed", "visibility", "caps", "tolerance"];
const SEARCH_KEYS: &[&str] =
    &["starts", "polished", "passes", "rough_iterations", "iterations", "relative_decrease"];
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
struct Top {
    study: String,
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    analysis: String,
    #[serde(default)]
    presets: Vec<String>,
    grid: Option<Grid>,
    #[serde(default)]
    search: Search,
    #[serde(default)]
    target: Vec<Table>,
    #[serde(default)]
    train: Table,
    #[serde(default)]
    run: Vec<Table>,
}

#[derive(Deserialize)]
struct Grid {
    n: Vec<usize>,
    #[serde(default)]
    rank: Vec<usize>,
    #[serde(default)]
    layout: Vec<String>,
    #[serde(default)]
    heads: Vec<Heads>,
    #[serde(default = "one_seed")]
    seed: Vec<u64>,
    visibility: Option<String>,
    #[serde(default)]
    caps: Vec<f64>,
    #[serde(default)]
    tolerance: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Heads {
    layout: String,
    rank: usize,
}

#[derive(Deserialize, Default)]
struct Search {
    starts: Option<usize>,
    polished: Option<usize>,
    passes: Option<usize>,
    rough_iterations: Option<usize>,
    iterations: Option<usize>,
    relative_decrease: Option<f64>,
}

fn one_seed() -> Vec<u64> {
    vec![0]
}

impl StudyDefinition {
    /// Reads a definition from a file.
    ///
    /// # Errors
    /// A file that cannot be read, text that is not TOML, an unknown key or family (with the
    /// nearest valid one), a value that its key cannot take.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|e| StudyError::read(path, e))?;
        let wrong = |why: String| StudyError::Definition { path: path.to_owned(), why };
        let table: Table = text.parse().map_err(|e: toml::de::Error| wrong(syntax(&e, &text)))?;
        check_keys(&table, TOP_KEYS, "").map_err(wrong)?;
        for (key, valid) in [("grid", GRID_KEYS), ("search", SEARCH_KEYS)] {
            if let Some(Value::Table(inner)) = table.get(key) {
                check_keys(inner, valid, key).map_err(wrong)?;
            }
        }
        let top: Top =
            Value::Table(table).try_into().map_err(|e: toml::de::Error| wrong(one_line(&e)))?;
        let name_is_plain = !top.study.is_empty()
            && top.study.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !name_is_plain {
            return Err(wrong(format!(
                "study is {:?}; it names a folder: use letters, digits, - and _",
                top.study
            )));
        }
        let work = match top.kind.as_str() {
            "fit" => StudyWork::Fit(Box::new(fit_study(&top).map_err(wrong)?)),
            "train" => StudyWork::Train(train_study(&top).map_err(wrong)?),
            other => {
                let near = nearest(other, &["fit", "train"]);
                return Err(wrong(format!("unknown kind {other:?}; did you mean {near:?}?")));
            }
        };
        Ok(Self {
            study: top.study,
            title: top.title,
            question: top.question,
            analysis: top.analysis,
            presets: top.presets,
            work,
            path: path.to_owned(),
            text,
        })
    }
}

/// What is no TOML, and in which line.
fn syntax(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().replace('\n', " "))
}

/// A value that its key cannot take, and the key.
fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check_keys(table: &Table, valid: &[&str], within: &str) -> Result<(), String> {
    let place = if within.is_empty() { String::new() } else { format!("{within}.") };
    match table.keys().find(|key| !valid.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = nearest(key, valid);
            Err(format!("unknown key \"{place}{key}\"; did you mean \"{place}{near}\"?"))
        }
    }
}

fn fit_study(top: &Top) -> Result<FitStudy, String> {
    let grid = top.grid.as_ref().ok_or("a study of fits needs a [grid]")?;
    if top.target.is_empty() {
        return Err("a study of fits needs at least one [[target]] with a family".to_owned());
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
    let heads = heads(grid)?;
    if heads.iter().any(|&(_, rank)| rank == 0) {
        return Err("grid: a rank of 0; give head dimensions of at least 1".to_owned());
    }
    if grid.n.is_empty() || grid.n.contains(&0) {
        return Err("grid.n needs sequence lengths of at least 1".to_owned());
    }
    if grid.seed.is_empty() {
        return Err("grid.seed is empty; name at least one seed".to_owned());
    }
    Ok(FitStudy {
        targets,
        n: grid.n.clone(),
        heads,
        seeds: grid.seed.clone(),
        goal: goal(grid)?,
        search: search(&top.search)?,
    })
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
        Some(name) => name.parse().map_err(|e: crate::target::TargetError| e.to_string())?,
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

fn search(keys: &Search) -> Result<SearchOptions, String> {
    let standard = SearchOptions::default();
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
        ..standard
    };
    let decrease = options.fine.relative_decrease;
    if options.starts == 0 || options.polished == 0 || !(0.0..1.0).contains(&decrease) {
        return Err(
            "search needs starts ≥ 1, polished ≥ 1 and 0 ≤ relative_decrease < 1".to_owned()
        );
    }
    Ok(options)
}

fn train_study(top: &Top) -> Result<TrainStudy, String> {
    if top.run.is_empty() {
        return Err("a study of training runs needs at least one [[run]] with a name".to_owned());
    }
    let shared = TrainDefinition::from_table(&top.train).map_err(|e| e.to_string())?;
    let mut runs: Vec<(String, TrainDefinition, Vec<u64>)> = Vec::new();
    for table in &top.run {
        let mut table = table.clone();
        let Some(Value::String(name)) = table.remove("name") else {
            return Err("a [[run]] needs a name".to_owned());
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("run {name:?}: use letters, digits, - and _ in its name"));
        }
        if runs.iter().any(|(other, ..)| *other == name) {
            return Err(format!("two runs are called {name:?}"));
        }
        let seeds = seeds(&mut table, shared.seed).map_err(|why| format!("run {name}: {why}"))?;
        let mut definition = shared.clone();
        definition.merge(&table).map_err(|e| format!("run {name}: {e}"))?;
        runs.push((name, definition, seeds));
    }
    Ok(TrainStudy { runs })
}

fn seeds(table: &mut Table, default: u64) -> Result<Vec<u64>, String> {
    let values = match table.remove("seed") {
        None => return Ok(vec![default]),
        Some(Value::Array(values)) if !values.is_empty() => values,
        Some(value) => vec![value],
    };
    values
        .into_iter()
        .map(|v| v.clone().try_into().map_err(|_| format!("seed {v} is no whole number ≥ 0")))
        .collect()
}
