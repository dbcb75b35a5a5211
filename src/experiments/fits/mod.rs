//! Fits of targets: each target × n × heads × seed, at logit bounds or tolerances.

pub mod claims;
/// Figures of this experiment.
pub mod figures {
    pub mod growth;
    pub mod layouts;
    pub mod one_fit;
    pub mod phase;
}
mod ledger;
mod row;
/// Tables of this experiment.
pub mod tables {
    pub mod growth;
    pub mod layouts;
    pub mod one_fit;
}

use std::path::Path;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Table;

use self::figures::{growth, layouts, phase};
use self::tables::growth::Growth;
use self::tables::layouts::Layouts;
use super::target_columns::TargetColumns;
use crate::claims::Group::SyntheticTargets;
use crate::experiment::{
    Analysed, CellContext, DefinitionTable, Experiment, Measure, MeasuredStudy, RawDefinition,
    SearchKeys, StudyError, StudyTarget, TargetKeys, TextSource, View, lengths, read_each,
    read_table, rows_of, search_of_targets, search_settings, seeds, target_defaults,
    target_settings, targets,
};
use crate::solver::{LowerBounds, Problem, SearchOptions, frontier, needed_logit};
use crate::table::TableError;
use crate::targets::{Family, Layout, Visibility};

pub use ledger::{CheckpointStore, fit_search_settings};
pub use row::{FitAsked, FitKey, FitMeasurement, FitTerms, FrontierRow, Proven, Reached};

/// A grid of fits: target × n × heads × seed. One cell has all logit bounds together, or a single tolerance.
#[derive(Clone, Debug)]
pub struct FitStudy {
    /// The targets, each with a unique name.
    pub targets: Vec<StudyTarget>,
    /// Sequence lengths.
    pub n: Vec<usize>,
    /// Layouts with the rank of each of their heads.
    pub heads: Vec<(Layout, usize)>,
    /// Seeds of target and starts.
    pub seeds: Vec<u64>,
    /// The quantity that each fit searches for.
    pub goal: FitGoal,
    /// The search options of the fits.
    pub search: SearchOptions,
}

/// The quantity that a fit searches for.
#[derive(Clone, Debug, PartialEq)]
pub enum FitGoal {
    /// E*(L) at these logit bounds L.
    Caps(Vec<f64>),
    /// L*(ε) at this tolerance ε.
    Tolerance(f64),
}

#[derive(Deserialize, JsonSchema)]
struct Grid {
    /// Sequence lengths.
    n: Vec<usize>,
    /// Ranks d of one global head.
    #[serde(default)]
    rank: Vec<usize>,
    /// Layouts with a rank each: `{ layout = "local:24+global", rank = 8 }`, in place of `rank`.
    #[serde(default)]
    #[schemars(with = "Vec<Heads>")]
    heads: Vec<Table>,
    /// Seeds of targets and starts; default `[0]`.
    seed: Option<Vec<u64>>,
    /// Mask of all targets: `causal` (default) or `bidirectional`.
    visibility: Option<String>,
    /// Bounds L on max |logit|: the smallest error within each is measured.
    #[serde(default)]
    caps: Vec<f64>,
    /// Error ε in nats, in a list: the smallest max |logit| for it is measured.
    #[serde(default)]
    tolerance: Vec<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct Heads {
    /// The layout.
    layout: String,
    /// The rank d of each of its heads.
    rank: usize,
}

fn heads(grid: &Grid) -> Result<Vec<(Layout, usize)>, String> {
    match (grid.heads.is_empty(), grid.rank.is_empty()) {
        (false, true) => read_each(&grid.heads, "grid.heads", |table| {
            let heads: Heads = read_table(table, "grid.heads")?;
            let layout = heads.layout.parse::<Layout>().map_err(|e| e.to_string())?;
            Ok((layout, heads.rank))
        }),
        (true, false) => Ok(grid.rank.iter().map(|&rank| (Layout::global(), rank)).collect()),
        _ => Err("grid needs either rank or heads, a list of {layout, rank}".to_owned()),
    }
}

fn goal(grid: &Grid) -> Result<FitGoal, String> {
    for (key, values) in [("caps", &grid.caps), ("tolerance", &grid.tolerance)] {
        if let Some(v) = values.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(format!("grid.{key} has {v}; every value must be a finite number above 0"));
        }
    }
    match (grid.caps.as_slice(), grid.tolerance.as_slice()) {
        (caps @ [_, ..], []) => Ok(FitGoal::Caps(caps.to_vec())),
        ([], &[tolerance]) => Ok(FitGoal::Tolerance(tolerance)),
        _ => {
            Err("grid needs either caps (bounds on max |logit|) or one tolerance (an error in nats), not both".to_owned())
        }
    }
}

/// One fit of a study: a target with its heads, and the goal of the fit.
#[derive(Clone, Debug)]
pub(crate) struct FitCell {
    family: Family,
    n: usize,
    layout: Layout,
    rank: usize,
    seed: u64,
    visibility: Visibility,
    goal: FitGoal,
    search: SearchOptions,
}

impl Experiment for FitStudy {
    type Cell = FitCell;

