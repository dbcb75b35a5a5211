//! One configuration of a study: what it depends on, what it needs, and how it is measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toml::Table;

use super::identity::identity;
use crate::lm::{Device, Texts};
use crate::record::{Line, Measurement, Record as _, line};

/// The folders, texts, device and callbacks that a cell is measured with.
pub(crate) struct CellContext<'a> {
    /// The cell's own folder, made by those that need one.
    pub folder: &'a Path,
    /// The folder that the tokens of texts are kept in.
    pub tokens: &'a Path,
    /// The texts that models read, where they read some.
    pub texts: Option<&'a Texts>,
    /// Where models are trained.
    pub device: Device,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// Told each share of the cell, of 1 in all, as it passes.
    pub advanced: &'a (dyn Fn(f64) + Sync),
    /// Told what whoever runs the sweep should know of.
    pub warned: &'a (dyn Fn(&str) + Sync),
}

/// A cell of another study, or of the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The study, without a text's name.
    pub study: String,
    /// The cell's key there.
    pub cell: String,
}

/// One cell of a study.
pub(crate) trait Measure: Send + Sync + 'static {
    /// A row of it.
    type Row: Measurement;

    /// All that the cell's numbers depend on, key by key.
    fn settings(&self) -> Table;

    /// The defaults of those keys.
    fn defaults() -> Table;

    /// The estimated seconds of one core.
    fn cost_s(&self) -> f64;

    /// Identifies the cell in its rows.
    fn key(&self) -> <Self::Row as Measurement>::Key;

    /// The cell, of another study or this one, whose files this one's measurement needs, whether or not they are there.
    fn needs(&self) -> Option<Needs> {
        None
    }

    /// Whether those files are not there or are of another run. `folder` is this cell's own.
    fn lacks(&self, _folder: &Path) -> bool {
        false
    }

    /// Measures the cell; none if it was stopped, unless its rows say so and how far it came.
    ///
    /// # Errors
    /// A sentence that says why it failed; it becomes the row's `err`.
    fn measure(&self, context: &CellContext<'_>) -> Result<Option<Vec<Self::Row>>, String>;
}

/// A cell of a plan, of any kind.
#[derive(Clone)]
pub(crate) struct Cell {
    /// Its name among the study's.
    pub key: String,
    /// The hash of all that its numbers depend on.
    pub settings: String,
    /// The estimated seconds of one core.
    pub cost_s: f64,
    work: Arc<dyn Work>,
}

impl Cell {
    /// The cell called `key`.
    pub fn new<M: Measure>(key: String, cell: M) -> Self {
        let settings = identity::<M::Row>(&cell.settings(), &M::defaults());
        Self { key, settings, cost_s: cell.cost_s(), work: Arc::new(cell) }
    }

    /// The columns after study and cell, which identify the cell.
    pub fn key_fields(&self) -> Vec<String> {
        self.work.key_fields()
    }

    /// The name and version of its measurement, what it depends on, and the defaults of that.
    #[cfg(test)]
    pub fn settings_and_defaults(&self) -> ((&'static str, u32), Table, Table) {
        self.work.settings_and_defaults()
    }

    /// See [`Measure::needs`].
    pub fn needs(&self) -> Option<Needs> {
        self.work.needs()
    }

    /// See [`Measure::lacks`].
    pub fn lacks(&self, folder: &Path) -> bool {
        self.work.lacks(folder)
    }

    /// The cell's lines, under the study's name; none where it was stopped. A panic inside a cell is that cell's
    /// error.
    pub fn measure(
        &self,
        study: &str,
        context: &CellContext<'_>,
    ) -> Result<Option<Measured>, String> {
        let run = std::panic::AssertUnwindSafe(|| self.work.measure(study, self, context));
        std::panic::catch_unwind(run)
            .unwrap_or_else(|panic| Err(format!("internal error: {}", panic_text(&*panic))))
    }

    /// The line of the cell where it failed.
    pub fn failed(&self, study: &str, why: &str) -> Line {
        self.work.failed(study, self, why)
    }
}

/// The lines that a cell gave, and how it ended, in a word.
pub(crate) struct Measured {
    pub lines: Vec<Line>,
    pub outcome: String,
}

/// [`Measure`] with rows as they are written.
trait Work: Send + Sync {
    #[cfg(test)]
    fn settings_and_defaults(&self) -> ((&'static str, u32), Table, Table);
    fn key_fields(&self) -> Vec<String>;
    fn needs(&self) -> Option<Needs>;
    fn lacks(&self, folder: &Path) -> bool;
    fn measure(
        &self,
        study: &str,
        cell: &Cell,
        context: &CellContext<'_>,
    ) -> Result<Option<Measured>, String>;
    fn failed(&self, study: &str, cell: &Cell, why: &str) -> Line;
}

impl<M: Measure> Work for M {
    #[cfg(test)]
    fn settings_and_defaults(&self) -> ((&'static str, u32), Table, Table) {
        ((M::Row::NAME, M::Row::VERSION), self.settings(), M::defaults())
    }

    fn key_fields(&self) -> Vec<String> {
        let mut fields = Vec::new();
        Measure::key(self).write(&mut fields);
        fields
    }

    fn needs(&self) -> Option<Needs> {
        Measure::needs(self)
    }

    fn lacks(&self, folder: &Path) -> bool {
        Measure::lacks(self, folder)
    }

    fn measure(
        &self,
        study: &str,
        cell: &Cell,
        context: &CellContext<'_>,
    ) -> Result<Option<Measured>, String> {
        let Some(found) = Measure::measure(self, context)? else { return Ok(None) };
        let key = Measure::key(self);
        let written = |found| line::<M::Row>(study, &cell.key, &key, Ok(found), &cell.settings);
        Ok(Some(Measured {
            outcome: found.last().map(Measurement::outcome).unwrap_or_default(),
            lines: found.iter().map(written).collect(),
        }))
    }

    fn failed(&self, study: &str, cell: &Cell, why: &str) -> Line {
        line::<M::Row>(study, &cell.key, &Measure::key(self), Err(why), &cell.settings)
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a cell panicked")
}
