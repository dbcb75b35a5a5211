//! One cell of a study of fits, and the rows that it gives.

use std::time::Instant;

use toml::Table;

use super::StudyError;
use super::cell::{Measure, Within};
use super::definition::{FitGoal, FitStudy};
use super::settings;
use crate::fit::{LowerBounds, Problem, SearchOptions, frontier, needed_logit};
use crate::pattern::{Family, Layout, Visibility};
use crate::row::{FitAsked, FitFound, FitOf, FitTerms, TargetColumns};

/// One fit of a study: a target with its heads, and what is asked of it.
#[derive(Clone, Debug)]
pub(super) struct FitCell {
    family: Family,
    n: usize,
    layout: Layout,
    rank: usize,
    seed: u64,
    visibility: Visibility,
    goal: FitGoal,
    search: SearchOptions,
}

impl FitCell {
    /// Every cell of a study, in the order of its grid.
    pub fn all(study: &FitStudy) -> Vec<(String, Self)> {
        let goals: Vec<(String, FitGoal)> = match &study.goal {
            FitGoal::Caps(_) => vec![(String::new(), study.goal.clone())],
            FitGoal::Tolerances(all) => all
                .iter()
                .map(|&e| {
                    let tag = if all.len() > 1 { format!("-e{e}") } else { String::new() };
                    (tag, FitGoal::Tolerances(vec![e]))
                })
                .collect(),
        };
        let global_only = study.heads.iter().all(|(layout, _)| *layout == Layout::global());
        let mut cells = Vec::new();
        for target in &study.targets {
            for &n in &study.n {
                for (layout, rank) in &study.heads {
                    for (tag, goal) in &goals {
                        for &seed in &study.seeds {
                            let heads =
                                if global_only { String::new() } else { format!("-{layout}") };
                            cells.push((
                                format!("{}/n{n}-d{rank}{heads}{tag}-s{seed}", target.name),
                                Self {
                                    family: target.family.clone(),
                                    n,
                                    layout: layout.clone(),
                                    rank: *rank,
                                    seed,
                                    visibility: target.visibility,
                                    goal: goal.clone(),
                                    search: SearchOptions { seed, ..study.search },
                                },
                            ));
                        }
                    }
                }
            }
        }
        cells
    }

    fn run(&self) -> Result<Vec<FitFound>, StudyError> {
        let started = Instant::now();
        let target = self.family.build(self.n, self.seed, self.visibility)?;
        let problem = Problem::new(target, self.layout.clone(), self.rank)?;
        Ok(match &self.goal {
            FitGoal::Caps(caps) => {
                let points = frontier(&problem, caps, self.search, &())?;
                let each_s = started.elapsed().as_secs_f64() / points.len() as f64;
                let bounds = &mut LowerBounds::new(&problem);
                points.iter().map(|point| FitFound::at_cap(point, bounds, each_s)).collect()
            }
            FitGoal::Tolerances(tolerances) => {
                let mut rows = Vec::new();
                for &tolerance in tolerances {
                    let found = needed_logit(&problem, tolerance, self.search, &())?;
                    let wall_time_s = started.elapsed().as_secs_f64();
                    rows.push(FitFound::needed(&problem, tolerance, &found, wall_time_s));
                }
                rows
            }
        })
    }
}

impl Measure for FitCell {
    type Kind = FitFound;

    fn settings(&self) -> Table {
        let Self { family, n, layout, rank, seed, visibility, goal, search } = self;
        let mut table = settings::target(family, *visibility);
        let mut set = |key: &str, value: toml::Value| table.insert(key.to_owned(), value);
        set("n", (*n as i64).into());
        set("layout", layout.to_string().into());
        set("rank", (*rank as i64).into());
        set("seed", (*seed as i64).into());
        match goal {
            FitGoal::Caps(caps) => set("caps", caps.clone().into()),
            FitGoal::Tolerances(tolerances) => set("tolerance", tolerances.clone().into()),
        };
        set("search", settings::search(search).into());
        table
    }

    fn defaults() -> Table {
        let mut table = settings::causal();
        table.insert("layout".to_owned(), Layout::global().to_string().into());
        table.insert("search".to_owned(), settings::search(&SearchOptions::default()).into());
        table
    }

    /// Iterations of fits that each take most of those that they may. Passes after the first seldom find anything.
    /// Heads beside each other are told apart slowly.
    fn cost_s(&self) -> f64 {
        let caps = match &self.goal {
            FitGoal::Caps(caps) => caps.len(),
            FitGoal::Tolerances(_) => 0,
        };
        let search = SearchOptions { passes: 0, ..self.search };
        let pairs = (self.n as f64).powi(2) / 2.0;
        let heads = self.layout.heads().len() as f64;
        let iteration = pairs.powf(0.8) * self.rank as f64 * heads * heads * SECONDS_PER_PAIR;
        search.most_iterations(caps) as f64 * iteration
    }

    fn of(&self) -> FitOf {
        let tolerance = match &self.goal {
            FitGoal::Caps(_) => None,
            FitGoal::Tolerances(tolerances) => tolerances.first().copied(),
        };
        FitOf {
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

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<FitFound>>, String> {
        let rows = self.run().map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        Ok(Some(rows))
    }
}

/// Seconds of one core that an iteration takes, by visible pair^0.8 and channel.
const SECONDS_PER_PAIR: f64 = 1.6e-8;
