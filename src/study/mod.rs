//! From a definition to its rows: cells, what each measures, and their saving as they end.

mod cell;
mod definition;
mod error;
mod fit_cell;
mod fit_ledger;
mod header;
mod latency_cell;
mod predict_cell;
pub(crate) mod row;
pub(crate) mod schema;
mod spectrum_cell;
mod store;
mod study_manifest;
mod sweep;
mod text_source;
mod train_cell;
mod verify;

pub use definition::{Bound, Expected, Preset, Selection, Statistic, StudyDefinition, StudyWork};
pub use error::{StudyError, TrainError};
pub use fit_cell::{FrontierLabel, frontier_rows, needed_row, read_factors, write_factors};
pub use fit_ledger::{FitLedger, search_settings};
pub use latency_cell::Latency;
pub use row::{Row, to_csv};
pub use schema::{
    CURVE_COLUMNS, ColumnKind, EVALUATION_COLUMNS, FRONTIER_COLUMNS, STEP_COLUMNS, fit_columns,
    latency_columns, predict_columns, spectrum_columns, train_columns,
};
pub use sweep::{Observer, Plan, Sweep, SweepSummary, stored_rows};
pub(crate) use text_source::on_the_same_text;
pub use verify::{Verification, verify};

/// Raised when the meaning or the method of a measurement changes, so that rows measured before are
/// measured again.
const MEASUREMENT_VERSION: u32 = 4;
