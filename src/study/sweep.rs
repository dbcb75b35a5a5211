//! Measuring what a study asks for: its cells, in parallel, each saved as it ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use toml::Table;

use super::StudyError;
use super::cell::{Cell, Measured, Needs, Within};
use super::cells::cells_of;
use super::definition::{StudyDefinition, StudyWork};
use super::store::Store;
use super::study_manifest::{self, StudyManifest, TEXT, TEXT_HASH, VALID_TEXT, VALID_TEXT_HASH};
use super::text_source::TextSource;
use crate::lm::{Device, Texts};
use crate::row::{Column, Line};
use crate::run::manifest::Manifest;
use crate::run::train::MANIFEST;

/// Sees a sweep's progress; every method does nothing unless it is written.
pub trait Observer: Sync {
    /// A cell begins.
    fn cell_started(&self, _cell: &str) {}
    /// Work worth `seconds` of the plan's estimate is done.
    fn advanced(&self, _seconds: f64) {}
    /// A cell ended, with its outcomes or its error.
    fn cell_finished(&self, _cell: &str, _outcome: &str) {}
    /// Something was done that whoever runs the sweep should know of.
    fn warned(&self, _of_what: &str) {}
}

/// The folder of tokens beside the studies' own.
const TOKENS: &str = "tokens";

