//! Errors of studies.

use std::path::PathBuf;

use super::raw_definition::Preset;
use crate::heads::PredictError;
use crate::run::RunError;
use crate::solver::FitError;
use crate::system::FileError;
use crate::targets::TargetError;

/// Why a study cannot be read, run or stored. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file that cannot be read or written, or a folder that another process is writing to.
    #[error(transparent)]
    File(#[from] FileError),
    /// A training run that cannot be set up or read, or a manifest that cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Rows that do not have the format of the study.
    #[error("{}: {why}; move the file away to measure again", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Anything else, in words: what was found and what to do.
    #[error("{0}")]
    Message(String),
    /// A definition that cannot be understood.
    #[error("{}: {why}", path.display())]
    Definition {
        /// The file.
        path: PathBuf,
        /// The reason, and what to do.
        why: String,
    },
    /// A model that does not exist at the path of the definition.
    #[error("{}: no such folder or file; {fetch} downloads it", path.display())]
    NotFetched {
        /// The expected path.
        path: PathBuf,
        /// The command that downloads it.
        fetch: String,
    },
    /// A model that needs a text, when none is given.
    #[error("{model} needs a text, and none is given; add --text FILE")]
    NoText {
        /// The model.
        model: String,
    },
    /// A size that a study does not have.
    #[error(
        "{}: study {study} has no {preset} size: no table [{preset}], and no {preset} among its presets; \
         use the size {}",
        path.display(),
        Preset::Paper
    )]
    Size {
        /// The definition's file.
        path: PathBuf,
        /// The study.
        study: String,
        /// The requested size.
        preset: Preset,
    },
    /// A target that cannot be built.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A fit that cannot be set up.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A text that cannot be read.
    #[error(transparent)]
    Text(#[from] crate::lm::LmError),
    /// Weights that cannot be edited.
    #[error(transparent)]
    Edit(#[from] PredictError),
}
