//! One cell of a study of fits, and the rows that it gives.

use std::path::Path;
use std::time::Instant;

use super::StudyError;
use super::cell::{Measure, Within};
use super::definition::{FitGoal, FitStudy};
use super::row::Row;
use crate::fit::{
    Candidate, Factors, FrontierPoint, LowerBound, LowerBounds, Needed, Outcome, Problem,
    SearchOptions, frontier, needed_logit, norm_product,
};
use crate::pattern::{Family, Layout, Visibility};

/// What a frontier's rows say of their problem.
#[derive(Clone, Debug)]
pub struct FrontierLabel {
    /// The target's short text.
    pub target: String,
    /// The seed of the target and of the starts; none where each row has its start's own.
    pub seed: Option<u64>,
}

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

    fn run(&self) -> Result<Vec<Row>, StudyError> {
        let started = Instant::now();
        let target = self.family.build(self.n, self.seed, self.visibility)?;
        let problem = Problem::new(target, self.layout.clone(), self.rank)?;
        let label = FrontierLabel { target: self.family.label(), seed: Some(self.seed) };
        let rows = match &self.goal {
            FitGoal::Caps(caps) => {
                let points = frontier(&problem, caps, self.search, &())?;
                let wall_time_s = started.elapsed().as_secs_f64() / points.len() as f64;
                frontier_rows(
                    &problem,
                    &label,
                    &points,
                    &mut LowerBounds::new(&problem),
                    wall_time_s,
                )
            }
            FitGoal::Tolerances(tolerances) => {
                let mut rows = Vec::new();
                for &tolerance in tolerances {
                    let found = needed_logit(&problem, tolerance, self.search, &())?;
                    let wall_time_s = started.elapsed().as_secs_f64();
                    rows.push(needed_row(&problem, &label, tolerance, &found, wall_time_s));
                }
                rows
            }
        };
        Ok(rows
            .into_iter()
            .map(|row| {
                let mut whole = self.identity();
                whole.extend(row);
                whole
            })
            .collect())
    }
}

impl Measure for FitCell {
    fn settings(&self) -> String {
        let Self { family, n, layout, rank, seed, visibility, goal, search, .. } = self;
        format!("{family} {n} {layout} {rank} {seed} {visibility} {goal:?} {search:?}")
    }

    /// Measured on the quick preset's studies, and growing with n² and with rank.
    fn cost_s(&self) -> f64 {
        let size = (self.n as f64 / 256.0).powi(2) * (0.5 + self.rank as f64 / 32.0);
        let work = match &self.goal {
            FitGoal::Caps(caps) => 2.0 * (caps.len() * (2 + self.search.starts)) as f64,
            FitGoal::Tolerances(_) => 0.5 * (self.search.starts + 3 * self.search.polished) as f64,
        };
        (0.05 + size) * work * self.layout.heads().len() as f64
    }

