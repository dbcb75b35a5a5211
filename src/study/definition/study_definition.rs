//! The parsed definition of a study, which is a TOML file checked key by key.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Table, Value};

use super::expected::{self, Expected};
use crate::experiment::{
    Kind, Preset, RawDefinition, StudyError, StudyWork, View, check_keys, check_study_name,
    fields_of, read_table,
};
use crate::experiments::{KINDS, view_of_kind};
use crate::run::Manifest;
use crate::system::FileError;

/// A study: its question, its work and the bounds on its rows.
#[derive(Clone, Debug)]
pub struct StudyDefinition {
    /// Name of the study; rows go to `data/NAME/`.
    pub study: String,
    /// Title for headings, in one line.
    pub title: String,
    /// Question of the study, in a sentence or two.
    pub question: String,
    /// Tables, figures and verdicts to make from the rows, if any.
    pub view: Option<View>,
    /// The presets that include it.
    pub presets: Vec<Preset>,
    /// The preset that it was read for.
    pub preset: Preset,
    /// Cells to measure.
    pub work: StudyWork,
    /// Bounds that `verify` checks the rows against.
    pub expected: Vec<Expected>,
    /// Text that models read by default: the key `text`, relative to the definition's file.
    pub own_text: Option<PathBuf>,
    /// Path of the file.
    pub path: PathBuf,
    /// Text of the file.
    pub text: String,
}

impl StudyDefinition {
    /// Reads a definition from a file, for one preset, and checks the studies that it refers to.
    ///
    /// # Errors
    /// The file cannot be read; errors of [`StudyDefinition::parse`]; a study that is not defined in the same folder or
    /// a run that it does not have, with the most similar name.
    pub fn read(path: &Path, preset: Preset) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|e| FileError::read(path, e))?;
        let check = |work: &StudyWork| work.experiment.any_check_references();
        Self::at_sizes(&Preset::ALL, path, text, preset, check)
    }

    /// Parses a definition without its references, as if read from the file `path`, for one preset. A smaller preset
    /// replaces keys by those of its table, such as `[quick]`. All presets are checked.
    ///
    /// # Errors
    /// Text that is not TOML; an unknown key, family, column or view, with the most similar valid name; an invalid
    /// value. [`StudyError::Size`] if the study does not have the preset.
    pub fn parse(path: &Path, text: String, preset: Preset) -> Result<Self, StudyError> {
        Self::at_sizes(&Preset::ALL, path, text, preset, |_| Ok(()))
    }

    /// Parses the definition in a manifest of rows, as [`StudyDefinition::of_rows`].
    ///
    /// # Errors
    /// As [`StudyDefinition::parse`].
    pub fn in_manifest(manifest: &Manifest) -> Result<Self, StudyError> {
        let preset = manifest.text("preset").parse().unwrap_or_default();
        let path = Path::new(manifest.text("definition_file"));
        Self::of_rows(path, manifest.text("definition").to_owned(), preset)
    }

    /// Parses the definition of rows, as [`StudyDefinition::parse`], but only for the preset of these
    /// rows. Errors in other presets do not matter, because they were not measured.
    ///
    /// # Errors
    /// As [`StudyDefinition::parse`].
    pub fn of_rows(path: &Path, text: String, preset: Preset) -> Result<Self, StudyError> {
        Self::at_sizes(&[preset], path, text, preset, |_| Ok(()))
    }

    /// Parses the definition for `preset`, and checks all of `sizes` that it has, also by `check`.
    fn at_sizes(
        sizes: &[Preset],
        path: &Path,
        text: String,
        preset: Preset,
        check: fn(&StudyWork) -> Result<(), StudyError>,
    ) -> Result<Self, StudyError> {
        let wrong = |why: String| StudyError::Definition { path: path.to_owned(), why };
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| wrong(crate::system::syntax(&e, &text)))?;
        let keys = Keys::read(&table).map_err(wrong)?;
        check_study_name("study", &keys.study).map_err(wrong)?;
        let kind: Kind = keys.kind.parse().map_err(wrong)?;
        check_tables(&table, kind).map_err(wrong)?;
        let view = keys.view.as_deref().map(|name| view_of_kind(name, kind));
        let view = view.transpose().map_err(wrong)?;
        let presets: Result<Vec<Preset>, String> = keys.presets.iter().map(|p| p.parse()).collect();
        let presets = presets.map_err(|e| wrong(format!("presets: {e}")))?;
        let mut asked = None;
        for &size in sizes {
            let Some(raw) = RawDefinition::at_size(path, &table, size) else { continue };
            let read = at_size(&raw, kind, view).map_err(|why| match size {
                Preset::Paper => wrong(why),
                smaller => wrong(format!("[{smaller}]: {why}")),
            })?;
            check(&read.0)?;
            if size == preset {
                asked = Some(read);
            }
        }
        let Some((work, expected)) = asked else {
            return Err(StudyError::Size { path: path.to_owned(), study: keys.study, preset });
        };
        Ok(Self {
            study: keys.study,
            title: keys.title,
            question: keys.question,
            view,
            presets,
            preset,
            work,
            expected,
            own_text: keys.text.map(|text| path.with_file_name(text)),
            path: path.to_owned(),
            text,
        })
    }
}

