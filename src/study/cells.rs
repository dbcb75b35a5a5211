//! What a study of each kind comes to: its cells.

use std::path::Path;

use super::StudyError;
use super::cell::{Cell, Measure};
use super::definition::StudyWork;
use super::fit_cell::FitCell;
use super::latency_cell::LatencyCell;
use super::predict_cell::PredictCell;
use super::spectrum_cell::SpectrumCell;
use super::text_source::TextSource;
use super::train_cell::TrainCell;

/// Every cell of a study, in the order of its definition. Other studies' files are in `data`.
///
/// # Errors
/// A folder that holds no run, or lacks a step or layer that is asked for.
pub(super) fn cells_of(
    work: &StudyWork,
    text: Option<&TextSource>,
    data: &Path,
) -> Result<Vec<Cell>, StudyError> {
    Ok(match work {
        StudyWork::Fit(study) => all(FitCell::all(study)),
        StudyWork::Train(study) => all(TrainCell::all(study, text)),
        StudyWork::Spectrum(study) => all(SpectrumCell::all(study)),
        StudyWork::Latency(study) => all(LatencyCell::all(study)),
        StudyWork::Predict(study) => all(PredictCell::all(study, text, data)?),
    })
}

fn all<M: Measure>(cells: Vec<(String, M)>) -> Vec<Cell> {
    cells.into_iter().map(|(key, cell)| Cell::new(key, cell)).collect()
}
