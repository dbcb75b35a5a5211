//! Runs one search with progress, saves its results as it finds them, and continues a search that was stopped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cli::errors::FlagContext as _;
use crate::cli::progress::Progress;
use crate::cli::stop::{Stopped, stop_at_signal};
use crate::experiments::fits::tables::one_fit::TARGET;
use crate::experiments::fits::{CheckpointStore, FitMeasurement, FrontierRow, fit_search_settings};
use crate::record::{read_records, write_records};
use crate::run::Manifest;
use crate::solver::{
    Candidate, FitObserver, FitProgress, FitState, FrontierPoint, Kept, LowerBounds, Problem,
    SearchOptions, Solution, frontier, needed_logit, write_factors,
};
use crate::study::StudyError;
use crate::system::{check_writable, clear_temporary_files};
use crate::targets::write_matrix;

/// Maximum time between two checkpoints of a running fit.
const KEEP_EVERY: Duration = Duration::from_secs(60);
/// Fits that took less time are not saved, because repeating them is as quick.
const WORTH_KEEPING: Duration = Duration::from_secs(1);
/// Largest n for which the target is stored beside its fit: 32 MiB.
const LARGEST_KEPT: usize = 2048;
/// The file of the rows.
const ROWS: &str = "frontier.csv";

/// Output folder of a search, and the name of its target in the rows.
pub struct Place<'a> {
    pub out: &'a Path,
    pub target: String,
}

/// Searches for the smallest error within each logit bound of `caps` or, with a `tolerance`, for the smallest logit that
/// reaches this error. Continues the search stored in the output folder, if there is one. Returns the rows.
pub fn run(
    problem: &Problem,
    caps: &[f64],
    tolerance: Option<f64>,
    options: SearchOptions,
    place: &Place<'_>,
) -> Result<Vec<FrontierRow>> {
    options.check_room(problem, caps.len().max(1)).flag("--starts")?;
    let out = place.out;
    let unfinished = out.join("unfinished");
    let had_ended = || out.join(ROWS).exists() && !CheckpointStore::is_begun(&unfinished);
    let refuse_another = || match had_ended() {
        true => {
            // A process that was killed while it removed this folder may have left it empty.
            let _ = crate::system::disk::remove_folder(&unfinished);
            bail!("--out {} already has a frontier.csv; name another folder", out.display())
        }
        false => Ok(()),
    };
    refuse_another()?;
    check_writable(out).with_context(|| {
        format!("--out {} cannot be written; name another folder", out.display())
    })?;
    let _lock = crate::system::lock(out).context("--out")?;
    // The process that held the folder until now may have finished the search.
    refuse_another()?;
    let ledger = CheckpointStore::open(
        &unfinished,
        &fit_search_settings(problem, caps, tolerance, &options),
    )
    .context("--out")?;
    let target = out.join(TARGET);
    if problem.n() <= LARGEST_KEPT && !target.exists() {
        write_matrix(&problem.target().dense(), &target).context("--out")?;
    }
    let rows = out.join(ROWS);
    let earlier = match rows.exists() {
        true => read_records(&rows, "remove the folder to search again").context("--out")?,
        false => Vec::new(),
    };
    let path = out.join("manifest.toml");
    let threads = rayon::current_num_threads();
    let mut manifest = if path.exists() {
        let mut manifest = Manifest::read(&path).context("--out")?;
        manifest.go_on(threads);
        manifest
    } else {
        Manifest::begin(threads, &options.precision.to_string())
    };
    manifest.more.insert("target".to_owned(), place.target.clone().into());
    manifest.more.insert("seed".to_owned(), (options.seed as i64).into());
    manifest.more.insert("starts".to_owned(), (options.starts as i64).into());
    let progress = Progress::up_to(options.most_iterations(caps.len()));
    progress.name("setting up");
    let stop = stop_at_signal("stopping; saving the best found so far")?;
    let job = Job {
        problem,
        place,
        tolerance,
        ledger: &ledger,
        progress: &progress,
        stop,
        started: Instant::now(),
        earlier,
        earlier_s: manifest.wall_time_s,
        underway: Mutex::default(),
        bounds: Mutex::default(),
        written: Mutex::default(),
        failed: Mutex::default(),
    };
    let rows = match tolerance {
        None => {
            let points = frontier(problem, caps, options, &job).flag("--max-logit")?;
            job.save_frontier(&points)
        }
        Some(tolerance) => {
            let found = needed_logit(problem, tolerance, options, &job).flag("--tolerance")?;
            let wall_time_s = job.wall_time_s();
            let of_row = FitMeasurement::needed(problem, tolerance, &found, wall_time_s);
            job.save(vec![(of_row, found.best.as_ref(), format!("tolerance-{tolerance}"))])
        }
    }
    .context("--out")?;
    progress.finish();
    let failed = lock(&job.failed).take();
    let stopped = stop.load(Ordering::Relaxed) && failed.is_none();
    manifest.end(job.started.elapsed().as_secs_f64());
    manifest.write(&path).context("--out")?;
    failed.map_or(Ok(()), Err).context("--out")?;
    if stopped {
        let why = "frontier.csv has the best so far; run the same command to continue";
        return Err(Stopped(format!("stopped: {}/{why}", out.display())).into());
    }
    ledger.remove().context("--out")?;
    Ok(rows)
}

