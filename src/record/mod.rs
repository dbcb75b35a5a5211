//! Typed rows: one struct per kind of row defines its columns, units, docs, CSV, Parquet and invariants.
//!
//! `record!` is a macro of some forty lines, because `csv` with serde has two limits. It writes a float64 differently
//! from existing rows (`4.0` for `4`), and it cannot flatten structs with number fields.

mod column;
mod file;
#[cfg(feature = "parquet")]
mod frame;
mod invariants;
mod kind;
mod line;
mod row_record;
mod value;

pub use column::{Column, ColumnKind, Fields, Header};
pub use file::{Rows, RowsError, read_records};
#[cfg(feature = "parquet")]
pub use frame::{to_frame, write_parquet};
pub use invariants::{InvariantChecker, ROUNDING};
#[cfg(feature = "study")]
pub(crate) use kind::check_rows;
pub use kind::{Measurement, Row, columns, line, rows_of};
pub use line::{Line, STOPPED, to_csv, write_records};
pub(crate) use row_record::record;
pub use row_record::{Range, Record, columns_of};
pub(crate) use value::value;
pub use value::{to_microseconds, to_milliseconds};