    const TABLES: &'static [DefinitionTable] = &[
        DefinitionTable::one::<Grid>("grid"),
        DefinitionTable::one::<SearchKeys>("search"),
        DefinitionTable::list::<TargetKeys>("target"),
    ];
    const VIEWS: &'static [View] = VIEWS;

    fn read(raw: &RawDefinition) -> Result<Self, String> {
        let grid = raw.table("grid")?.ok_or("a study of fits needs a [grid]")?;
        let grid: Grid = read_table(grid, "grid")?;
        let heads = heads(&grid)?;
        if heads.iter().any(|&(_, rank)| rank == 0) {
            return Err("grid.rank must be at least 1".to_owned());
        }
        Ok(Self {
            targets: targets(&raw.tables("target")?, grid.visibility.as_deref())?,
            goal: goal(&grid)?,
            n: lengths(grid.n)?,
            heads,
            seeds: seeds(grid.seed)?,
            search: search_of_targets(&raw.table_or_empty("search")?)?,
        })
    }

    fn cells(
        &self,
        _: Option<&TextSource>,
        _: &Path,
    ) -> Result<Vec<(String, FitCell)>, StudyError> {
        let global_only = self.heads.iter().all(|(layout, _)| *layout == Layout::global());
        let mut cells = Vec::new();
        for target in &self.targets {
            for &n in &self.n {
                for (layout, rank) in &self.heads {
                    for &seed in &self.seeds {
                        let heads = if global_only { String::new() } else { format!("-{layout}") };
                        cells.push((
                            format!("{}/n{n}-d{rank}{heads}-s{seed}", target.name),
                            FitCell {
                                family: target.family.clone(),
                                n,
                                layout: layout.clone(),
                                rank: *rank,
                                seed,
                                visibility: target.visibility,
                                goal: self.goal.clone(),
                                search: SearchOptions { seed, ..self.search },
                            },
                        ));
                    }
                }
            }
        }
        Ok(cells)
    }
}

impl Measure for FitCell {
    type Row = FitMeasurement;

    fn settings(&self) -> Table {
        let Self { family, n, layout, rank, seed, visibility, goal, search } = self;
        let mut table = target_settings(family, *visibility);
        let mut set = |key: &str, value: toml::Value| table.insert(key.to_owned(), value);
        set("n", (*n as i64).into());
        set("layout", layout.to_string().into());
        set("rank", (*rank as i64).into());
        set("seed", (*seed as i64).into());
        match goal {
            FitGoal::Caps(caps) => set("caps", caps.clone().into()),
            FitGoal::Tolerance(tolerance) => set("tolerance", vec![*tolerance].into()),
        };
        set("search", search_settings(search).into());
        table
    }

    fn defaults() -> Table {
        let mut table = target_defaults();
        table.insert("layout".to_owned(), Layout::global().to_string().into());
        table.insert("search".to_owned(), search_settings(&SearchOptions::default()).into());
        table
    }

    fn key(&self) -> FitKey {
        let tolerance = match &self.goal {
            FitGoal::Caps(_) => None,
            FitGoal::Tolerance(tolerance) => Some(*tolerance),
        };
        FitKey {
            of: TargetColumns::from(&self.family),
            asked: FitAsked {
                target: self.family.label(),
                n: self.n,
                rank: self.rank,
                layout: self.layout.clone(),
                seed: Some(self.seed),
            },
            terms: FitTerms { tolerance, visibility: self.visibility },
        }
    }

    fn measure(
        &self,
        context: &CellContext<'_>,
    ) -> Result<Option<Vec<FitMeasurement>>, StudyError> {
        let started = Instant::now();
        let target = self.family.build(self.n, self.seed, self.visibility)?;
        let problem = Problem::new(target, self.layout.clone(), self.rank)?;
        let rows = match &self.goal {
            FitGoal::Caps(caps) => {
                let points = frontier(&problem, caps, self.search, &())?;
                let each_s = started.elapsed().as_secs_f64() / points.len() as f64;
                let bounds = &mut LowerBounds::new(&problem);
                points.iter().map(|point| FitMeasurement::at_cap(point, bounds, each_s)).collect()
            }
            FitGoal::Tolerance(tolerance) => {
                let found = needed_logit(&problem, *tolerance, self.search, &())?;
                let wall_time_s = started.elapsed().as_secs_f64();
                vec![FitMeasurement::needed(&problem, *tolerance, &found, wall_time_s)]
            }
        };
        (context.advanced)(1.0);
        Ok(Some(rows))
    }
}

const VIEWS: &[View] = &[
    View::new(
        "frontiers",
        SyntheticTargets,
        "Error against the logit bound, one line per target. Needs `caps`.",
        |studies| {
            let rows = layouts(studies)?;
            let figures = layouts::frontiers(&rows);
            Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![] })
        },
    ),
    View::new(
        "logit-growth",
        SyntheticTargets,
        "Needed max |logit| and rank penalty against n/d. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: growth::growth(&rows),
                verdicts: claims::growth::verdicts(&rows),
            })
        },
    ),
    View::new(
        "phase",
        SyntheticTargets,
        "Rank penalty by w/d and n/d. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            let figures = phase::phase(&rows);
            Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![] })
        },
    ),
    View::new(
        "controls",
        SyntheticTargets,
        "Rank penalty of a target and of its controls. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: vec![growth::inflation(&rows)],
                verdicts: claims::controls::verdicts(&rows),
            })
        },
    ),
    View::new(
        "layouts",
        SyntheticTargets,
        "Error against the logit bound, one line per layout. Needs `caps`.",
        |studies| {
            let rows = layouts(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: layouts::layouts(&rows),
                verdicts: claims::layouts::verdicts(&rows),
            })
        },
    ),
];

fn growth(studies: &[MeasuredStudy]) -> Result<Growth, TableError> {
    Growth::of(&rows_of::<FitMeasurement>(studies)?)
}

fn layouts(studies: &[MeasuredStudy]) -> Result<Layouts, TableError> {
    Layouts::of(&rows_of::<FitMeasurement>(studies)?)
}