struct Job<'a> {
    problem: &'a Problem,
    place: &'a Place<'a>,
    tolerance: Option<f64>,
    ledger: &'a CheckpointStore,
    progress: &'a Progress,
    stop: &'a AtomicBool,
    started: Instant,
    /// Rows that earlier processes of the search wrote.
    earlier: Vec<FrontierRow>,
    /// Seconds that the search took in earlier processes.
    earlier_s: f64,
    underway: Mutex<HashMap<String, Underway>>,
    /// Lower bounds computed for the rows.
    bounds: Mutex<Option<LowerBounds<'a>>>,
    /// kl_nats of the factors on the disk, by the name of their folder.
    written: Mutex<HashMap<String, f64>>,
    /// The first error of a save.
    failed: Mutex<Option<StudyError>>,
}

/// One running fit.
struct Underway {
    began: Instant,
    kept: Instant,
    /// Maximum number of iterations.
    limit: usize,
    /// Iterations already counted by the progress.
    counted: usize,
}

/// What a row tells, its factors, and the name of their folder.
type Found<'f> = (FitMeasurement, Option<&'f Candidate>, String);

impl FitObserver for Job<'_> {
    fn recall(&self, fit: &str, limit: usize) -> Option<Kept> {
        let kept = self.ledger.read(fit).unwrap_or_else(|error| {
            self.progress.say(&format!("warning: {error}; this part of the search starts again"));
            None
        });
        let counted = match &kept {
            Some(Kept::Finished(_)) => {
                self.progress.done_before(limit);
                return kept;
            }
            Some(Kept::Underway(state)) => state.iterations,
            None => 0,
        };
        self.progress.done_before(counted);
        let now = Instant::now();
        lock(&self.underway)
            .insert(fit.to_owned(), Underway { began: now, kept: now, limit, counted });
        kept
    }

    fn goes_on(&self, at: &FitProgress<'_>, state: &dyn Fn() -> FitState) -> bool {
        let stopped = self.stop.load(Ordering::Relaxed);
        let (new, keep) = {
            let mut underway = lock(&self.underway);
            let Some(fit) = underway.get_mut(at.fit) else {
                return !stopped;
            };
            let new = at.iterations - fit.counted;
            fit.counted = at.iterations;
            let keep = stopped || fit.kept.elapsed() >= KEEP_EVERY;
            if keep {
                fit.kept = Instant::now();
            }
            (new, keep)
        };
        if keep {
            self.note(self.ledger.write_underway(at.fit, &state()));
        }
        let FitProgress { cap, iterations, limit, value, .. } = *at;
        self.progress.name(&format!(
            "logit bound {cap:.4}, iteration {iterations} of at most {limit}, KL about {value:.6} nats"
        ));
        self.progress.advanced(new);
        !stopped && lock(&self.failed).is_none()
    }

    fn finished(&self, fit: &str, solution: &Solution) {
        let Some(Underway { began, limit, counted, .. }) = lock(&self.underway).remove(fit) else {
            return;
        };
        self.progress.advanced(limit.saturating_sub(counted));
        if began.elapsed() >= WORTH_KEEPING {
            self.note(self.ledger.write_finished(fit, solution));
        }
    }

    fn improved(&self, points: &[FrontierPoint]) {
        let reached = |point: &FrontierPoint| point.best.as_ref().map(|it| it.solution.kl_nats);
        let is_written = |point: &FrontierPoint| {
            reached(point) == lock(&self.written).get(&folder_at(point)).copied()
        };
        if points.iter().all(is_written) {
            return;
        }
        self.note(self.save_frontier(points).map(|_| ()));
        let of_point =
            |point: &FrontierPoint| Some(format!("{}: {:.6}", point.cap, reached(point)?));
        let line: Vec<String> = points.iter().filter_map(of_point).collect();
        let elapsed = self.started.elapsed().as_secs_f64();
        self.progress.say(&format!("[{elapsed:.1} s] error by logit bound  {}", line.join("  ")));
    }
}

