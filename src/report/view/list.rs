//! Every view by its name in a definition.

use super::view_of::Analyse;
use super::{concentration, fits, heads, latency, ramps, spectra, surgery, trainings};
use crate::claims::Group;
use crate::report::analysis::Analysis;
use crate::report::error::ReportError;
use crate::report::measured::MeasuredStudy;
use crate::study::View;

/// Analyses studies of the view's kind, whose folders lie side by side.
///
/// # Errors
/// Rows that are missing, torn or of another kind of study, with file, line and what to do; rows, a run's curve or its
/// evaluations that are not what the manifest beside them tells of.
pub fn analyse(studies: &[MeasuredStudy], view: View) -> Result<Analysis, ReportError> {
    let analyse: &dyn Analyse = match view {
        View::Spectra => &spectra::SPECTRA,
        View::Frontiers => &fits::FRONTIERS,
        View::LogitGrowth => &fits::LOGIT_GROWTH,
        View::Phase => &fits::PHASE,
        View::Controls => &fits::CONTROLS,
        View::Layouts => &fits::LAYOUTS,
        View::WindowRule => &fits::WINDOW_RULE,
        View::Training => &trainings::TRAINING,
        View::Arms => &trainings::ARMS,
        View::Ablation => &trainings::ABLATION,
        View::Dial => &trainings::DIAL,
        View::Variants => &trainings::VARIANTS,
        View::Bits => &trainings::BITS,
        View::LearningRate => &trainings::LEARNING_RATE,
        View::Latency => &latency::LATENCY,
        View::Decomposition => &heads::DECOMPOSITION,
        View::Prediction => &heads::PREDICTION,
        View::Published => &heads::PUBLISHED,
        View::Ranks => &heads::RANKS,
        View::Ramp => &ramps::RAMP,
        View::Concentration => &concentration::CONCENTRATION,
        View::Lattice => &heads::LATTICE,
        View::HeadDimension => &heads::HEAD_DIMENSION,
        View::Surgery => &surgery::SURGERY,
        View::GlobalHeads => &surgery::GLOBAL_HEADS,
        View::Interventions => &trainings::INTERVENTIONS,
    };
    analyse.analyse(studies, group(view))
}

/// The part of the report that studies of a view belong to.
fn group(view: View) -> Group {
    match view {
        View::Spectra
        | View::Frontiers
        | View::LogitGrowth
        | View::Phase
        | View::Controls
        | View::Layouts
        | View::WindowRule => Group::SyntheticTargets,
        View::Training
        | View::Arms
        | View::Ablation
        | View::Dial
        | View::LearningRate
        | View::Interventions
        | View::Variants
        | View::Bits => Group::Training,
        View::Latency => Group::Cost,
        View::Published => Group::PublishedModels,
        View::Decomposition
        | View::Prediction
        | View::Ranks
        | View::Ramp
        | View::Concentration
        | View::Lattice
        | View::HeadDimension
        | View::Surgery
        | View::GlobalHeads => Group::TrainedHeads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableError;

    /// A view that took another kind's rows would miss a column.
    #[test]
    fn every_view_takes_the_rows_of_its_kind() {
        for &view in View::ALL {
            let folder = tempfile::tempdir().unwrap();
            let header: Vec<&str> =
                view.kind().columns().into_iter().map(|column| column.name).collect();
            std::fs::write(folder.path().join("rows.csv"), header.join(",") + "\n").unwrap();
            let study =
                MeasuredStudy { folder: folder.path().to_owned(), ..MeasuredStudy::default() };
            match analyse(&[study], view) {
                Err(ReportError::Table(TableError::NoRows { .. })) | Ok(_) => {}
                Err(error) => panic!("{view}: {error}"),
            }
        }
    }
}
