//! Measurement of a study's cells, in parallel; the rows of each cell are saved when it ends.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use toml::Table;

use super::parts::{SHARD, check_merged, keep_order};
use super::plan::Plan;
use super::study_manifest::{self, StudyManifest};
use crate::experiment::{
    Cell, CellContext, Measured, StudyError, TEXT, TEXT_HASH, TextSource, VALID_TEXT,
    VALID_TEXT_HASH,
};
use crate::lm::Device;
use crate::record::STOPPED;
use crate::run::RunError;
use crate::run::manifest::{MANIFEST, Manifest};
use crate::system::FileError;

/// Observer of a sweep's progress. All methods do nothing by default; `()` is an observer that ignores everything.
pub trait Observer: Sync {
    /// Called when a cell begins.
    fn cell_started(&self, _cell: &str) {}
    /// Called when a further share of a cell is done; the shares of a cell sum to 1.
    fn advanced(&self, _cell: &str, _share: f64) {}
    /// Called when a cell has ended, with its outcomes or its error.
    fn cell_finished(&self, _cell: &str, _outcome: &str) {}
    /// Called with a warning for the user.
    fn warned(&self, _of_what: &str) {}
}

impl Observer for () {}

/// Options of a sweep.
pub struct Sweep<'a> {
    /// Number of threads, and maximum number of cells measured at once.
    pub threads: usize,
    /// Set by the caller to stop after the running cells; training runs stop at their next step.
    pub stop: &'a AtomicBool,
    /// Device for training.
    pub device: Device,
    /// Observer of the progress.
    pub observer: &'a dyn Observer,
}

/// Result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepSummary {
    /// Cells that were done before.
    pub skipped: usize,
    /// Cells measured in this sweep.
    pub measured: usize,
    /// Cells that were not begun, or were stopped, because the sweep was stopped.
    pub left: usize,
    /// Cells that failed, with their errors.
    pub failed: Vec<(String, String)>,
    /// Cells of a shard that were not begun, because they need files of runs that other shards have not made yet.
    pub waiting: usize,
}

impl Plan {
    /// Measures every cell that is not done. A failed cell gets a row with its error; it does not stop the others, and
    /// the next sweep tries it again.
    ///
    /// # Errors
    /// Rows cannot be written. The sweep then ends; rows saved before are kept.
    pub fn run(mut self, sweep: &Sweep<'_>) -> Result<SweepSummary, StudyError> {
        if self.shard.is_none() {
            check_merged(&self.folder)?;
        }
        let whole = self.store.damaged.is_empty();
        if whole && self.cells.iter().all(|cell| self.is_done(cell)) {
            self.finish()?;
            return Ok(SweepSummary { skipped: self.cells.len(), ..SweepSummary::default() });
        }
        let begun = self.manifest(sweep);
        self.lock()?;
        if !self.store.excludes_others() {
            sweep.observer.warned(&format!(
                "warning: the file system of {} has no locks; measure each study or shard with one process at a time",
                self.folder_of_rows().display()
            ));
        }
        let mut manifest =
            StudyManifest::begin(&self.folder_of_rows(), begun, self.store.sha256())?;
        self.store.arrange(&self.order, &mut manifest)?;
        let mut todo: Vec<usize> =
            (0..self.cells.len()).filter(|&i| !self.is_done(&self.cells[i])).collect();
        let mut summary =
            SweepSummary { skipped: self.cells.len() - todo.len(), ..SweepSummary::default() };
        if self.shard.is_some() {
            let undone = todo.len();
            todo.retain(|&i| !self.lacks(&self.cells[i]));
            summary.waiting = undone - todo.len();
        }
        self.measure(&todo, sweep, &mut manifest, &mut summary)?;
        summary.left = todo.len() - summary.measured - summary.failed.len();
        let Some(rows) = self.store.sha256() else {
            // Stopped before the first row, so there are no rows to describe.
            return Ok(summary);
        };
        // Shards have no Parquet file: the merge writes one for all rows.
        if self.shard.is_none() {
            self.store.write_parquet()?;
        }
        manifest.end(rows)?;
        Ok(summary)
    }

    /// Locks the folder for this process alone.
    fn lock(&mut self) -> Result<(), StudyError> {
        self.store.lock()?;
        if self.shard.is_some() {
            keep_order(&self.folder, &self.order)?;
        }
        let source = self.text.as_ref().map(|(source, _)| source);
        let read = source.filter(|_| self.definition.work.depends_on_text);
        let data = self.folder.parent().unwrap_or(Path::new(""));
        if TextSource::name_of_study(data, &self.definition.study, read) != self.name {
            return Err(StudyError::Message(format!(
                "{}: another text of this name has written rows here meanwhile; run the same command again",
                self.folder.display()
            )));
        }
        Ok(())
    }

