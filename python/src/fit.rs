//! A fit in a thread of its own, while the calling thread answers Ctrl-C and reports progress.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray3, PyReadonlyArray2};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use rank_study::experiments::fits::{FitMeasurement, FrontierRow};
use rank_study::report::fit_conclusion;
use rank_study::solver::{
    Candidate, FitError, FitObserver, FitProgress, FitState, LowerBounds, Problem, SearchOptions,
    check_cap, check_tolerance, frontier, needed_logit,
};

use crate::matrix::{checked, problem, value_error};
use crate::table::Table;

/// Time between two looks at signals and progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Queries and keys of each row, shape (heads, n, rank), or None where the row has none.
type Factors<'py> = Option<(Bound<'py, PyArray3<f64>>, Bound<'py, PyArray3<f64>>)>;

/// The rows of a fit, its queries and keys, and its sentences.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "those of Python's fit")]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    matrix: PyReadonlyArray2<'py, f64>,
    mask: &str,
    logits: bool,
    rank: usize,
    layout: &str,
    max_logit: Vec<f64>,
    tolerance: Option<f64>,
    starts: Option<usize>,
    iterations: Option<usize>,
    dtype: &str,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Table, Vec<Factors<'py>>, Vec<String>)> {
    max_logit.iter().try_for_each(|&cap| check_cap(cap)).map_err(value_error)?;
    tolerance.map_or(Ok(()), check_tolerance).map_err(value_error)?;
    let problem = problem(checked(&matrix, mask, logits)?, rank, layout)?;
    let precision = dtype.parse().map_err(value_error)?;
    let effort = SearchOptions::with_effort(&problem, starts, iterations, seed);
    let options = SearchOptions { precision, ..effort };
    options.check_room(&problem, max_logit.len().max(1)).map_err(|error| match error {
        FitError::TooLarge(_) => PyMemoryError::new_err(error.to_string()),
        _ => value_error(error),
    })?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let watch = Watch { stop: AtomicBool::new(false), done: AtomicUsize::new(0) };
    let most = options.most_iterations(max_logit.len());
    let found = attended(py, &watch, most, progress.as_ref(), || {
        pool.install(|| search(&problem, &max_logit, tolerance, options, &watch))
    })?;
    let (rows, candidates) = found.map_err(value_error)?;
    let factors = candidates.into_iter().map(|candidate| {
        let factors = candidate?.solution.factors;
        let (q, k) = (factors.queries().clone(), factors.keys().clone());
        Some((q.into_pyarray(py), k.into_pyarray(py)))
    });
    Ok((Table::of_records(&rows)?, factors.collect(), fit_conclusion(&rows)))
}

type Found = (Vec<FrontierRow>, Vec<Option<Candidate>>);

/// The search, as `rank-study fit` does it.
fn search(
    problem: &Problem,
    max_logit: &[f64],
    tolerance: Option<f64>,
    options: SearchOptions,
    watch: &Watch,
) -> Result<Found, FitError> {
    let began = Instant::now();
    let seconds = || began.elapsed().as_secs_f64();
    let (found, candidates): (Vec<FitMeasurement>, Vec<_>) = match tolerance {
        Some(tolerance) => {
            let found = needed_logit(problem, tolerance, options, watch)?;
            if watch.stop.load(Ordering::Relaxed) {
                return Ok(Found::default());
            }
            let row = FitMeasurement::needed(problem, tolerance, &found, seconds());
            (vec![row], vec![found.best])
        }
        None => {
            let points = frontier(problem, max_logit, options, watch)?;
            if watch.stop.load(Ordering::Relaxed) {
                // Bounds of rows that nobody gets.
                return Ok(Found::default());
            }
            let (mut bounds, share) = (LowerBounds::new(problem), seconds() / points.len() as f64);
            let rows = points.iter().map(|point| FitMeasurement::at_cap(point, &mut bounds, share));
            (rows.collect(), points.into_iter().map(|point| point.best).collect())
        }
    };
    let row = |(found, best): (FitMeasurement, &Option<Candidate>)| {
        FrontierRow::of(problem, "array", tolerance, found, best.as_ref())
    };
    Ok((found.into_iter().zip(&candidates).map(row).collect(), candidates))
}

/// Runs `work` in another thread. Calls `progress` with the share that is done, and stops at Ctrl-C.
fn attended<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    most: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (ended, mut end) = channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let done = work();
            // The other end waits until the thread has ended.
            let _ = ended.send(());
            done
        });
        let mut failed = None;
        loop {
            let (waited, again) = py.detach(move || (end.recv_timeout(LOOK_EVERY), end));
            end = again;
            if waited != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if failed.is_some() {
                continue;
            }
            let share = watch.done.load(Ordering::Relaxed) as f64 / most.max(1) as f64;
            let report = || match progress {
                Some(progress) => progress.call1((share.min(1.0),)).map(drop),
                None => Ok(()),
            };
            if let Err(error) = py.check_signals().and_then(|()| report()) {
                watch.stop.store(true, Ordering::Relaxed);
                failed = Some(error);
            }
        }
        let done = py.detach(|| worker.join());
        match (failed, done) {
            (Some(error), _) => Err(error),
            (None, Ok(done)) => Ok(done),
            (None, Err(panic)) => {
                let why = rank_study::system::panic_message(&*panic);
                Err(PyRuntimeError::new_err(format!("internal error: {why}")))
            }
        }
    })
}

/// Counts iterations, and ends the search when asked.
struct Watch {
    stop: AtomicBool,
    done: AtomicUsize,
}

impl FitObserver for Watch {
    fn goes_on(&self, _: &FitProgress<'_>, _: &dyn Fn() -> FitState) -> bool {
        self.done.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}
