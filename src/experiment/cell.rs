//! One configuration of a study: its settings, the cell that it needs, and how it is measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toml::Table;

use super::error::StudyError;
use super::identity::identity_of;
use crate::lm::{Device, Texts};
use crate::record::{Line, Measurement, Record as _, line};
use crate::system::panic_message;

/// The context of a measurement: folders, texts, device and callbacks.
pub(crate) struct CellContext<'a> {
    /// The cell's own folder; cells that need one create it.
    pub folder: &'a Path,
    /// The folder of tokenised texts.
    pub tokens: &'a Path,
    /// The texts that models read, if any.
    pub texts: Option<&'a Texts>,
    /// The device on which models are trained.
    pub device: Device,
    /// Set by the caller to request a stop.
    pub stop: &'a AtomicBool,
    /// Called with each completed share of the cell; the shares add up to 1.
    pub advanced: &'a (dyn Fn(f64) + Sync),
    /// Called with warnings for the user.
    pub warned: &'a (dyn Fn(&str) + Sync),
}

/// A reference to a cell of the same or another study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The study, without a text's name.
    pub study: String,
    /// The key of the cell within that study.
    pub cell: String,
}

/// One cell of a study.
pub(crate) trait Measure: Send + Sync + 'static {
    /// The type of its rows.
    type Row: Measurement;

    /// All settings that the cell's numbers depend on, by key.
    fn settings(&self) -> Table;

    /// The default values of those keys.
    fn defaults() -> Table;

    /// The columns that identify the cell in its rows.
    fn key(&self) -> <Self::Row as Measurement>::Key;

    /// The cell whose files this measurement needs, whether or not they exist; it may belong to another study.
    fn needs(&self) -> Option<Needs> {
        None
    }

    /// Whether those files are missing or belong to another run. `folder` is this cell's own.
    fn lacks(&self, _folder: &Path) -> bool {
        false
    }

    /// Measures the cell. Returns `None` if it was stopped, unless its rows record the stop and how far it came.
    ///
    /// # Errors
    /// A sentence that says why it failed; it becomes the row's `err`.
    fn measure(&self, context: &CellContext<'_>) -> Result<Option<Vec<Self::Row>>, StudyError>;
}

/// A cell of a plan, of any kind.
#[derive(Clone)]
pub(crate) struct Cell {
    /// Its key within the study.
    pub key: String,
    /// The hash of all settings that its numbers depend on.
    pub settings: String,
    /// The text of the columns after study and cell, which identify the cell.
    pub key_fields: Vec<String>,
    /// See [`Measure::needs`].
    pub needs: Option<Needs>,
    work: Arc<dyn Work>,
}

impl Cell {
    /// Makes the cell with the key `key`.
    pub fn new<M: Measure>(key: String, cell: M) -> Self {
        let measurement = (M::Row::NAME, M::Row::VERSION);
        let settings = identity_of(measurement, &cell.settings(), &M::defaults());
        let mut key_fields = Vec::new();
        Measure::key(&cell).write(&mut key_fields);
        Self { key, settings, key_fields, needs: cell.needs(), work: Arc::new(cell) }
    }

    /// The name and version of the measurement, its settings, and their defaults.
    #[cfg(test)]
    pub fn settings_and_defaults(&self) -> ((&'static str, u32), Table, Table) {
        self.work.settings_and_defaults()
    }

    /// See [`Measure::lacks`].
    pub fn lacks(&self, folder: &Path) -> bool {
        self.work.lacks(folder)
    }

    /// The cell's lines, under the study's name; `None` if it was stopped. A panic inside the cell becomes its error.
    pub fn measure(
        &self,
        study: &str,
        context: &CellContext<'_>,
    ) -> Result<Option<Measured>, String> {
        let run = std::panic::AssertUnwindSafe(|| self.work.measure(study, self, context));
        std::panic::catch_unwind(run)
            .unwrap_or_else(|panic| Err(format!("internal error: {}", panic_message(&*panic))))
    }

    /// The line of the cell if it failed.
    pub fn failed(&self, study: &str, why: &str) -> Line {
        self.work.failed(study, self, why)
    }
}

/// The lines that a cell returned, and its outcome in one word.
pub(crate) struct Measured {
    pub lines: Vec<Line>,
    pub outcome: String,
}

/// [`Measure`] with its types erased; rows are lines of text.
trait Work: Send + Sync {
    #[cfg(test)]
    fn settings_and_defaults(&self) -> ((&'static str, u32), Table, Table);
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

    fn lacks(&self, folder: &Path) -> bool {
        Measure::lacks(self, folder)
    }

    fn measure(
        &self,
        study: &str,
        cell: &Cell,
        context: &CellContext<'_>,
    ) -> Result<Option<Measured>, String> {
        let found = Measure::measure(self, context).map_err(|e| e.to_string())?;
        let Some(found) = found else { return Ok(None) };
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
