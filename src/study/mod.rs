//! From a definition to its rows: cells, what each measures, and their saving as they end.

mod bounds;
mod cell;
mod cells;
mod concentration_cell;
mod definition;
mod each_head;
mod error;
mod fit_cell;
mod fit_ledger;
mod header;
mod latency_cell;
mod lattice_cell;
mod measured_rows;
mod merge;
mod parquet;
mod parts;
mod parts_state;
mod plan;
mod predict_cell;
mod ramp_cell;
mod rows_file;
mod run_laws;
mod set_aside;
mod settings;
mod shard;
mod spectrum_cell;
mod stages;
mod store;
mod study_manifest;
mod surgery_cell;
mod sweep;
mod text_source;
mod train_cell;
mod trained_model;
mod verify;

pub use definition::{
    Baseline, Bound, ConcentrationStudy, Expected, FitGoal, FitStudy, Kind, LatencyStudy,
    LatticeStudy, PredictStudy, PredictedExponent, Preset, RampStudy, Selection, SpectrumStudy,
    Statistic, StudyDefinition, StudyRun, StudyTarget, StudyWork, SurgeryStudy, TrainStudy,
    TrainedModels, View,
};
pub use error::StudyError;
pub use fit_ledger::{FitLedger, search_settings};
pub use measured_rows::check_measured;
pub use merge::{Merged, merge};
pub use parts::{check_merged, has_parts, unmerged_parts};
pub use parts_state::{PartState, PartsState};
pub use plan::{Plan, Work, stored_lines, time_of};
pub use shard::{MOST_SHARDS, Shard, deal};
pub use stages::{Stage, Stages};
pub use sweep::{Observer, Sweep, SweepSummary};
pub(crate) use text_source::on_the_same_text;
pub use verify::{Verification, verify};
