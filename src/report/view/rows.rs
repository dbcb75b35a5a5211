//! The rows of studies, read by kind and gathered as views take them.

use std::path::{Path, PathBuf};

use crate::experiments::concentration::tables::Concentrations;
use crate::experiments::fits::tables::growth::Growth;
use crate::experiments::fits::tables::layouts::Layouts;
use crate::experiments::heads::tables::heads::TrainedHeads;
use crate::experiments::heads::tables::published::PublishedHeads;
use crate::experiments::interventions::tables::Surgeries;
use crate::experiments::latency::tables::Latencies;
use crate::experiments::lattice::tables::lattice::Lattices;
use crate::experiments::ramp::tables::Ramps;
use crate::experiments::spectrum::tables::Spectra;
use crate::experiments::training::RunSettings;
use crate::experiments::training::tables::training::Trainings;
use crate::record::Rows;
use crate::report::error::ReportError;
use crate::report::measured::MeasuredStudy;

/// Fits with a tolerance, by cell.
pub(super) fn growth(studies: &[MeasuredStudy]) -> Result<Growth, ReportError> {
    Ok(Growth::of(&Rows::read(&folders(studies))?)?)
}

/// Fits with logit bounds, by configuration.
pub(super) fn layouts(studies: &[MeasuredStudy]) -> Result<Layouts, ReportError> {
    Ok(Layouts::of(&Rows::read(&folders(studies))?)?)
}

/// Singular values.
pub(super) fn spectra(studies: &[MeasuredStudy]) -> Result<Spectra, ReportError> {
    Ok(Spectra::of(&Rows::read(&folders(studies))?)?)
}

/// Times of inference.
pub(super) fn latencies(studies: &[MeasuredStudy]) -> Result<Latencies, ReportError> {
    Ok(Latencies::of(&Rows::read(&folders(studies))?)?)
}

/// Trained heads.
pub(super) fn heads(studies: &[MeasuredStudy]) -> Result<TrainedHeads, ReportError> {
    Ok(TrainedHeads::of(&Rows::read(&folders(studies))?)?)
}

/// Heads of models from elsewhere.
pub(super) fn published(studies: &[MeasuredStudy]) -> Result<PublishedHeads, ReportError> {
    Ok(PublishedHeads::of(&Rows::read(&folders(studies))?)?)
}

/// Trained heads against ramps.
pub(super) fn ramps(studies: &[MeasuredStudy]) -> Result<Ramps, ReportError> {
    Ok(Ramps::of(&Rows::read(&folders(studies))?)?)
}

/// How concentrated trained heads' attention is.
pub(super) fn concentrations(studies: &[MeasuredStudy]) -> Result<Concentrations, ReportError> {
    Ok(Concentrations::of(&Rows::read(&folders(studies))?)?)
}

/// Trained heads by the inputs and the rank that are allowed.
pub(super) fn lattices(studies: &[MeasuredStudy]) -> Result<Lattices, ReportError> {
    Ok(Lattices::of(&Rows::read(&folders(studies))?)?)
}

/// Trained models whose heads attend otherwise.
pub(super) fn surgeries(studies: &[MeasuredStudy]) -> Result<Surgeries, ReportError> {
    Ok(Surgeries::of(&Rows::read(&folders(studies))?)?)
}

/// Trainings by their rows alone.
pub(super) fn trainings(studies: &[MeasuredStudy]) -> Result<Trainings, ReportError> {
    let rows = Rows::read(&folders(studies))?;
    Ok(Trainings::of_rows(&rows)?.with_settings(settings(studies)))
}

/// Trainings with their logs.
pub(super) fn trainings_with_logs(studies: &[MeasuredStudy]) -> Result<Trainings, ReportError> {
    Ok(logged(&folders(studies))?.with_settings(settings(studies)))
}

/// Trainings with their logs, and the baseline runs.
pub(super) fn trainings_with_baselines(
    studies: &[MeasuredStudy],
) -> Result<Trainings, ReportError> {
    let own = folders(studies);
    let mut all = own.clone();
    for other in studies.iter().filter_map(|study| study.folder_of_baselines.clone()) {
        // A study's baselines may be runs of its own.
        if !all.contains(&other) {
            all.push(other);
        }
    }
    let mut all = logged(&all)?.with_settings(settings(studies));
    let baselines: Vec<String> = studies.iter().flat_map(|study| study.baselines.clone()).collect();
    all.keep(&own, &baselines);
    Ok(all)
}

/// The same, and the names of the baseline runs.
pub(super) fn trainings_with_names_of_baselines(
    studies: &[MeasuredStudy],
) -> Result<(Trainings, Vec<String>), ReportError> {
    let mut names: Vec<String> = Vec::new();
    for name in studies.iter().flat_map(|study| &study.baselines) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok((trainings_with_baselines(studies)?, names))
}

/// The logs of a training are in its cell's folder, below the one that the studies share.
fn logged(folders: &[PathBuf]) -> Result<Trainings, ReportError> {
    let data = folders.first().and_then(|study| study.parent()).unwrap_or(Path::new(""));
    Ok(Trainings::of(data, &Rows::read(folders)?)?)
}

/// The keys of the runs of these studies and of their baselines.
fn settings(studies: &[MeasuredStudy]) -> impl Iterator<Item = &RunSettings> + Clone {
    studies.iter().flat_map(|study| &study.settings)
}

fn folders(studies: &[MeasuredStudy]) -> Vec<PathBuf> {
    studies.iter().map(|study| study.folder.clone()).collect()
}
