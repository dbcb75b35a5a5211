//! Rows into tables: reading what was measured, gathering it over seeds, writing it for programs
//! and people.

mod censored;
mod columns;
mod concentration;
#[cfg(test)]
mod concentration_tests;
mod error;
mod grid;
mod groups;
mod growth;
mod growth_cell;
mod head_parts;
mod heads;
mod heads_tables;
#[cfg(test)]
mod heads_tests;
mod latency;
mod latex;
mod lattice;
mod lattice_tables;
mod layouts;
mod models;
mod one_fit;
mod published;
mod ramps;
#[cfg(test)]
mod ramps_tests;
mod rank_correlation;
mod regression;
mod run_course;
mod run_courses;
mod run_log;
mod spectra;
mod summary;
mod surgery;
mod training;
mod variants;
mod window_rule;
mod write;

pub use columns::{Columns, Heading};
pub use concentration::{ConcentratedHead, Concentrations, FAR_MASS};
#[cfg(test)]
pub(crate) use concentration_tests::heads as concentrated_heads;
pub use error::TableError;
pub use grid::{Align, Cell, Column, Table};
pub(crate) use groups::{distinct, groups};
pub use growth::{Growth, GrowthSlope};
pub use growth_cell::{GrowthCell, GrowthSeed};
pub use head_parts::{FACTOR_NAMES, HeadParts, WiderHead};
pub use heads::{Ordering as HeadOrdering, PartsOfGrowth, TrainedHeads};
#[cfg(test)]
pub(crate) use heads_tests::head as head_of_parts;
pub use latency::{Latencies, LatencyCell, LatencyRound};
#[cfg(test)]
pub(crate) use lattice::made_up::head as made_up_lattice;
pub use lattice::{LatticeCorner, LatticeOfHead, Lattices, Shares};
pub use layouts::{LayoutCell, LayoutSeed, Layouts};
pub use models::{Model as GrowthModel, ModelFit};
pub use one_fit::{FoundAttention, OneFit, TARGET};
pub use published::{LARGE_NATS, PublishedHeads, PublishedModel};
pub use ramps::{LOCAL_MASS, RampHead, Ramps};
#[cfg(test)]
pub(crate) use ramps_tests::heads as ramp_heads;
pub use rank_correlation::{LeftOut, RankCorrelation};
pub use regression::{Coefficient, Regression};
pub use run_course::{HeadCourse, RunCourse};
pub use run_courses::{PairedRuns, RunCourses};
pub use run_log::{Curve, RunLog};
pub use spectra::{Spectra, SpectrumCell};
pub use summary::{Interval, Slope, Spread, plural, plural_range, significant};
pub use surgery::{HARMLESS_NATS, HarmlessError, OperatedModel, Surgeries};
pub(crate) use training::arm_name;
pub use training::{TrainingRun, Trainings};
pub use variants::Variant;
pub use window_rule::{ERRORS, LeastWindow};
