//! Rows as types: one struct per kind of row, from which its columns, units, docs, CSV, Parquet and invariants follow.
//!
//! `record!` is a macro of some forty lines because `csv` with serde would write a float64 in other digits than the
//! rows have always had (`4.0` for `4`), and cannot flatten structs whose fields are numbers.

mod column;
mod fields;
mod file;
#[cfg(feature = "parquet")]
mod frame;
mod invariants;
mod kind;
mod line;
mod range;
mod rounding;
mod row_record;
mod value;

pub use column::{Column, ColumnKind};
pub use fields::{Fields, Header};
pub use file::{Rows, RowsError, read_records};
#[cfg(feature = "parquet")]
pub use frame::to_frame;
pub use invariants::{InvariantChecker, ROUNDING};
#[cfg(feature = "study")]
pub(crate) use kind::check_rows;
pub use kind::{Measurement, Row, columns, line, rows_of};
pub use line::{Line, STOPPED, records_to_csv, to_csv};
pub use range::Range;
pub use rounding::{to_microseconds, to_milliseconds};
pub(crate) use row_record::record;
pub use row_record::{Record, columns_of};
pub(crate) use value::value;