    /// Completes the manifest and the Parquet file for rows that are all done, and updates the definition's text.
    /// Writes nothing if all is complete.
    fn finish(&mut self) -> Result<(), StudyError> {
        let lacks_parquet =
            |plan: &Self| plan.shard.is_none() && plan.store.wrong_with_parquet().is_some();
        if self.unfinished()?.is_none() && !lacks_parquet(self) {
            return Ok(());
        }
        match self.lock() {
            // The process that holds the folder will complete it.
            Err(StudyError::File(FileError::Busy { .. })) => return Ok(()),
            locked => locked?,
        }
        if lacks_parquet(self) {
            self.store.write_parquet()?;
        }
        match self.unfinished()? {
            Some(manifest) => Ok(manifest.write(&self.folder_of_rows().join(MANIFEST))?),
            None => Ok(()),
        }
    }

    /// Returns the completed manifest of rows that are all done, or `None` if the manifest is complete.
    fn unfinished(&self) -> Result<Option<Manifest>, RunError> {
        let Some(rows) = self.store.sha256() else { return Ok(None) };
        let dtype = &self.definition.work.dtype;
        study_manifest::ended(&self.folder_of_rows(), rows, dtype, self.about(), self.about_text())
    }

    fn measure(
        &mut self,
        todo: &[usize],
        sweep: &Sweep<'_>,
        manifest: &mut StudyManifest,
        summary: &mut SweepSummary,
    ) -> Result<(), StudyError> {
        let workers = self.at_a_time(sweep.threads, todo.len());
        let threads_each = (sweep.threads / workers).max(1);
        let next = AtomicUsize::new(0);
        let failed_to_write = AtomicBool::new(false);
        let Self { name, folder, tokens, text, cells, order, store, .. } = self;
        let texts = text.as_ref().map(|(_, texts)| texts);
        let (cells, name, folder, tokens) = (&*cells, &*name, &*folder, &*tokens);
        // Measures a cell in a thread pool of its own.
        let measure = |cell: &Cell| -> Result<Option<Measured>, String> {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads_each)
                .build()
                .map_err(|e| format!("cannot start threads: {e}"))?;
            let context = CellContext {
                folder: &folder.join(&cell.key),
                tokens,
                texts,
                device: sweep.device,
                stop: sweep.stop,
                advanced: &|share| sweep.observer.advanced(&cell.key, share),
                warned: &|of_what| sweep.observer.warned(of_what),
            };
            pool.install(|| cell.measure(name, &context))
        };
        let measure = &measure;
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
                        let rows = measure(cell);
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
                    // The progress is saved; the cell is not done.
                    Ok(Some(Measured { lines, outcome })) if outcome == STOPPED => lines,
                    Ok(Some(Measured { lines, outcome })) => {
                        summary.measured += 1;
                        sweep.observer.cell_finished(&cell.key, &outcome);
                        lines
                    }
                    Err(why) => {
                        sweep.observer.cell_finished(&cell.key, &format!("failed: {why}"));
                        let line = cell.failed(name, &why);
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

    /// Creates the manifest of a sweep that begins now.
    fn manifest(&self, sweep: &Sweep<'_>) -> Manifest {
        let mut manifest = Manifest::begin(sweep.threads, &self.definition.work.dtype);
        manifest.more.extend(self.about());
        manifest.more.extend(self.about_text());
        manifest.more.insert("device".to_owned(), sweep.device.name().into());
        manifest
    }

    /// Entries of the manifest that come from the definition.
    fn about(&self) -> Table {
        let d = &self.definition;
        let entries = [
            ("study", self.name.clone()),
            ("title", d.title.clone()),
            ("question", d.question.clone()),
            ("view", d.view.map_or_else(String::new, |view| view.to_string())),
            ("preset", d.preset.to_string()),
            ("definition_file", d.path.display().to_string()),
            ("definition", d.text.clone()),
        ];
        let mut about: Table =
            entries.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        if let Some(shard) = self.shard {
            about.insert(SHARD.to_owned(), shard.to_string().into());
        }
        about
    }

    /// Entries of the manifest about the texts: paths and hashes.
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
