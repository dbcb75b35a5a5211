//! A training run's folder: its logs, curve, events, checkpoints and manifest.

pub(crate) mod csv_log;
mod error;
mod events;
pub(crate) mod files;
pub(crate) mod heads_log;
pub(crate) mod kept_files;
mod log_rows;
pub(crate) mod manifest;
pub(crate) mod run_manifest;
pub(crate) mod series;
mod source;
pub(crate) mod spikes;
pub(crate) mod train;
mod trained;
mod training;

pub use crate::lm::{EvaluationRow, HeadLogRow, StepRow};
pub use error::RunError;
pub use log_rows::{Course, CurveRow, log_columns};
pub use manifest::{Manifest, revision};
pub use source::ModelSource;
pub use train::{Begin, train};
pub use trained::TrainedRun;
pub use training::{Extension, RunObserver, Training};
