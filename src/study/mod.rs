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
mod plan;
mod predict_cell;
mod ramp_cell;
mod run_laws;
mod settings;
mod spectrum_cell;
mod store;
mod study_manifest;
mod surgery_cell;
mod sweep;
mod text_source;
mod time_left;
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
pub use plan::{Plan, stored_lines, time_of};
pub use sweep::{Observer, Sweep, SweepSummary};
pub(crate) use text_source::on_the_same_text;
pub use time_left::{Span, TimeLeft, Work};
pub use verify::{Verification, verify};
