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
    /// Rows that changed after they were measured.
    #[error(
        "{}: the rows have changed since they were measured (SHA-256 {found}, manifest {told}); restore \
         the file, or accept it with `{take_in}`, which the manifest then notes",
        path.display()
    )]
    Altered {
        /// The file.
        path: PathBuf,
        /// The first digits of the file's hash.
        found: String,
        /// The first digits of the hash in the manifest.
        told: String,
        /// The command that accepts the changed rows.
        take_in: String,
    },
    /// A study's folder that received rows of another text after it was chosen.
    #[error("{}: another text of this name has written rows here meanwhile; run the same command again", .0.display())]
    Taken(PathBuf),
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
    /// Rows in shards of a study that are not merged yet.
    #[error(
        "{} has rows of {parts} shards that are not merged; merge them with `{command}`", study.display()
    )]
    Unmerged {
        /// The study's folder.
        study: PathBuf,
        /// The number of shards.
        parts: usize,
        /// The command that merges them.
        command: String,
    },
    /// Cells that two shards measured with different numbers.
    #[error(
        "{}: {count} configurations have other numbers in {} than in {} ({cells}); remove the folder that \
         is wrong, and merge again",
        study.display(), files[1].display(), files[0].display()
    )]
    Conflict {
        /// The study's folder.
        study: PathBuf,
        /// The first few cells by name, and how many more there are.
        cells: String,
        /// The number of cells.
        count: usize,
        /// The two files that disagree on the first cell.
        files: [PathBuf; 2],
    },
    /// A filter that is not a valid regular expression.
    #[error("cannot read the filter {pattern:?}: {why}")]
    Filter {
        /// The pattern.
        pattern: String,
        /// Why it is not valid.
        why: String,
    },
}
