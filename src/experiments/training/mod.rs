//! Training runs: their definitions, their rows, and the checks of rows against the runs' own files.

mod against;
mod cell;
pub mod claims;
pub mod figures;
mod model_columns;
mod references;
mod row;
mod run_files;
mod settings;
mod study;
pub mod tables;
mod views;

pub use against::Baseline;
pub(crate) use cell::TrainCell;
pub use model_columns::ModelColumns;
pub(crate) use references::{check_kept_step, check_known_run, kept_steps, runs_of};
pub use row::{SYNTHETIC, TrainingKey, TrainingMeasurement};
pub(crate) use settings::key_words;
pub use settings::{RunSettings, Settings};
pub(crate) use study::{RunKeys, TrainKeys, runs};
pub use study::{StudyRun, TrainStudy};
