//! A study as it is asked for: a TOML file, checked key by key.

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
use crate::system::FileError;

/// A study: what it asks, what is measured for it, and what its rows are held to.
#[derive(Clone, Debug)]
pub struct StudyDefinition {
    /// The name; rows go to `data/NAME/`.
    pub study: String,
    /// One line for headings.
    pub title: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// Which tables, figures and verdicts its rows are made into, where they are to be.
    pub view: Option<View>,
    /// The presets that include it.
    pub presets: Vec<Preset>,
    /// The preset that it was read for.
    pub preset: Preset,
    /// What is measured.
    pub work: StudyWork,
    /// What `verify` holds the rows to.
    pub expected: Vec<Expected>,
    /// The text that its models read where no other is named, as the key `text` has it, beside the definition's file.
    pub own_text: Option<PathBuf>,
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
}

impl StudyDefinition {
    /// Reads a definition from a file, at the size of `preset`, with an eye to the studies that it names.
    ///
    /// # Errors
    /// A file that cannot be read; those of [`StudyDefinition::parse`]; a study that is not defined beside the
    /// file, or a run that it does not have, with the nearest name.
    pub fn read(path: &Path, preset: Preset) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|e| FileError::read(path, e))?;
        for size in Preset::ALL {
            match Self::parse(path, text.clone(), size) {
                Ok(definition) => definition.work.check_references()?,
                Err(StudyError::Size { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Self::parse(path, text, preset)
    }

    /// The definition that `text` is by itself, as from the file `path`, at the size of `preset`: a smaller one lays
    /// the table of its name, such as `[quick]`, over the rest. All sizes are checked, whichever is asked for.
    ///
    /// # Errors
    /// Text that is not TOML, an unknown key, family, column or view (with the nearest valid one), a value that
    /// its key cannot take; [`StudyError::Size`] where the study has no such size.
    pub fn parse(path: &Path, text: String, preset: Preset) -> Result<Self, StudyError> {
        Self::at_sizes(&Preset::ALL, path, text, preset)
    }

    /// The definition that rows were measured by, as their manifest has it: [`StudyDefinition::parse`] with an eye to
    /// the size of these rows alone. What is wrong with the others was not measured.
    ///
    /// # Errors
    /// As [`StudyDefinition::parse`].
    pub fn of_rows(path: &Path, text: String, preset: Preset) -> Result<Self, StudyError> {
        Self::at_sizes(&[preset], path, text, preset)
    }

    /// The definition at the size of `preset`, after all of `sizes` that it has were read.
    fn at_sizes(
        sizes: &[Preset],
        path: &Path,
        text: String,
        preset: Preset,
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
            let read = AtSize::read(&raw, kind, view).map_err(|why| match size {
                Preset::Paper => wrong(why),
                smaller => wrong(format!("[{smaller}]: {why}")),
            })?;
            if size == preset {
                asked = Some(read);
            }
        }
        let Some(AtSize { work, expected }) = asked else {
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

/// The keys of a definition beside its tables.
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
    /// Reads them, and refuses keys and tables that no definition has.
    fn read(table: &Table) -> Result<Self, String> {
        let own = fields_of::<Self>().iter().copied();
        let tables = KINDS.iter().flat_map(|kind| kind.table_names());
        let known: Vec<&str> = own.chain(tables).chain(TABLES_OF_ALL).collect();
        check_keys(table, &known, "")?;
        let own = table.iter().filter(|(key, _)| fields_of::<Self>().contains(&key.as_str()));
        read_table(&own.map(|(key, value)| (key.clone(), value.clone())).collect(), "")
    }
}

/// The tables that a definition of any kind may have.
const TABLES_OF_ALL: [&str; 3] = ["expected", "quick", "smoke"];

/// Refuses tables that a study of this kind does not use, and keys that a smaller size cannot replace.
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
    let replaced = own.iter().copied().filter(|name| *name != "predicted");
    let replaced: Vec<&str> = replaced.chain(["expected"]).collect();
    for size in [Preset::Quick, Preset::Smoke] {
        match table.get(size.name()) {
            None => {}
            Some(Value::Table(over)) => check_keys(over, &replaced, size.name())?,
            Some(other) => return Err(format!("{size} is {other}; write it as a table [{size}]")),
        }
    }
    Ok(())
}

/// The parts of a definition that may differ between sizes.
struct AtSize {
    work: StudyWork,
    expected: Vec<Expected>,
}

impl AtSize {
    fn read(raw: &RawDefinition, kind: Kind, view: Option<View>) -> Result<Self, String> {
        let work = kind.read(raw)?;
        let expected = expected::read(&raw.tables("expected")?, kind)?;
        if let Some(view) = view {
            (view.check)(&work.configuration())
                .map_err(|why| format!("view {:?}: {why}", view.name))?;
        }
        Ok(Self { work, expected })
    }
}
