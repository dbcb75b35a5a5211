//! A study as it is asked for: a TOML file, checked key by key.

mod expected;
mod fit;
mod keys;
mod latency;
mod predict;
mod preset;
mod spectrum;
#[cfg(test)]
mod tests;
mod train;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::{Table, Value};

pub use expected::{Bound, Expected, Selection, Statistic};
pub(super) use fit::{FitGoal, FitStudy, StudyTarget};
pub(super) use latency::LatencyStudy;
pub(super) use predict::{PredictStudy, RunSource, kept_steps};
pub use preset::Preset;
pub(super) use spectrum::SpectrumStudy;
pub(super) use train::{Run, TaughtBy, TrainStudy};

use self::fit::{Grid, Search};
use self::keys::{check_keys, one_line, syntax};
use self::predict::Predict;
use super::StudyError;
use crate::fit::Precision;
use crate::pattern::nearest::nearest;

/// A study: what it asks, what is measured for it, and what its rows are held to.
#[derive(Clone, Debug)]
pub struct StudyDefinition {
    /// The name; rows go to `data/NAME/`.
    pub study: String,
    /// One line for headings.
    pub title: String,
    /// What it asks, in a sentence or two.
    pub question: String,
    /// How to read what came out, for the report.
    pub analysis: String,
    /// Which tables, figures and verdicts its rows are made into.
    pub view: String,
    /// The presets that include it.
    pub presets: Vec<Preset>,
    /// The preset that it was read for.
    pub preset: Preset,
    /// What is measured.
    pub work: StudyWork,
    /// What `verify` holds the rows to.
    pub expected: Vec<Expected>,
    /// The file.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
}

/// What a study measures.
#[derive(Clone, Debug)]
pub enum StudyWork {
    /// Fits over a grid.
    Fit(Box<FitStudy>),
    /// Training runs.
    Train(TrainStudy),
    /// Singular values of targets.
    Spectrum(SpectrumStudy),
    /// Times of inference.
    Latency(LatencyStudy),
    /// Trained heads against what they needed.
    Predict(Box<PredictStudy>),
}

impl StudyWork {
    /// Whether its rows depend on the text that models read, whose name its folder then has.
    pub(super) fn is_of_text(&self) -> bool {
        match self {
            Self::Train(_) => true,
            Self::Predict(study) => study.is_of_studies(),
            Self::Fit(_) | Self::Spectrum(_) | Self::Latency(_) => false,
        }
    }

    /// The numbers that it is computed in.
    pub(super) fn dtype(&self) -> String {
        match self {
            Self::Fit(_) | Self::Spectrum(_) => "float64".to_owned(),
            Self::Predict(study) => match study.search.precision {
                Precision::F32 => "float32".to_owned(),
                Precision::F64 => "float64".to_owned(),
            },
            Self::Latency(_) => "float32".to_owned(),
            Self::Train(study) => {
                let mut names: Vec<_> =
                    study.runs.iter().map(|run| run.definition.dtype.name()).collect();
                names.sort_unstable();
                names.dedup();
                names.join(", ")
            }
        }
    }
}

const KINDS: &[&str] = &["fit", "train", "spectrum", "latency", "predict"];
const TOP_KEYS: &[&str] = &[
    "study",
    "kind",
    "title",
    "question",
    "analysis",
    "view",
    "presets",
    "grid",
    "search",
    "target",
    "train",
    "run",
    "predict",
    "expected",
    "predicted",
    "baseline",
    "quick",
];
/// What the table of a smaller preset may replace.
const PRESET_KEYS: &[&str] = &["grid", "search", "target", "train", "run", "predict", "expected"];

#[derive(Deserialize)]
struct Top {
    study: String,
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    analysis: String,
    #[serde(default)]
    view: String,
    #[serde(default)]
    presets: Vec<String>,
    grid: Option<Grid>,
    #[serde(default)]
    search: Search,
    #[serde(default)]
    target: Vec<Table>,
    #[serde(default)]
    train: Table,
    #[serde(default)]
    run: Vec<Table>,
    predict: Option<Predict>,
    #[serde(default)]
    expected: Vec<Table>,
}

