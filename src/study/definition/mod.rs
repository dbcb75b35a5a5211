//! A study as it is asked for: a TOML file, checked key by key.

mod against;
mod concentration;
mod expected;
mod fit;
mod keys;
mod kind;
mod latency;
mod lattice;
mod others;
mod predict;
mod preset;
mod ramp;
mod search;
mod size;
mod spectrum;
mod start;
mod study_definition;
mod surgery;
mod targets;
#[cfg(test)]
mod tests;
mod train;
mod trained_models;
mod view;
mod work;

pub use against::{Baseline, PredictedExponent};
pub use concentration::ConcentrationStudy;
pub use expected::{Bound, Expected, Selection, Statistic};
pub use fit::{FitGoal, FitStudy};
pub use kind::Kind;
pub use latency::LatencyStudy;
pub use lattice::LatticeStudy;
pub(super) use others::{RunSource, Source, kept_steps};
pub use predict::PredictStudy;
pub use preset::Preset;
pub use ramp::RampStudy;
pub use spectrum::SpectrumStudy;
pub(super) use start::{StartEdit, StartsFrom};
pub use study_definition::StudyDefinition;
pub use surgery::SurgeryStudy;
pub use targets::StudyTarget;
pub(super) use train::TaughtBy;
pub use train::{StudyRun, TrainStudy};
pub use trained_models::TrainedModels;
pub use view::View;
pub use work::StudyWork;