/// Keys of a definition outside of its tables.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Keys {
    /// Name; rows go to `data/NAME`.
    study: String,
    /// What is measured: `fit`, `train` and so on, see below.
    kind: String,
    /// Title in the report.
    #[serde(default)]
    title: String,
    /// What the study asks, in a sentence or two.
    #[serde(default)]
    question: String,
    /// Which tables, figures and verdicts are made of the rows.
    view: Option<String>,
    /// Presets that run the study: `smoke`, `quick`, `paper`.
    #[serde(default)]
    presets: Vec<String>,
    /// Text that models read, relative to this file.
    text: Option<String>,
}

impl Keys {
    /// Reads the keys, and refuses keys and tables that no definition has.
    fn read(table: &Table) -> Result<Self, String> {
        let own = fields_of::<Self>().iter().copied();
        let tables = KINDS.iter().flat_map(|kind| kind.table_names());
        let known: Vec<&str> = own.chain(tables).chain(TABLES_OF_ALL).collect();
        check_keys(table, &known, "")?;
        let own = table.iter().filter(|(key, _)| fields_of::<Self>().contains(&key.as_str()));
        read_table(&own.map(|(key, value)| (key.clone(), value.clone())).collect(), "")
    }
}

/// Tables that a definition of any kind may have.
const TABLES_OF_ALL: [&str; 3] = ["expected", "quick", "smoke"];

/// Refuses tables that a study of this kind does not use, and keys that a smaller preset cannot replace.
fn check_tables(table: &Table, kind: Kind) -> Result<(), String> {
    let own: Vec<&str> = kind.table_names().collect();
    let is_of_other = |name: &&str| table.contains_key(*name) && !own.contains(name);
    let mut tables = KINDS.iter().flat_map(|kind| kind.table_names());
    if let Some(name) = tables.find(is_of_other) {
        return Err(format!(
            "{name} is not used by a study of kind {kind}, which takes only {}; leave it out",
            own.join(", ")
        ));
    }
    let replaced: Vec<&str> = own.iter().copied().chain(["expected"]).collect();
    for size in [Preset::Quick, Preset::Smoke] {
        match table.get(size.name()) {
            None => {}
            Some(Value::Table(over)) => check_keys(over, &replaced, size.name())?,
            Some(other) => return Err(format!("{size} is {other}; write it as a table [{size}]")),
        }
    }
    Ok(())
}

/// Reads the parts of a definition that may differ between presets.
fn at_size(
    raw: &RawDefinition,
    kind: Kind,
    view: Option<View>,
) -> Result<(StudyWork, Vec<Expected>), String> {
    let work = kind.read(raw)?;
    let expected = expected::read(&raw.tables("expected")?, kind)?;
    if let Some(view) = view {
        (view.check)(&work.configuration())
            .map_err(|why| format!("view {:?}: {why}", view.name))?;
    }
    Ok((work, expected))
}