    fn identity(&self) -> Row {
        let mut row = family_row(&self.family);
        row.set("n", self.n);
        row.set("rank", self.rank);
        row.set("layout", &self.layout);
        row.set("seed", self.seed);
        row.set("visibility", self.visibility);
        if let FitGoal::Tolerances(tolerance) = &self.goal {
            row.set_some("tolerance", tolerance.first());
        }
        row
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, String> {
        let rows = self.run().map_err(|e| e.to_string())?;
        (within.advanced)(1.0);
        Ok(Some(rows))
    }
}

/// The columns that say what a target is: its family and parameters, and its short text.
pub(super) fn family_row(family: &Family) -> Row {
    let p = family.parameters();
    let mut row = Row::default();
    row.set("family", family.name());
    row.set_some("window", p.window);
    row.set_some("tau", p.tau);
    row.set_some("alpha", p.alpha);
    row.set_some("sigma", p.sigma);
    row.set_some("k", p.k);
    row.set_some("m", p.m);
    row.set_some("c", p.c);
    row.set_some("vocabulary", p.vocabulary);
    row.set_some("lambda", p.lambda);
    row.set_some("local", p.local);
    row.set_some("global", p.global);
    row.set_some("of", p.of);
    row.set_some("path", p.path.map(|path| path.display().to_string()));
    row.set("target", family.label());
    row
}

/// The rows of E*(L), one a cap, each with the lower bound on L*(ε) at ε = its kl_nats.
/// `wall_time_s` is each row's share of the search.
pub fn frontier_rows(
    problem: &Problem,
    label: &FrontierLabel,
    points: &[FrontierPoint],
    bounds: &mut LowerBounds<'_>,
    wall_time_s: f64,
) -> Vec<Row> {
    points
        .iter()
        .map(|point| {
            let mut row = problem_row(problem, label, point.best.as_ref(), wall_time_s);
            row.set("cap", point.cap);
            let floor_kl_nats = bounds.floor_kl_nats(point.cap);
            row.set_some("floor_kl_nats", floor_kl_nats.is_finite().then_some(floor_kl_nats));
            if let Some(Candidate { solution, .. }) = &point.best {
                let bound = bounds.at(solution.kl_nats);
                set_lower_bound(&mut row, bound);
                set_inflation(&mut row, solution.max_abs_logit, bound);
                row.set("outcome", solution.outcome.name());
                row.set("iterations", solution.iterations);
                row.set("evaluations", solution.evaluations);
            } else {
                row.set("outcome", Outcome::Infeasible.name());
            }
            row
        })
        .collect()
}

/// The row of L*(ε). `floor_max_abs_logit` is L⁰(ε), and `inflation` L*(ε)/L⁰(ε); where ε was not
/// reached there is no inflation, and `kl_nats` is the least error found. The lower bound is on L*(ε),
/// reached or not.
pub fn needed_row(
    problem: &Problem,
    label: &FrontierLabel,
    tolerance: f64,
    found: &Needed,
    wall_time_s: f64,
) -> Row {
    let mut bounds = LowerBounds::new(problem);
    let mut row = problem_row(problem, label, found.best.as_ref(), wall_time_s);
    row.set("tolerance", tolerance);
    let bound = bounds.at(tolerance);
    set_lower_bound(&mut row, bound);
    if let Some(Candidate { solution, .. }) = &found.best {
        row.set("cap", solution.max_abs_logit);
        row.set("floor_kl_nats", bounds.floor_kl_nats(solution.max_abs_logit));
        if found.outcome != Outcome::Infeasible {
            set_inflation(&mut row, solution.max_abs_logit, bound);
        }
    }
    row.set("outcome", found.outcome.name());
    row.set("iterations", found.iterations);
    row.set("evaluations", found.evaluations);
    row
}

fn set_inflation(row: &mut Row, reached: f64, bound: Option<LowerBound>) {
    // A floor of 0 is met by no logits at all: there is nothing to divide by.
    let floor = bound.map(|bound| bound.floor).filter(|&floor| floor > 0.0);
    row.set_some("inflation", floor.map(|floor| reached / floor));
}

fn set_lower_bound(row: &mut Row, bound: Option<LowerBound>) {
    if let Some(bound) = bound {
        row.set("floor_max_abs_logit", bound.floor);
        row.set("lower_bound_max_abs_logit", bound.max_abs_logit);
        row.set("lower_bound_by", bound.by);
    }
}

fn problem_row(
    problem: &Problem,
    label: &FrontierLabel,
    best: Option<&Candidate>,
    wall_time_s: f64,
) -> Row {
    let mut row = Row::default();
    row.set("target", &label.target);
    row.set("n", problem.n());
    row.set("rank", problem.rank());
    row.set("layout", problem.layout());
    row.set("visibility", problem.target().visibility());
    row.set("wall_time_s", (wall_time_s * 1e6).round() / 1e6);
    row.set_some("seed", label.seed.or(best.map(|best| best.start as u64)));
    if let Some(Candidate { solution, .. }) = best {
        row.set("kl_nats", solution.kl_nats);
        row.set("max_abs_logit", solution.max_abs_logit);
        row.set("logit_spread", solution.logit_spread);
        row.set("norm_product", norm_product(&solution.factors));
        row.set_some(
            "gradient_norm",
            solution.gradient_norm.is_finite().then_some(solution.gradient_norm),
        );
    }
    row
}

/// Reads factors that `write_factors` wrote; where there is no `weights.npy`, even weights.
///
/// # Errors
/// Files that cannot be read, or hold no factors.
pub fn read_factors(folder: &Path) -> Result<Factors, StudyError> {
    fn npy<D: ndarray::Dimension>(path: &Path) -> Result<ndarray::Array<f64, D>, StudyError> {
        ndarray_npy::read_npy(path).map_err(|e| StudyError::Read {
            path: path.to_owned(),
            source: std::io::Error::other(e.to_string()),
        })
    }
    let (queries, keys) = (npy(&folder.join("q.npy"))?, npy(&folder.join("k.npy"))?);
    let weights = folder.join("weights.npy");
    let weights = if weights.exists() {
        npy(&weights)?
    } else {
        let heads = ndarray::Array3::dim(&queries).0;
        ndarray::Array1::from_elem(heads, 1.0 / heads as f64)
    };
    Ok(Factors::new(queries, keys, weights).map_err(crate::fit::FitError::from)?)
}

/// Writes factors as `q.npy` and `k.npy`, (heads, n, rank), and `weights.npy`, (heads), float64,
/// into `folder`, which is made where it is missing.
///
/// # Errors
/// Files that cannot be written.
pub fn write_factors(folder: &Path, factors: &Factors) -> Result<(), StudyError> {
    fn npy<D: ndarray::Dimension>(
        path: &Path,
        array: &ndarray::Array<f64, D>,
    ) -> Result<(), StudyError> {
        use ndarray_npy::WriteNpyExt as _;
        let mut bytes = Vec::new();
        array
            .write_npy(&mut bytes)
            .map_err(|e| std::io::Error::other(e.to_string()))
            .and_then(|()| crate::system::write_whole(path, &bytes))
            .map_err(|e| StudyError::write(path, e))
    }
    npy(&folder.join("q.npy"), factors.queries())?;
    npy(&folder.join("k.npy"), factors.keys())?;
    npy(&folder.join("weights.npy"), factors.weights())
}
