//! Errors of studies.

use std::path::PathBuf;

use super::preset::Preset;
use crate::heads::PredictError;
use crate::run::RunError;
use crate::solver::{FactorsFileError, FitError};
use crate::system::FileError;
use crate::targets::TargetError;

/// Why a study cannot be read, run or stored. Each message says what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file that cannot be read or written, or a folder that another process is writing to.
    #[error(transparent)]
    File(#[from] FileError),
    /// A training run that cannot be made or read, or a manifest that cannot.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Rows that are not what the study writes.
    #[error("{}: {why}; move the file away to measure again", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Rows that are not those that were measured.
    #[error(
        "{}: the rows have changed since they were measured (SHA-256 {found}, manifest {told}); restore \
         the file, or accept it with `{take_in}`, which the manifest then notes",
        path.display()
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// The first digits of what it hashes to.
        found: String,
        /// Those of what the manifest tells.
        told: String,
        /// The command that takes them as they stand.
        take_in: String,
    },
    /// A study's folder that has come to hold rows of another text since it was chosen.
    #[error("{}: another text of this name has written rows here meanwhile; run the same command again", .0.display())]
    Taken(PathBuf),
    /// A definition that cannot be understood.
    #[error("{}: {why}", path.display())]
    Definition {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// A model that is not where the definition says, and the command that fetches it there.
    #[error("{}: no such folder or file; {fetch} downloads it", path.display())]
    NotFetched {
        /// Where it would be.
        path: PathBuf,
        /// The command.
        fetch: String,
    },
    /// A model that reads a text, where none is given.
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
        /// The size asked for.
        preset: Preset,
    },
    /// A target that cannot be built.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A fit that cannot be set up.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// Factors that cannot be read or kept.
    #[error(transparent)]
    Factors(#[from] FactorsFileError),
    /// A text that cannot be read.
    #[error(transparent)]
    Text(#[from] crate::lm::LmError),
    /// Weights that cannot be edited.
    #[error(transparent)]
    Edit(#[from] PredictError),
    /// Rows of parts of a study that are not joined yet.
    #[error(
        "{} has rows of {parts} shards that are not merged; merge them with `{command}`", study.display()
    )]
    Unmerged {
        /// The study's folder.
        study: PathBuf,
        /// How many parts.
        parts: usize,
        /// The command that merges them.
        command: String,
    },
    /// Cells that two parts measured, with other numbers.
    #[error(
        "{}: {count} configurations have other numbers in {} than in {} ({cells}); remove the folder that \
         is wrong, and merge again",
        study.display(), files[1].display(), files[0].display()
    )]
    Conflict {
        /// The study's folder.
        study: PathBuf,
        /// The first of the cells, by name, and how many more there are.
        cells: String,
        /// How many cells.
        count: usize,
        /// The first cell's files.
        files: [PathBuf; 2],
    },
    /// A filter that is no regular expression.
    #[error("cannot read the filter {pattern:?}: {why}")]
    Filter {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
}
