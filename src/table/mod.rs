//! Rows into tables: reading what was measured, gathering it over seeds, writing it for programs
//! and people.

mod censored;
mod digits;
mod error;
mod grid;
mod groups;
mod growth;
mod growth_table;
mod heads;
mod latency;
mod latex;
mod layouts;
mod models;
mod rank_correlation;
mod run_log;
mod slope;
mod spectra;
mod spread;
mod training;
mod window_rule;
mod write;

pub use digits::{plural, significant};
pub use error::TableError;
pub use grid::{Align, Cell, Column, Table};
pub use growth::{Growth, GrowthCell, GrowthSeed, GrowthSlope};
#[cfg(test)]
pub(crate) use heads::tests::head as head_of_parts;
pub use heads::{
    HeadParts, Ordering as HeadOrdering, PARTS, PartsOfGrowth, TrainedHeads, WiderHead,
};
pub use latency::{Latencies, LatencyCell};
pub use layouts::{LayoutCell, LayoutSeed, Layouts};
pub use models::{Model as GrowthModel, ModelFit};
pub use rank_correlation::RankCorrelation;
pub use run_log::{Curve, RunLog};
pub use slope::Slope;
pub use spectra::{Spectra, SpectrumCell};
pub use spread::Spread;
pub use training::{TrainingRun, Trainings};
pub use window_rule::{ERRORS, LeastWindow};
