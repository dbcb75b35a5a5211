//! Rows into tables: reading what was measured, gathering it over seeds, writing it for programs
//! and people.

mod columns;
mod digits;
mod error;
mod grid;
mod growth;
mod growth_table;
mod layouts;
mod rows;
mod run_log;
mod schema;
mod slope;
mod spread;
mod targets;
mod training;
mod write;

pub use digits::{plural, significant};
pub use error::TableError;
pub use grid::{Align, Cell, Column, Table};
pub use growth::{Growth, GrowthCell, GrowthSeed, GrowthSlope};
pub use layouts::{LayoutCell, LayoutSeed, Layouts};
pub use rows::Rows;
pub use run_log::{Curve, RunLog};
pub use slope::Slope;
pub use spread::Spread;
pub use training::{TrainingRun, Trainings};
