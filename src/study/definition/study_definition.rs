//! A study as it is asked for: a TOML file, checked key by key.

use std::path::{Path, PathBuf};

use toml::Table;

use super::against::{Baseline, PredictedExponent};
use super::expected::Expected;
use super::keys;
use super::kind::Kind;
use super::names;
use super::preset::{Preset, lay_over};
use super::size::{Size, Top};
use super::view::View;
use super::work::StudyWork;
use crate::study::StudyError;

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
    /// What was predicted of the rows.
    pub predicted: Vec<PredictedExponent>,
    /// The runs that its own are held against.
    pub baseline: Option<Baseline>,
    /// The text that its models read where no other is named, as the key `text` has it, beside the definition's file.
    pub own_text: Option<PathBuf>,
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
}

/// What the table of a smaller preset may replace.
const PRESET_KEYS: &[&str] = &[
    "grid",
    "search",
    "target",
    "train",
    "run",
    "predict",
    "ramp",
    "concentration",
    "lattice",
    "surgery",
    "expected",
    "baseline",
];

impl StudyDefinition {
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
        let top = Top::read(&table).map_err(wrong)?;
        names::study("study", &top.study).map_err(wrong)?;
        let kind: Kind = top.kind.parse().map_err(wrong)?;
        let view = top.view.as_deref().map(|name| View::named(name, kind));
        let view = view.transpose().map_err(wrong)?;
        let presets: Result<Vec<Preset>, String> = top.presets.iter().map(|p| p.parse()).collect();
        let presets = presets.map_err(|e| wrong(format!("presets: {e}")))?;
        let has = |size: Preset| presets.contains(&size) || table.contains_key(size.name());
        let mut asked = None;
        for &size in sizes {
            let read = match size {
                Preset::Paper => Size::read(&top, kind, path, size),
                smaller if has(smaller) => smaller_size(table.clone(), kind, path, smaller),
                _ => continue,
            };
            let read = read.map_err(wrong)?;
            check_view(view, &read).map_err(wrong)?;
            if size == preset {
                asked = Some(read);
            }
        }
        let Some(Size { work, expected, predicted, baseline }) = asked else {
            return Err(StudyError::Size { path: path.to_owned(), study: top.study, preset });
        };
        Ok(Self {
            study: top.study,
            title: top.title,
            question: top.question,
            view,
            presets,
            preset,
            work,
            expected,
            predicted,
            baseline,
            own_text: top.text.map(|text| path.with_file_name(text)),
            path: path.to_owned(),
            text,
        })
    }
}

/// What the definition in `table` asks for at a smaller size than its own.
fn smaller_size(mut table: Table, kind: Kind, path: &Path, size: Preset) -> Result<Size, String> {
    let over = match table.remove(size.name()) {
        Some(toml::Value::Table(over)) => over,
        _ => Table::new(),
    };
    keys::check(&over, PRESET_KEYS, size.name())?;
    // Bounds are on rows that a smaller grid may not have.
    table.remove("expected");
    table.remove("predicted");
    lay_over(&mut table, over);
    let read = Top::read(&table).and_then(|top| Size::read(&top, kind, path, size));
    read.map_err(|why| format!("[{size}]: {why}"))
}

/// What is said for one view is not passed over by another.
fn check_view(view: Option<View>, size: &Size) -> Result<(), String> {
    let is_beside = |view: &View| matches!(view, View::Interventions | View::Variants | View::Bits);
    match (view, &size.baseline) {
        (Some(view), None) if is_beside(&view) => Err(format!(
            "view {:?} needs a [baseline] with of, a study, and runs of it",
            view.name()
        )),
        (Some(view), Some(_)) if !is_beside(&view) => Err(format!(
            "baseline: the view {:?} compares with no baseline; leave it out",
            view.name()
        )),
        (Some(view), _) if view != View::Training && !size.predicted.is_empty() => Err(format!(
            "predicted: the view {:?} compares with no predicted exponent; leave it out",
            view.name()
        )),
        _ => Ok(()),
    }
}
