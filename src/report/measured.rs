//! A study that has rows, and what its definition says of them.

use std::path::{Path, PathBuf};

use super::error::ReportError;
use crate::run::Manifest;
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
}

impl MeasuredStudy {
    /// The study whose rows are in `folder` and were measured by the definition in `manifest`, and what its rows are
    /// made into.
    ///
    /// # Errors
    /// [`ReportError::Definition`] where that definition cannot be read any more, or has no view.
    pub fn of(folder: &Path, manifest: &Manifest) -> Result<(Self, View), ReportError> {
        let wrong = |why: String| ReportError::Definition {
            manifest: folder.join("manifest.toml"),
            study: manifest.text("study").to_owned(),
            why,
            command: manifest.sweep_command(),
        };
        let path = Path::new(manifest.text("definition_file"));
        let preset = manifest.text("preset").parse().unwrap_or_default();
        let definition =
            StudyDefinition::of_rows(path, manifest.text("definition").to_owned(), preset);
        let definition = definition.map_err(|error| match error {
            StudyError::Definition { why, .. } => wrong(why),
            other => wrong(other.to_string()),
        })?;
        let view = definition.view.ok_or_else(|| wrong("it has no view".to_owned()))?;
        let (baselines, folder_of_baselines) = match definition.baseline {
            None => (Vec::new(), None),
            Some(baseline) => {
                let beside = on_the_same_text(folder, &definition.study, &baseline.of);
                let measured = beside.filter(|folder| folder.join("rows.csv").is_file());
                (baseline.runs, measured)
            }
        };
        let folder = folder.to_owned();
        let predicted = definition.predicted;
        Ok((Self { folder, predicted, baselines, folder_of_baselines }, view))
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
