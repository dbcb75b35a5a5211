//! Resolves references to runs of other studies, whose definitions are in the same folder.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::row::TrainingMeasurement;
use super::study::{StudyRun, runs};
use crate::experiment::{Preset, RawDefinition};
use crate::lm::TrainDefinition;
use crate::record::Measurement as _;
use crate::system::FileError;
use crate::system::nearest::nearest;
use crate::table::distinct;

/// The steps whose weights a finished run has kept.
pub(crate) fn kept_steps(definition: &TrainDefinition) -> Vec<usize> {
    // Steps after the run's last one are never reached.
    let kept = definition.keep_checkpoints.iter().filter(|&&step| step < definition.steps);
    distinct(kept.chain([&definition.steps]).copied())
}

/// Checks that a run of study `of` keeps the weights of a step.
///
/// # Errors
/// Names the step and the steps that are kept.
pub(crate) fn check_kept_step(step: usize, of: &str, run: &StudyRun) -> Result<(), String> {
    let kept = kept_steps(&run.definition);
    match kept.contains(&step) {
        true => Ok(()),
        false => Err(format!(
            "{step}, but run {} of {of} keeps the weights of steps {kept:?}; add it to keep_checkpoints \
             there",
            run.name
        )),
    }
}

/// The runs of study `of`, defined beside `path`, at the size `preset`.
///
/// # Errors
/// A study that is not defined there, with the nearest name, or that trains nothing.
pub(crate) fn runs_of(of: &str, path: &Path, preset: Preset) -> Result<Vec<StudyRun>, String> {
    let other = path.with_file_name(format!("{of}.toml"));
    if !other.is_file() {
        let names = studies_beside(path);
        let near = nearest(of, &names.iter().map(String::as_str).collect::<Vec<_>>());
        return Err(format!("no such study in this folder; did you mean {near:?}?"));
    }
    let text = std::fs::read_to_string(&other);
    let text = text.map_err(|e| FileError::read(&other, e).to_string())?;
    let wrong = |why: String| format!("{}: {why}", other.display());
    let raw = RawDefinition::parse(&other, &text, preset).map_err(wrong)?;
    match raw.table.get("kind").and_then(Value::as_str) {
        Some(TrainingMeasurement::NAME) => runs(&raw).map_err(wrong),
        _ => Err("is not a study of training runs".to_owned()),
    }
}

/// The names of the studies that are defined beside `path`, including its own.
fn studies_beside(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten();
    let study = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).ok()?;
        Some(text.parse::<Table>().ok()?.get("study")?.as_str()?.to_owned())
    };
    let definitions = files.filter_map(|file| Some(file.ok()?.path()));
    let is_toml = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "toml");
    definitions.filter(is_toml).filter_map(study).collect()
}

/// Checks that a run is in `known`.
///
/// # Errors
/// Names the run and the nearest of `known`.
pub(crate) fn check_known_run(run: &str, known: &[&str]) -> Result<(), String> {
    match known.contains(&run) {
        true => Ok(()),
        false => Err(format!(
            "{run:?}, and the runs are {}; did you mean {:?}?",
            known.join(", "),
            nearest(run, known)
        )),
    }
}
