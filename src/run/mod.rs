//! A training run's folder: its logs, curve, events, checkpoints and manifest.

pub(crate) mod about;
mod csv_log;
mod events;
pub(crate) mod files;
mod heads_log;
mod log_end;
pub(crate) mod manifest;
pub(crate) mod series;
mod smoothness;
pub(crate) mod train;
mod trained;

pub use manifest::{Manifest, revision};
pub use train::{Begin, TrainResult, Training, train};
pub use trained::TrainedRun;
