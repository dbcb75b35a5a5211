//! Rows as types: one struct a kind, from which its columns, their units and docs, its CSV and Parquet and its
//! laws follow.
//!
//! | rows | of a cell | what it measured |
//! |---|---|---|
//! | fits | [`FitOf`] | [`FitFound`] |
//! | singular values | [`SpectrumOf`] | [`SpectrumFound`] |
//! | training runs | [`TrainingOf`] | [`TrainingFound`] |
//! | trained heads | [`HeadOf`] | [`HeadFound`] |
//! | trained heads against ramps | [`RampOf`] | [`RampFound`] |
//! | trained heads, how concentrated | [`ModelOf`] | [`ConcentrationFound`] |
//! | trained heads, by what is allowed | [`ModelOf`] | [`LatticeFound`] |
//! | trained models with other attention | [`ModelOf`] | [`SurgeryFound`] |
//! | inference | [`LatencyOf`] | [`LatencyFound`] |
//!
//! `csv` with serde would write a float64 in other digits than the rows have always had (`4.0` for `4`), and
//! cannot flatten structs whose fields are numbers; so a macro of some forty lines makes the structs.

mod column;
mod concentration;
mod fields;
mod file;
mod fit;
mod head;
mod kind;
mod latency;
mod lattice;
mod laws;
mod line;
mod log;
mod model;
mod part;
mod ramp;
mod range;
mod seconds;
mod spectrum;
mod surgery;
mod target;
mod trained_model;
mod training;
mod value;

pub use column::{Column, ColumnKind};
pub use concentration::{ConcentrationFound, FarFound};
pub use fields::Fields;
pub(crate) use fields::Header;
pub use file::{Rows, RowsError, read_records};
pub use fit::{FitAsked, FitFound, FitOf, FitTerms, FrontierRow, Proven, Reached};
pub use head::{HeadFound, HeadOf, HeadOutcome};
pub use kind::{Kind, Row, columns, line, rows_of};
pub use latency::{LatencyFound, LatencyOf};
pub use lattice::LatticeFound;
pub use laws::Laws;
pub use line::{Line, STOPPED, records_to_csv, to_csv, to_frame};
pub use log::{CurveRow, EvaluationRow, StepRow};
pub use model::ModelColumns;
#[cfg(test)]
pub(crate) use part::record;
pub use part::{Part, columns_of_record};
pub use ramp::{RampFound, RampOf};
pub use range::Range;
pub use seconds::to_microseconds;
pub use spectrum::{ATTENTION, LOGITS, SpectrumFound, SpectrumOf};
pub use surgery::SurgeryFound;
pub use target::TargetColumns;
pub use trained_model::ModelOf;
pub use training::{Course, SYNTHETIC, TrainingFound, TrainingOf};
