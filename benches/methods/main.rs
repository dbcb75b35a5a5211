//! Comparison of descent methods for the fit: `cargo bench --bench methods` runs the shipped L-BFGS and five other
//! methods. All minimise the fit's own objective from the same starts, on one thread, with a time budget.
//!
//! It prints a table and writes `data/bench-methods/` (the columns are in `data/README.md`). Under `cargo test`, it
//! only runs the checks.

mod adam;
mod alternating;
mod checks;
mod curvature;
mod newton;
mod problems;
mod report;
mod run;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rank_study::numerics::prepare_process;
use rank_study::run::Manifest;
use rank_study::solver::InitialHessian;
use rank_study::system::write_whole;

use newton::Matrix;
use problems::{Case, Stage};
use report::Measured;
use run::{Run, Trace};

/// Time budgets of a run: about the time of a stage of a fit, and enough time to see the late progress.
const BUDGETS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(4)];
/// Seeds of targets and starts.
const SEEDS: [u64; 3] = [0, 1, 2];

/// A descent method.
#[derive(Clone, Copy, PartialEq)]
pub enum Method {
    /// The library's L-BFGS, with or without its preconditioner.
    Lbfgs(InitialHessian),
    /// Newton steps on queries and keys in turn.
    Alternating,
    /// Levenberg–Marquardt with conjugate gradients on queries and keys together.
    LevenbergMarquardt(Matrix),
    /// Adam with this learning rate.
    Adam(f64),
}

impl Method {
    fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Lbfgs(InitialHessian::Blocks),
            Self::Lbfgs(InitialHessian::Identity),
            Self::Alternating,
            Self::LevenbergMarquardt(Matrix::GaussNewton),
            Self::LevenbergMarquardt(Matrix::Hessian),
        ];
        all.extend(adam::LEARNING_RATES.map(Self::Adam));
        all
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lbfgs(InitialHessian::Blocks) => "L-BFGS, blocks (shipped)",
            Self::Lbfgs(InitialHessian::Identity) => "L-BFGS, plain",
            Self::Alternating => "alternating Newton",
            Self::LevenbergMarquardt(Matrix::GaussNewton) => "Gauss–Newton-CG",
            Self::LevenbergMarquardt(Matrix::Hessian) => "Newton-CG",
            Self::Adam(_) => "Adam",
        }
    }

    fn run(self, stage: &Stage, budget: Duration) -> Result<Trace> {
        let mut run = Run::begin(stage, budget)?;
        match self {
            Self::Lbfgs(initial) => run.descend(initial),
            Self::Alternating => alternating::alternating(&mut run),
            Self::LevenbergMarquardt(matrix) => {
                newton::levenberg_marquardt(&mut run, matrix);
            }
            Self::Adam(learning_rate) => adam::adam(&mut run, learning_rate),
        }
        Ok(run.end())
    }
}

fn main() -> Result<()> {
    // SAFETY: no other thread runs yet.
    unsafe { prepare_process() };
    // Everything runs on the pool's one thread, so that evaluations do not wait for another thread.
    rayon::ThreadPoolBuilder::new().num_threads(1).build()?.install(work)
}

fn work() -> Result<()> {
    let cases = Case::all();
    cases.iter().try_for_each(checks::check)?;
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("the methods' curvature and descent: checks hold");
        return Ok(());
    }
    let started = Instant::now();
    let mut manifest = Manifest::begin(1, "float64");
    "cargo bench --bench methods".clone_into(&mut manifest.command);
    let mut measured = Vec::new();
    for case in &cases {
        measured.extend(compare(case)?);
        eprintln!("{}: done after {:.0} s", case.name, started.elapsed().as_secs_f64());
    }
    manifest.end(started.elapsed().as_secs_f64());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/bench-methods");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let table = report::summary(&measured).to_markdown();
    for (file, text) in
        [("rows.csv", report::rows(&measured).to_csv()), ("table.md", table.clone())]
    {
        let path = folder.join(file);
        write_whole(&path, text.as_bytes()).with_context(|| path.display().to_string())?;
    }
    manifest.write(&folder.join("manifest.toml"))?;
    println!("{table}");
    Ok(())
}

/// Runs every method from every start, with both budgets. For each budget, the first seed tries all learning rates of
/// Adam, and the other seeds use the best of these.
fn compare(case: &Case) -> Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = Vec::new();
    let mut methods = BUDGETS.map(|budget| (budget, Method::all()));
    for seed in SEEDS {
        let stage = case.stage(seed)?;
        let first = measured.len();
        for (budget, methods) in &mut methods {
            let here = measured.len();
            for &method in methods.iter() {
                let trace = method.run(&stage, *budget)?;
                measured.push(Measured::new(case.name, seed, *budget, method, trace));
            }
            if seed == SEEDS[0] {
                keep_best_rate(&mut measured[here..], methods);
            }
        }
        report::hold_against_the_best(&mut measured[first..]);
    }
    Ok(measured)
}

/// Keeps the best learning rate of Adam, and marks the runs of the other rates as not chosen.
fn keep_best_rate(measured: &mut [Measured], methods: &mut Vec<Method>) {
    let tried = measured.iter().filter(|run| matches!(run.method, Method::Adam(_)));
    let best = tried.min_by(|a, b| a.trace.value.total_cmp(&b.trace.value)).map(|run| run.method);
    methods.retain(|method| !matches!(method, Method::Adam(_)) || Some(*method) == best);
    measured.iter_mut().for_each(|run| run.chosen = methods.contains(&run.method));
}
