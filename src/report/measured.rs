//! A study that has rows, and what its definition says of them.

use std::path::{Path, PathBuf};

use super::error::ReportError;
use crate::experiments::training::{Baseline, RunSettings, Settings, StudyRun, TrainStudy};
use crate::run::Manifest;
use crate::run::manifest::MANIFEST;
use crate::study::{
    PredictedExponent, StudyDefinition, StudyError, View, check_measured, on_the_same_text,
};

/// A study's folder of rows, and what they are held against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredStudy {
    /// The folder, beside those of other studies.
    pub folder: PathBuf,
    /// What was predicted of the rows.
    pub predicted: Vec<PredictedExponent>,
    /// The names of the runs that its own are held against.
    pub baselines: Vec<String>,
    /// The folder of their study, on the same text; none where it has no rows.
    pub folder_of_baselines: Option<PathBuf>,
    /// Of training runs, its own and those of that study: the keys of their definitions.
    pub settings: Vec<RunSettings>,
}

impl MeasuredStudy {
    /// The study whose rows are in `folder` and were measured by the definition in `manifest`, and its view. View,
    /// baseline and predictions are those of the definition's file as it is now, where the file is still there.
    ///
    /// # Errors
    /// [`ReportError::Definition`] where a definition cannot be read any more, or has no view.
    pub fn of(folder: &Path, manifest: &Manifest) -> Result<(Self, View), ReportError> {
        let measured = definition_of_rows(folder, manifest)?;
        let now = definition_now(&measured)?;
        let StudyDefinition { view, baseline, predicted, .. } = now.as_ref().unwrap_or(&measured);
        let no_view = || wrong(folder, manifest, "it has no view".to_owned());
        let view = view.ok_or_else(no_view)?;
        let mut settings = settings(folder, &measured);
        let (mut baselines, mut folder_of_baselines) = (Vec::new(), None);
        if let Some(Baseline { of, runs }) = baseline {
            let beside = on_the_same_text(folder, &measured.study, of);
            folder_of_baselines = beside.filter(|folder| folder.join("rows.csv").is_file());
            baselines.clone_from(runs);
        }
        if let Some(other) = folder_of_baselines.iter().find(|other| *other != folder) {
            let manifest = Manifest::read(&other.join(MANIFEST)).map_err(StudyError::from)?;
            settings.extend(self::settings(other, &definition_of_rows(other, &manifest)?));
        }
        let (folder, predicted) = (folder.to_owned(), predicted.clone());
        Ok((Self { folder, predicted, baselines, folder_of_baselines, settings }, view))
    }

    /// Holds its rows, and those that they are held against, to the hashes in the manifests beside them. Returns what
    /// cannot be known of them, a line each.
    ///
    /// # Errors
    /// Rows that are not those that were measured.
    pub(super) fn check(&self) -> Result<Vec<String>, ReportError> {
        let folders = std::iter::once(&self.folder).chain(&self.folder_of_baselines);
        let unknown = folders.filter_map(|folder| check_measured(folder).transpose());
        Ok(unknown.collect::<Result<_, _>>()?)
    }
}

fn wrong(folder: &Path, manifest: &Manifest, why: String) -> ReportError {
    ReportError::Definition {
        manifest: folder.join(MANIFEST),
        study: manifest.text("study").to_owned(),
        why,
        command: manifest.sweep_command(),
    }
}

/// The definition that rows were measured by.
fn definition_of_rows(folder: &Path, manifest: &Manifest) -> Result<StudyDefinition, ReportError> {
    let path = Path::new(manifest.text("definition_file"));
    let preset = manifest.text("preset").parse().unwrap_or_default();
    let definition = StudyDefinition::of_rows(path, manifest.text("definition").to_owned(), preset);
    definition.map_err(|error| match error {
        StudyError::Definition { why, .. } => wrong(folder, manifest, why),
        other => wrong(folder, manifest, other.to_string()),
    })
}

/// The definition's file as it is now; none where it is gone, is of another study or has no such size any more.
fn definition_now(measured: &StudyDefinition) -> Result<Option<StudyDefinition>, ReportError> {
    let Ok(text) = std::fs::read_to_string(&measured.path) else { return Ok(None) };
    if text == measured.text {
        return Ok(None);
    }
    match StudyDefinition::of_rows(&measured.path, text, measured.preset) {
        Ok(now) if now.study == measured.study && now.view.is_some() => Ok(Some(now)),
        Ok(_) | Err(StudyError::Size { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The keys of each run of a study of trainings, by the definition of its rows in `folder`.
fn settings(folder: &Path, definition: &StudyDefinition) -> Vec<RunSettings> {
    let study = folder.file_name().unwrap_or_default().to_string_lossy();
    let runs = definition.work.get::<TrainStudy>().map_or(&[][..], |study| &study.runs);
    let of_run = |run: &StudyRun| RunSettings {
        study: study.clone().into_owned(),
        run: run.name.clone(),
        settings: Settings::from_run(run),
    };
    runs.iter().map(of_run).collect()
}
