//! All experiments: one folder per kind of study, with its configuration, cells, measurement and row invariants.
//! [`KINDS`] lists them.

mod checkpoints;
pub mod claims;
pub mod fits;
pub mod flatness;
pub mod heads;
pub mod interventions;
pub mod latency;
mod model_key;
pub mod ramp;
pub mod spectrum;
mod target_columns;
mod trained_model;
mod trained_models;
pub mod training;

use checkpoints::CheckpointStudy;
pub use model_key::{CheckpointKey, ModelKey, OfHead};
pub use target_columns::TargetColumns;
pub(crate) use trained_model::PASSAGES_OF_A_GROUP;
pub(crate) use trained_models::ModelKeys;
pub use trained_models::TrainedModels;

use std::str::FromStr;

use crate::experiment::{Kind, View};
use crate::system::nearest::instead;

/// Every kind of study, in the order of a report: targets, fits, training runs, trained heads.
pub const KINDS: &[Kind] = &[
    Kind::of::<spectrum::SpectrumStudy>(),
    Kind::of::<fits::FitStudy>(),
    Kind::of::<training::TrainStudy>(),
    Kind::of::<latency::LatencyStudy>(),
    Kind::of::<heads::PredictStudy>(),
    Kind::of::<CheckpointStudy<ramp::RampKeys>>(),
    Kind::of::<interventions::InterventionStudy>(),
    Kind::of::<CheckpointStudy<flatness::FlatnessKeys>>(),
];

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        KINDS.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
            format!("unknown kind {name:?}; {}", instead(name, &names))
        })
    }
}

/// Every view, in the order of a report.
pub fn views() -> impl Iterator<Item = View> {
    KINDS.iter().flat_map(|kind| kind.views()).copied()
}

impl FromStr for View {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        views().find(|view| view.name == name).ok_or_else(|| {
            let names: Vec<&str> = views().map(|view| view.name).collect();
            format!("unknown view {name:?}; {}", instead(name, &names))
        })
    }
}

/// The view `name` of a study of `kind`.
///
/// # Errors
/// A message if there is no view of this name, with the nearest name, or if the view needs rows of another kind.
pub(crate) fn view_of_kind(name: &str, kind: Kind) -> Result<View, String> {
    let view: View = name.parse()?;
    if kind.views().contains(&view) {
        return Ok(view);
    }
    let of = KINDS.iter().copied().find(|kind| kind.views().contains(&view)).unwrap_or(kind);
    let names: Vec<&str> = kind.views().iter().map(|view| view.name).collect();
    Err(format!(
        "view {name:?} needs rows of kind {of}, but the study's kind is {kind}; give one of {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::MeasuredStudy;
    use crate::table::TableError;

    #[test]
    fn every_view_is_found_by_its_name_and_takes_the_rows_of_its_kind() {
        for kind in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let header: Vec<&str> = kind.columns().into_iter().map(|column| column.name).collect();
            std::fs::write(folder.path().join("rows.csv"), header.join(",") + "\n").unwrap();
            let study =
                MeasuredStudy { folder: folder.path().to_owned(), ..MeasuredStudy::default() };
            for view in kind.views() {
                assert_eq!(view_of_kind(view.name, *kind).unwrap(), *view);
                match (view.analyse)(std::slice::from_ref(&study)) {
                    Err(TableError::NoRows(_)) | Ok(_) => {}
                    Err(error) => panic!("{view}: {error}"),
                }
            }
        }
    }
}
