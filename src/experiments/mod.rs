//! The experiments: one folder per kind of study, each with its configuration, its cells, its measurement and the
//! invariants of its rows. [`KINDS`] lists them.

pub mod claims;
pub mod concentration;
mod each_head;
pub mod fits;
pub mod heads;
pub mod interventions;
pub mod latency;
pub mod lattice;
mod model_cell;
mod model_key;
pub mod ramp;
pub mod spectrum;
mod target_columns;
mod trained_model;
mod trained_models;
pub mod training;

pub use model_key::ModelKey;
pub use target_columns::TargetColumns;
pub(crate) use trained_models::ModelKeys;
pub use trained_models::TrainedModels;

use std::str::FromStr;

use crate::experiment::Kind;
use crate::system::nearest::instead;

/// Every kind of study.
pub const KINDS: [Kind; 9] = [
    Kind::of::<fits::FitStudy>(),
    Kind::of::<training::TrainStudy>(),
    Kind::of::<spectrum::SpectrumStudy>(),
    Kind::of::<latency::LatencyStudy>(),
    Kind::of::<heads::PredictStudy>(),
    Kind::of::<ramp::RampStudy>(),
    Kind::of::<concentration::ConcentrationStudy>(),
    Kind::of::<lattice::LatticeStudy>(),
    Kind::of::<interventions::InterventionStudy>(),
];

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            format!("unknown kind {name:?}; {}", instead(name, &KINDS.map(Self::name)))
        })
    }
}
