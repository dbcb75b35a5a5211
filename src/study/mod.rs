//! From a definition to its rows: cells, what each measures, and their saving as they end.

mod csv_log;
mod definition;
mod error;
mod evaluate_run;
mod events;
mod fit_cell;
mod fit_ledger;
mod header;
mod heads_log;
mod log_end;
mod manifest;
mod row;
mod run_files;
mod run_manifest;
mod schema;
mod store;
mod sweep;
mod train_cell;
mod train_run;

pub use definition::{StudyDefinition, StudyWork};
pub use error::{StudyError, TrainError};
pub use evaluate_run::TrainedRun;
pub use fit_cell::{FrontierLabel, frontier_rows, needed_row, read_factors, write_factors};
pub use fit_ledger::{FitLedger, search_settings};
pub use manifest::Manifest;
pub use row::{Row, to_csv};
pub use schema::{
    ColumnKind, EVALUATION_COLUMNS, FRONTIER_COLUMNS, STEP_COLUMNS, fit_columns, train_columns,
};
pub use sweep::{Observer, Plan, Sweep, SweepSummary};
pub use train_run::{Begin, TrainResult, Training, train};

/// Raised when the meaning or the method of a measurement changes, so that rows measured before are
/// measured again.
const MEASUREMENT_VERSION: u32 = 4;
