//! Measuring what a study asks for: its cells, in parallel, each saved as it ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::StudyError;
use super::definition::{StudyDefinition, StudyWork};
use super::fit_cell::FitCell;
use super::manifest::Manifest;
use super::row::Row;
use super::schema::{fit_columns, train_columns};
use super::store::Store;
use super::train_cell::{TextSource, TrainCell};
use crate::digest::sha256;
use crate::lm::Device;

/// Sees a sweep's progress; every method does nothing unless it is written.
pub trait Observer: Sync {
    /// A cell begins.
    fn cell_started(&self, _cell: &str) {}
    /// Work worth `seconds` of the plan's estimate is done.
    fn advanced(&self, _seconds: f64) {}
    /// A cell ended, with its outcomes or its error.
    fn cell_finished(&self, _cell: &str, _outcome: &str) {}
}

/// The folder of tokens beside the studies' own.
const TOKENS: &str = "tokens";

enum Work {
    Fit(Box<FitCell>),
    Train(Box<TrainCell>),
}

/// One cell of a plan.
struct Cell {
    key: String,
    settings: String,
    cost_s: f64,
    work: Work,
}

/// A study's cells, and which of them are done.
pub struct Plan {
    definition: StudyDefinition,
    /// The study's name, with the text's where there is one.
    name: String,
    folder: PathBuf,
    /// The folder that the tokens of texts are kept in.
    tokens: PathBuf,
    /// The text's path, where training runs read one.
    text: String,
    cells: Vec<Cell>,
    /// The keys of all the study's cells, those that a filter leaves out among them.
    order: Vec<String>,
    store: Store,
}

/// How a sweep runs.
pub struct Sweep<'a> {
    /// Cells at a time.
    pub threads: usize,
    /// Set from outside to stop after the cells in hand; training runs stop at their next step.
    pub stop: &'a AtomicBool,
    /// Where models are trained.
    pub device: Device,
    /// Sees the progress.
    pub observer: &'a dyn Observer,
}

/// What a sweep came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepSummary {
    /// Cells that were there before.
    pub skipped: usize,
    /// Cells measured now.
    pub measured: usize,
    /// Cells not begun, or stopped, when the sweep was asked to stop.
    pub left: usize,
    /// Cells that failed, with their errors.
    pub failed: Vec<(String, String)>,
}

