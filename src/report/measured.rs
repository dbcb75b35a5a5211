//! Studies with rows: their definitions, and their analysis.

use std::path::Path;

use super::analysis::Analysis;
use super::error::ReportError;
use crate::experiment::{Analysed, Kind, MeasuredStudy, StudyWork, View, on_the_same_text};
use crate::experiments::heads::{PREDICTION, PredictStudy};
use crate::experiments::training::{Baseline, TrainStudy};
use crate::figure::Figure;
use crate::run::Manifest;
use crate::run::manifest::MANIFEST;
use crate::study::{StudyDefinition, StudyError, check_measured};

/// Returns the study whose rows are in `folder`, its kind and its view; rows without a view are those of `predict`. It uses the definition in `manifest`. View,
/// baseline and predictions come from the current definition file, if the file still exists.
///
/// # Errors
/// The definition cannot be read by this version.
pub fn measured_study(
    folder: &Path,
    manifest: &Manifest,
) -> Result<(MeasuredStudy, Kind, View), ReportError> {
    if manifest.text("view").is_empty() {
        let rows = MeasuredStudy { folder: folder.to_owned(), ..MeasuredStudy::default() };
        return Ok((rows, Kind::of::<PredictStudy>(), PREDICTION));
    }
    let measured = definition_of_rows(folder, manifest)?;
    let (now, unusable) = match definition_now(&measured) {
        Ok(now) => (now, None),
        Err(error) => (None, Some(format!("view and baseline are as measured, since {error}"))),
    };
    let now = now.as_ref().unwrap_or(&measured);
    let no_view = || wrong(folder, manifest, "it has no view".to_owned());
    let view = now.view.ok_or_else(no_view)?;
    let kind = measured.work.kind();
    let study = MeasuredStudy {
        folder: folder.to_owned(),
        baseline: baseline(folder, &measured.study, &now.work)?.map(Box::new),
        now: Some(now.work.configuration()),
        measured: Some(measured.work.configuration()),
        unusable,
    };
    Ok((study, kind, view))
}

/// Returns the rows that a study's own are compared with, if there are any.
fn baseline(
    folder: &Path,
    study: &str,
    work: &StudyWork,
) -> Result<Option<MeasuredStudy>, ReportError> {
    let baseline = work.get::<TrainStudy>().and_then(|study| study.baseline.as_ref());
    let Some(Baseline { of, .. }) = baseline else { return Ok(None) };
    let beside = on_the_same_text(folder, study, of);
    let Some(other) = beside.filter(|folder| folder.join("rows.csv").is_file()) else {
        return Ok(None);
    };
    let manifest = Manifest::read(&other.join(MANIFEST)).map_err(StudyError::from)?;
    let measured = Some(definition_of_rows(&other, &manifest)?.work.configuration());
    Ok(Some(MeasuredStudy { folder: other, measured, ..MeasuredStudy::default() }))
}

/// The error of a definition in a manifest that cannot be used.
fn wrong(folder: &Path, manifest: &Manifest, why: String) -> ReportError {
    ReportError::Message(format!(
        "{}: the definition recorded for the rows of {} cannot be used: {why}; `{}` records the present one",
        folder.join(MANIFEST).display(),
        manifest.text("study"),
        manifest.sweep_command()
    ))
}

/// Reads the definition of the rows from their manifest.
fn definition_of_rows(folder: &Path, manifest: &Manifest) -> Result<StudyDefinition, ReportError> {
    StudyDefinition::in_manifest(manifest).map_err(|error| match error {
        StudyError::Definition { why, .. } => wrong(folder, manifest, why),
        other => wrong(folder, manifest, other.to_string()),
    })
}

/// Reads the current definition file. Returns `None` if it is missing, unchanged, belongs to another study, or no
/// longer has a view or this preset.
fn definition_now(measured: &StudyDefinition) -> Result<Option<StudyDefinition>, StudyError> {
    let Ok(text) = std::fs::read_to_string(&measured.path) else { return Ok(None) };
    if text == measured.text {
        return Ok(None);
    }
    match StudyDefinition::of_rows(&measured.path, text, measured.preset) {
        Ok(now) if now.study == measured.study && now.view.is_some() => Ok(Some(now)),
        Ok(_) | Err(StudyError::Size { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks the rows of a study and its baseline against the hashes in their manifests. Returns facts that are unknown
/// about the rows, one per line.
fn check(study: &MeasuredStudy) -> Result<Vec<String>, ReportError> {
    let folders =
        std::iter::once(&study.folder).chain(study.baseline.iter().map(|one| &one.folder));
    let unknown = folders.filter_map(|folder| check_measured(folder).transpose());
    Ok(unknown.collect::<Result<_, _>>()?)
}

/// Computes the tables, figures and verdicts of a view of studies.
///
/// # Errors
/// Rows that are missing, damaged, changed by hand or of another kind.
pub fn analyse(studies: &[MeasuredStudy], view: View) -> Result<Analysis, ReportError> {
    let Analysed { tables, figures, verdicts } = (view.analyse)(studies)?;
    let mut not_known = Vec::new();
    for study in studies {
        not_known.extend(study.unusable.clone());
        not_known.extend(check(study)?);
    }
    Ok(Analysis {
        group: view.group,
        tables: tables.into_iter().filter(|table| !table.rows().is_empty()).collect(),
        figures: figures.into_iter().flat_map(Figure::in_parts).collect(),
        verdicts,
        not_known,
    })
}