/// A study's cells, and which of them are done.
pub struct Plan {
    definition: StudyDefinition,
    /// The study's name, with the text's where there is one.
    name: String,
    folder: PathBuf,
    /// The folder that the tokens of texts are kept in.
    tokens: PathBuf,
    /// The texts, where models read some, and what they are called.
    text: Option<(TextSource, Texts)>,
    cells: Vec<Cell>,
    /// The keys of all the study's cells, those that a filter leaves out among them.
    order: Vec<String>,
    store: Store,
    /// Whether cells are measured again though their rows are there: for the files beside them.
    again: bool,
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
    /// study's name and folder carry the text's name, and its hash where another text of that name was
    /// first; with a `valid_text`, that is what they are evaluated on.
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
        let reads = matches!(definition.work, StudyWork::Train(_) | StudyWork::Predict(_));
        let text = text.filter(|_| reads);
        let text = text.map(|text| TextSource::read(text, valid_text)).transpose()?;
        let source = text.as_ref().map(|(source, _)| source);
        let read = source.filter(|_| definition.work.is_of_text());
        let name = TextSource::name_of_study(data, &definition.study, read);
        let mut cells = cells_of(&definition.work, source, data)?;
        let columns = definition.work.kind().columns();
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
            text,
            cells,
            order,
            store,
            again: false,
        })
    }

    /// The plans, to be run before this one, of what its cells still to do need of other studies: runs whose
    /// weights are not there, though their rows may be. The arguments are those of [`Plan::new`].
    ///
    /// # Errors
    /// As [`Plan::new`], of a study that is needed.
    pub fn prerequisites(
        &self,
        data: &Path,
        text: Option<&Path>,
        valid_text: Option<&Path>,
    ) -> Result<Vec<Self>, StudyError> {
        let undone = self.cells.iter().filter(|cell| !self.is_done(cell));
        let needs: Vec<Needs> =
            undone.filter_map(|cell| cell.needs(&self.folder.join(&cell.key))).collect();
        let mut studies: Vec<&str> = needs.iter().map(|needs| &*needs.study).collect();
        studies.dedup();
        let plan = |study: &&str| {
            let path = self.definition.path.with_file_name(format!("{study}.toml"));
            let definition = StudyDefinition::read(&path, self.definition.preset)?;
            let mut plan = Self::new(&definition, data, None, text, valid_text)?;
            let is_needed =
                |cell: &Cell| needs.iter().any(|n| n.study == **study && n.cell == cell.key);
            plan.cells.retain(is_needed);
            plan.again = true;
            // What is needed may need something itself.
            let mut all = plan.prerequisites(data, text, valid_text)?;
            all.push(plan);
            Ok(all)
        };
        let plans: Vec<Vec<Self>> = studies.iter().map(plan).collect::<Result<_, StudyError>>()?;
        // A teacher may be among the runs that are needed themselves.
        let mut found: Vec<Self> = Vec::new();
        for mut plan in plans.into_iter().flatten() {
            let has = |other: &Self, key: &str| {
                other.name == plan.name && other.cells.iter().any(|cell| cell.key == key)
            };
            plan.cells.retain(|cell| !found.iter().any(|other| has(other, &cell.key)));
            if !plan.cells.is_empty() {
                found.push(plan);
            }
        }
        Ok(found)
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
        !self.again && self.store.finished(&cell.key, &cell.settings).is_some()
    }

    /// Whether matrices are to be decomposed for as long as the cells take.
    pub fn decomposes(&self) -> bool {
        matches!(self.definition.work, StudyWork::Spectrum(_))
            && self.cells.iter().any(|cell| !self.is_done(cell))
    }

    /// Lines of `rows.csv` that are cut off or have the wrong number of fields. The next run puts
    /// them into `rows-set-aside.csv` and measures their cells again.
    pub fn damaged(&self) -> &[String] {
        self.store.damaged()
    }

    /// How many measured rows the next run puts into `rows-set-aside.csv`, and why, in words.
    pub fn to_set_aside(&self) -> Vec<(usize, &'static str)> {
        let todo: Vec<&Cell> = self.cells.iter().filter(|cell| !self.is_done(cell)).collect();
        if todo.is_empty() {
            return Vec::new();
        }
        let (mut others, mut again) = (0, 0);
        for cell in todo {
            for row in self.store.measured(&cell.key) {
                *(if row.settings() == cell.settings { &mut again } else { &mut others }) += 1;
            }
        }
        let reasons = [
            (others, "of other settings, to be measured again"),
            (again, "of runs whose files are needed and not there"),
            (self.store.others(&self.order), "of cells that the definition does not have"),
        ];
        reasons.into_iter().filter(|(rows, _)| *rows > 0).collect()
    }

    /// The seconds of one core that the cells still to do may take, roughly.
    pub fn remaining_s(&self) -> f64 {
        self.cells.iter().filter(|cell| !self.is_done(cell)).map(|cell| cell.cost_s).sum()
    }

    /// The seconds that they may take on so many threads, each cell on one.
    pub fn remaining_on(&self, threads: usize) -> f64 {
        let todo = self.cells.iter().filter(|cell| !self.is_done(cell));
        let longest = todo.map(|cell| cell.cost_s).fold(0.0, f64::max);
        longest.max(self.remaining_s() / threads as f64)
    }

    /// Measures every cell that has no rows yet. A cell that fails is a row with its error; it does
    /// not stop the others, and is tried again by the next sweep.
    ///
    /// # Errors
    /// Rows that cannot be written: then nothing more is measured, and what was saved stays.
    pub fn run(mut self, sweep: &Sweep<'_>) -> Result<SweepSummary, StudyError> {
        let whole = self.store.damaged().is_empty();
        if whole && self.cells.iter().all(|cell| self.is_done(cell)) {
            self.finish()?;
            return Ok(SweepSummary { skipped: self.cells.len(), ..SweepSummary::default() });
        }
        self.lock()?;
        let begun = self.manifest(sweep);
        let mut manifest = StudyManifest::begin(&self.folder, begun, self.store.sha256())?;
        self.store.arrange(&self.order, &mut manifest)?;
        let todo: Vec<usize> =
            (0..self.cells.len()).filter(|&i| !self.is_done(&self.cells[i])).collect();
        let mut summary =
            SweepSummary { skipped: self.cells.len() - todo.len(), ..SweepSummary::default() };
        self.measure(&todo, sweep, &mut manifest, &mut summary)?;
        summary.left = todo.len() - summary.measured - summary.failed.len();
        let Some(rows) = self.store.sha256() else {
            // Stopped before the first row: there is nothing to describe yet.
            return Ok(summary);
        };
        self.store.write_parquet()?;
        manifest.end(rows)?;
        Ok(summary)
    }

    /// Takes the folder for this process alone.
    fn lock(&mut self) -> Result<(), StudyError> {
        self.store.lock()?;
        let source = self.text.as_ref().map(|(source, _)| source);
        let read = source.filter(|_| self.definition.work.is_of_text());
        let data = self.folder.parent().unwrap_or(Path::new(""));
        if TextSource::name_of_study(data, &self.definition.study, read) != self.name {
            return Err(StudyError::Taken(self.folder.clone()));
        }
        Ok(())
    }

    /// Brings what tells of rows that are all there up to them and to the definition's words; writes nothing where it
    /// is.
    fn finish(&mut self) -> Result<(), StudyError> {
        if self.unfinished()?.is_none() && self.store.wrong_with_parquet().is_none() {
            return Ok(());
        }
        match self.lock() {
            // Who is at work there finishes it.
            Err(StudyError::Busy(_)) => return Ok(()),
            locked => locked?,
        }
        if self.store.wrong_with_parquet().is_some() {
            self.store.write_parquet()?;
        }
        match self.unfinished()? {
            Some(manifest) => manifest.write(&self.folder.join(MANIFEST)),
            None => Ok(()),
        }
    }

    /// What the manifest of rows that are all there lacks to tell of them; none where it lacks nothing.
    fn unfinished(&self) -> Result<Option<Manifest>, StudyError> {
        let Some(rows) = self.store.sha256() else { return Ok(None) };
        let dtype = self.definition.work.dtype();
        study_manifest::ended(&self.folder, rows, &dtype, self.about(), self.about_text())
    }

    fn measure(
        &mut self,
        todo: &[usize],
        sweep: &Sweep<'_>,
        manifest: &mut StudyManifest,
        summary: &mut SweepSummary,
    ) -> Result<(), StudyError> {
        // What is timed is timed alone.
        let timed = matches!(self.definition.work, StudyWork::Latency(_));
        let workers = if timed { 1 } else { sweep.threads.clamp(1, todo.len().max(1)) };
        let threads_each = (sweep.threads / workers).max(1);
        let next = AtomicUsize::new(0);
        let failed_to_write = AtomicBool::new(false);
        let Self { name, folder, tokens, text, cells, order, store, .. } = self;
        let texts = text.as_ref().map(|(_, texts)| texts);
        let of_study = OfStudy { name: &*name, folder: &*folder, tokens: &*tokens, texts };
        let cells = &*cells;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..workers {
                let (sender, next, failed_to_write) = (sender.clone(), &next, &failed_to_write);
                let of_study = &of_study;
                scope.spawn(move || {
                    while !sweep.stop.load(Ordering::Relaxed)
                        && !failed_to_write.load(Ordering::Relaxed)
                    {
                        let Some(&place) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else {
                            break;
                        };
                        let cell = &cells[place];
                        sweep.observer.cell_started(&cell.key);
                        let rows = of_study.measure(cell, threads_each, sweep);
                        if sender.send((place, rows)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            for (place, measured) in receiver {
                let cell = &cells[place];
                let lines = match measured {
                    Ok(None) => continue,
                    Ok(Some(Measured { lines, outcome })) => {
                        summary.measured += 1;
                        sweep.observer.cell_finished(&cell.key, &outcome);
                        lines
                    }
                    Err(why) => {
                        sweep.observer.cell_finished(&cell.key, &format!("failed: {why}"));
                        let line = cell.failed(of_study.name, &why);
                        summary.failed.push((cell.key.clone(), why));
                        vec![line]
                    }
                };
                if let Err(error) = store.put(&cell.key, lines, order, manifest) {
                    failed_to_write.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    /// The manifest of a sweep that begins now.
    fn manifest(&self, sweep: &Sweep<'_>) -> Manifest {
        let mut manifest = Manifest::begin(sweep.threads, &self.definition.work.dtype());
        manifest.more.extend(self.about());
        manifest.more.extend(self.about_text());
        manifest.more.insert("device".to_owned(), sweep.device.name().into());
        manifest
    }

    /// What the manifest takes from the definition.
    fn about(&self) -> Table {
        let d = &self.definition;
        let entries = [
            ("study", self.name.clone()),
            ("title", d.title.clone()),
            ("question", d.question.clone()),
            ("analysis", d.analysis.clone()),
            ("view", d.view.map_or_else(String::new, |view| view.to_string())),
            ("preset", d.preset.to_string()),
            ("definition_file", d.path.display().to_string()),
            ("definition", d.text.clone()),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
    }

    /// What the manifest says of the texts: paths, and what tells them from others of their names.
    fn about_text(&self) -> Table {
        let mut about = Table::new();
        let mut insert = |key: &str, value: &str| about.insert(key.to_owned(), value.into());
        insert(TEXT, self.text.as_ref().map_or("", |(text, _)| &text.path));
        if let Some((text, _)) = &self.text {
            let hashes = text.hashes();
            insert(TEXT_HASH, &hashes.text);
            if let Some(valid) = &hashes.valid {
                insert(VALID_TEXT, &text.valid_path);
                insert(VALID_TEXT_HASH, valid);
            }
        }
        about
    }
}

/// The columns of a study's rows, and the rows that it has in `folder`, those of cells that failed among them, in
/// the order of its cells.
///
/// # Errors
/// Rows that cannot be read.
pub fn stored_lines(
    definition: &StudyDefinition,
    folder: &Path,
) -> Result<(Vec<Column>, Vec<Line>), StudyError> {
    let columns = definition.work.kind().columns();
    let lines = Store::read(folder, &columns)?.rows().cloned().collect();
    Ok((columns, lines))
}

/// What all cells of a study are measured with.
struct OfStudy<'a> {
    name: &'a str,
    folder: &'a Path,
    tokens: &'a Path,
    texts: Option<&'a Texts>,
}

impl OfStudy<'_> {
    /// [`Cell::measure`] on threads of its own.
    fn measure(
        &self,
        cell: &Cell,
        threads: usize,
        sweep: &Sweep<'_>,
    ) -> Result<Option<Measured>, String> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|e| format!("no threads: {e}"))?;
        let advanced = |share: f64| sweep.observer.advanced(share * cell.cost_s);
        let within = Within {
            folder: &self.folder.join(&cell.key),
            tokens: self.tokens,
            texts: self.texts,
            device: sweep.device,
            stop: sweep.stop,
            advanced: &advanced,
            warned: &|of_what| sweep.observer.warned(of_what),
        };
        pool.install(|| cell.measure(self.name, &within))
    }
}

/// What the last line of a regular expression's error says, below the drawing of where it is.
fn what_is_wrong(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