impl Plan {
    /// The cells of `definition`, of which those matching `filter` are kept, against the rows in
    /// `data/STUDY/`. With a `text`, training runs read it in place of the synthetic corpus, and the
    /// study's name and folder carry the text's name; with a `valid_text`, that is what they are
    /// evaluated on.
    ///
    /// # Errors
    /// A filter that is no regular expression or matches nothing, rows that cannot be read, a folder
    /// that cannot be written, a text that cannot be read.
    pub fn new(
        definition: &StudyDefinition,
        data: &Path,
        filter: Option<&str>,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Self, StudyError> {
        let text_path = text.map_or_else(String::new, |path| path.display().to_string());
        let text = text.map(|text| TextSource::read(text, valid_text)).transpose()?;
        let (name, columns, mut cells) = match &definition.work {
            StudyWork::Fit(study) => {
                let cells = FitCell::all(study).into_iter().map(|(key, cell)| Cell {
                    settings: hash(&cell.settings()),
                    cost_s: cell.cost_s(),
                    work: Work::Fit(Box::new(cell)),
                    key,
                });
                (definition.study.clone(), fit_columns(), cells.collect::<Vec<_>>())
            }
            StudyWork::Train(study) => {
                let name = match &text {
                    Some(text) => format!("{}-{}", definition.study, text.name),
                    None => definition.study.clone(),
                };
                let cells =
                    TrainCell::all(study, text.as_ref()).into_iter().map(|(key, cell)| Cell {
                        settings: hash(&cell.settings()),
                        cost_s: cell.cost_s(),
                        work: Work::Train(Box::new(cell)),
                        key,
                    });
                (name, train_columns(), cells.collect())
            }
        };
        let order: Vec<String> = cells.iter().map(|cell| cell.key.clone()).collect();
        let folder = data.join(&name);
        let tokens = data.join(TOKENS);
        let store = Store::read(&folder, &columns)?;
        if let Some(pattern) = filter {
            let regex = regex::Regex::new(pattern).map_err(|e| StudyError::Filter {
                pattern: pattern.to_owned(),
                why: what_is_wrong(&e),
            })?;
            cells.retain(|cell| regex.is_match(&cell.key));
            if cells.is_empty() {
                return Err(StudyError::Filter {
                    pattern: pattern.to_owned(),
                    why: format!("matches none of the {} cells; see --list", order.len()),
                });
            }
        }
        Ok(Self {
            definition: definition.clone(),
            name,
            folder,
            tokens,
            text: text_path,
            cells,
            order,
            store,
        })
    }

    /// The study's name, with the text's where there is one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the rows.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Every cell that the filter keeps, and whether its rows are there.
    pub fn cells(&self) -> impl Iterator<Item = (&str, bool)> {
        self.cells.iter().map(|cell| (cell.key.as_str(), self.is_done(cell)))
    }

    fn is_done(&self, cell: &Cell) -> bool {
        self.store.finished(&cell.key, &cell.settings).is_some()
    }

    /// Lines of `rows.csv` that are cut off or have the wrong number of fields. The next run puts
    /// them into `rows-set-aside.csv` and measures their cells again.
    pub fn damaged(&self) -> &[String] {
        self.store.damaged()
    }

    /// The seconds of one core that the cells still to do may take, roughly.
    pub fn remaining_s(&self) -> f64 {
        self.cells.iter().filter(|cell| !self.is_done(cell)).map(|cell| cell.cost_s).sum()
    }

    /// Measures every cell that has no rows yet. A cell that fails is a row with its error; it does
    /// not stop the others, and is tried again by the next sweep.
    ///
    /// # Errors
    /// Rows that cannot be written: then nothing more is measured, and what was saved stays.
    pub fn run(mut self, sweep: &Sweep<'_>) -> Result<SweepSummary, StudyError> {
        let whole = self.store.damaged().is_empty();
        if whole && self.cells.iter().all(|cell| self.is_done(cell)) {
            return Ok(SweepSummary { skipped: self.cells.len(), ..SweepSummary::default() });
        }
        self.store.lock()?;
        self.store.arrange(&self.order)?;
        let todo: Vec<usize> =
            (0..self.cells.len()).filter(|&i| !self.is_done(&self.cells[i])).collect();
        let mut summary =
            SweepSummary { skipped: self.cells.len() - todo.len(), ..SweepSummary::default() };
        let started = Instant::now();
        let mut manifest = self.manifest(sweep);
        let result = self.measure(&todo, sweep, &mut summary);
        summary.left = todo.len() - summary.measured - summary.failed.len();
        self.store.write_parquet()?;
        manifest.end(started.elapsed().as_secs_f64());
        manifest.write(&self.folder.join("manifest.toml"))?;
        result.map(|()| summary)
    }

    fn measure(
        &mut self,
        todo: &[usize],
        sweep: &Sweep<'_>,
        summary: &mut SweepSummary,
    ) -> Result<(), StudyError> {
        let workers = sweep.threads.clamp(1, todo.len());
        let threads_each = (sweep.threads / workers).max(1);
        let next = AtomicUsize::new(0);
        let failed_to_write = AtomicBool::new(false);
        let Self { name, folder, tokens, cells, order, store, .. } = self;
        let (cells, folder, tokens) = (&*cells, &*folder, &*tokens);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..workers {
                let (sender, next, failed_to_write) = (sender.clone(), &next, &failed_to_write);
                scope.spawn(move || {
                    while !sweep.stop.load(Ordering::Relaxed)
                        && !failed_to_write.load(Ordering::Relaxed)
                    {
                        let Some(&place) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        let cell = &cells[place];
                        sweep.observer.cell_started(&cell.key);
                        let rows = cell.measure(folder, tokens, threads_each, sweep);
                        if sender.send((place, rows)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            for (place, measured) in receiver {
                let cell = &cells[place];
                let rows = match measured {
                    Ok(None) => continue,
                    Ok(Some(rows)) => {
                        summary.measured += 1;
                        sweep
                            .observer
                            .cell_finished(&cell.key, rows.last().map_or("", |r| r.get("outcome")));
                        rows
                    }
                    Err(why) => {
                        sweep.observer.cell_finished(&cell.key, &format!("failed: {why}"));
                        summary.failed.push((cell.key.clone(), why.clone()));
                        let mut row = cell.identity();
                        row.set("err", why);
                        vec![row]
                    }
                };
                let rows = rows.into_iter().map(|mut row| {
                    row.set("study", &*name);
                    row.set("cell", &cell.key);
                    row.set("settings", &cell.settings);
                    row
                });
                if let Err(error) = store.put(&cell.key, rows.collect(), order) {
                    failed_to_write.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    /// The study's manifest: the one before, if there is one, goes on.
    fn manifest(&self, sweep: &Sweep<'_>) -> Manifest {
        let mut manifest = Manifest::begin(sweep.threads, &self.definition.work.dtype());
        if let Ok(before) = Manifest::read(&self.folder.join("manifest.toml")) {
            manifest.started = before.started;
            manifest.wall_time_s = before.wall_time_s;
        }
        let d = &self.definition;
        for (key, value) in [
            ("study", &self.name),
            ("title", &d.title),
            ("question", &d.question),
            ("analysis", &d.analysis),
            ("definition_file", &d.path.display().to_string()),
            ("definition", &d.text),
            ("text", &self.text),
            ("device", &sweep.device.name().to_owned()),
        ] {
            manifest.more.insert(key.to_owned(), value.clone().into());
        }
        manifest
    }
}

impl Cell {
    /// The cell's rows; none where it was stopped. A panic inside a cell is that cell's error.
    fn measure(
        &self,
        folder: &Path,
        tokens: &Path,
        threads: usize,
        sweep: &Sweep<'_>,
    ) -> Result<Option<Vec<Row>>, String> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| format!("no threads: {e}"))?;
        let run = || match &self.work {
            Work::Fit(cell) => {
                let rows = cell.run().map_err(|e| e.to_string())?;
                sweep.observer.advanced(self.cost_s);
                Ok(Some(rows))
            }
            Work::Train(cell) => {
                let advanced = |share: f64| sweep.observer.advanced(share * self.cost_s);
                let folder = folder.join(&self.key);
                cell.run(&folder, tokens, sweep.device, sweep.stop, &advanced)
                    .map_err(|e| e.to_string())
            }
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.install(run)))
            .unwrap_or_else(|panic| Err(format!("internal error: {}", panic_text(&*panic))))
    }

    fn identity(&self) -> Row {
        match &self.work {
            Work::Fit(cell) => cell.identity(),
            Work::Train(cell) => cell.identity(),
        }
    }
}

/// What the last line of a regular expression's error says, below the drawing of where it is.
fn what_is_wrong(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a cell panicked")
}

/// The first 12 hexadecimal digits of the settings' SHA-256.
fn hash(settings: &str) -> String {
    let mut digest = sha256(format!("{} {settings}", super::MEASUREMENT_VERSION).as_bytes());
    digest.truncate(12);
    digest
}