impl<'a> Job<'a> {
    fn note(&self, done: Result<(), impl Into<StudyError>>) {
        if let Err(error) = done {
            lock(&self.failed).get_or_insert(error.into());
        }
    }

    /// Writes the rows of a frontier and its new factors; returns the rows.
    fn save_frontier(&self, points: &[FrontierPoint]) -> Result<Vec<FrontierRow>, StudyError> {
        let wall_time_s = self.wall_time_s() / points.len() as f64;
        let mut bounds = lock(&self.bounds);
        let bounds = bounds.get_or_insert_with(|| LowerBounds::new(self.problem));
        let mut found = |point| FitMeasurement::at_cap(point, bounds, wall_time_s);
        let rows = points.iter().map(|point| (found(point), point.best.as_ref(), folder_at(point)));
        self.save(rows.collect())
    }

    /// Writes rows and their new factors; returns the rows.
    fn save(&self, found: Vec<Found<'_>>) -> Result<Vec<FrontierRow>, StudyError> {
        let mut written = lock(&self.written);
        let mut rows = Vec::with_capacity(found.len());
        for (place, (found, best, name)) in found.into_iter().enumerate() {
            let Place { out, target } = self.place;
            let mut row = FrontierRow::of(self.problem, target, self.tolerance, found, best);
            if let Some(earlier) = self.better_before(place, &row) {
                row = earlier;
                // Factors that are kept are not written, which would remove what a killed process left beside them.
                clear_temporary_files(&out.join("factors").join(&name));
            } else if let Some(Candidate { solution, .. }) = best {
                let folder = Path::new("factors").join(&name);
                if written.get(&name) != Some(&solution.kl_nats) {
                    write_factors(&out.join(&folder), &solution.factors)?;
                    written.insert(name, solution.kl_nats);
                }
                row.found.factors = Some(folder.display().to_string());
            }
            rows.push(row);
        }
        write_records(&self.place.out.join(ROWS), &rows)?;
        Ok(rows)
    }

    /// The row that an earlier process of this search wrote, if it is better than `row`. A resumed fit takes another path,
    /// because the optimiser's memory is rebuilt, and may end worse. The outcome is that of the search now.
    fn better_before(&self, place: usize, row: &FrontierRow) -> Option<FrontierRow> {
        let least_first = |found: &FitMeasurement| {
            let of_search = match self.tolerance {
                Some(_) => found.cap,
                None => found.kl_nats,
            };
            [of_search, found.kl_nats].map(|value| value.unwrap_or(f64::INFINITY))
        };
        let earlier = self.earlier.get(place)?;
        (least_first(&earlier.found) < least_first(&row.found)).then(|| {
            let mut earlier = earlier.clone();
            earlier.found.outcome = row.found.outcome;
            earlier.found.wall_time_s = row.found.wall_time_s;
            earlier
        })
    }

    fn wall_time_s(&self) -> f64 {
        self.earlier_s + self.started.elapsed().as_secs_f64()
    }
}

/// Name of the folder of the factors within a logit bound.
fn folder_at(point: &FrontierPoint) -> String {
    format!("cap-{}", point.cap)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data stays valid when a thread panics, because each statement leaves it so.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
