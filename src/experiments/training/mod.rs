//! Training runs: their definitions, their rows, and the checks of rows against the runs' own files.

mod cell;
pub mod claims;
/// Figures of this experiment.
pub mod figures {
    pub mod across_runs;
    pub mod courses;
    pub mod overview;
    pub mod training;
    pub mod variant;
}
mod references;
mod row;
mod run_files;
mod settings;
mod study;
/// Tables of this experiment.
pub mod tables {
    pub mod run_course;
    pub mod run_log;
    pub mod training;
    pub mod variants;
}
mod views;

pub(crate) use cell::{TrainCell, cell_key};
pub(crate) use references::{check_kept_step, check_known_run, kept_steps, runs_of};
pub use row::{ModelColumns, SYNTHETIC, TrainingKey, TrainingMeasurement};
pub(crate) use settings::key_words;
pub use settings::{Settings, SettingsOfRuns};
pub use study::{Baseline, StudyRun, TrainStudy};
pub(crate) use study::{RunKeys, TrainKeys, runs};