impl StudyDefinition {
    /// Reads a definition from a file, at the size of `preset`: the quick one lays the file's table
    /// `[quick]` over the rest.
    ///
    /// # Errors
    /// A file that cannot be read, text that is not TOML, an unknown key or family (with the
    /// nearest valid one), a value that its key cannot take; [`StudyError::Size`] where the study has no
    /// such size.
    pub fn read(path: &Path, preset: Preset) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(|e| StudyError::read(path, e))?;
        Self::parse(path, text, preset)
    }

    /// The definition that `text` is, as from the file `path`.
    ///
    /// # Errors
    /// As [`StudyDefinition::read`].
    pub fn parse(path: &Path, text: String, preset: Preset) -> Result<Self, StudyError> {
        let wrong = |why: String| StudyError::Definition { path: path.to_owned(), why };
        let mut table: Table =
            text.parse().map_err(|e: toml::de::Error| wrong(syntax(&e, &text)))?;
        check_keys(&table, TOP_KEYS, "").map_err(wrong)?;
        let has_quick = table.contains_key("quick");
        let quick = match table.remove("quick") {
            None => Table::new(),
            Some(Value::Table(quick)) => quick,
            Some(other) => return Err(wrong(format!("quick is {other}; it must be a table"))),
        };
        check_keys(&quick, PRESET_KEYS, "quick").map_err(wrong)?;
        if preset == Preset::Quick {
            // Bounds are on rows that a smaller grid may not have.
            table.remove("expected");
            table.remove("predicted");
            preset::lay_over(&mut table, quick);
        }
        let tables = [
            ("grid", fit::GRID_KEYS),
            ("search", fit::SEARCH_KEYS),
            ("predict", predict::PREDICT_KEYS),
        ];
        for (key, valid) in tables {
            if let Some(Value::Table(inner)) = table.get(key) {
                check_keys(inner, valid, key).map_err(wrong)?;
            }
        }
        let top: Top =
            Value::Table(table).try_into().map_err(|e: toml::de::Error| wrong(one_line(&e)))?;
        let name_is_plain = !top.study.is_empty()
            && top.study.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !name_is_plain {
            return Err(wrong(format!(
                "study is {:?}; it names a folder: use letters, digits, - and _",
                top.study
            )));
        }
        let presets: Result<Vec<Preset>, String> = top.presets.iter().map(|p| p.parse()).collect();
        let presets = presets.map_err(|e| wrong(format!("presets: {e}")))?;
        let has_size = preset == Preset::Paper || has_quick || presets.contains(&preset);
        if !has_size {
            return Err(StudyError::Size { path: path.to_owned(), study: top.study, preset });
        }
        Ok(Self {
            presets,
            work: work(&top, path, preset).map_err(wrong)?,
            expected: expected::read(&top.expected).map_err(wrong)?,
            study: top.study,
            title: top.title,
            question: top.question,
            analysis: top.analysis,
            view: top.view,
            preset,
            path: path.to_owned(),
            text,
        })
    }
}

fn work(top: &Top, path: &Path, preset: Preset) -> Result<StudyWork, String> {
    Ok(match top.kind.as_str() {
        "fit" => StudyWork::Fit(Box::new(fit::read(top)?)),
        "train" => StudyWork::Train(train::read(top)?),
        "spectrum" => StudyWork::Spectrum(spectrum::read(top)?),
        "latency" => StudyWork::Latency(latency::read(top)?),
        "predict" => StudyWork::Predict(Box::new(predict::read(top, path, preset)?)),
        other => {
            let near = nearest(other, KINDS);
            return Err(format!("unknown kind {other:?}; did you mean {near:?}?"));
        }
    })
}
