//! What every kind of study's cells can do.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::row::Row;
use crate::lm::Device;

/// What a cell is measured with.
pub(super) struct Within<'a> {
    /// The cell's own folder, made by those that need one.
    pub folder: &'a Path,
    /// The folder that the tokens of texts are kept in.
    pub tokens: &'a Path,
    /// Where models are trained.
    pub device: Device,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// Told each share of the cell, of 1 in all, as it passes.
    pub advanced: &'a (dyn Fn(f64) + Sync),
    /// Told what whoever runs the sweep should know of.
    pub warned: &'a (dyn Fn(&str) + Sync),
}

/// A cell of another study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The study, without a text's name.
    pub study: String,
    /// The cell's key there.
    pub cell: String,
}

/// One cell of a study.
pub(super) trait Measure: Send + Sync {
    /// All that the cell's numbers depend on, as text: hashed, it tells rows of other settings.
    fn settings(&self) -> String;

    /// What the cell takes, in seconds of one core, roughly.
    fn cost_s(&self) -> f64;

    /// The columns that identify the cell, without what it measures.
    fn identity(&self) -> Row;

    /// The cell of another study whose files this one's measurement needs, where they are not there or are of
    /// another run. `folder` is this cell's own.
    fn needs(&self, _folder: &Path) -> Option<Needs> {
        None
    }

    /// The cell's rows; none where it was stopped.
    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, String>;
}
