//! What a study measures, with all that it is measured by.

use super::concentration::ConcentrationStudy;
use super::fit::FitStudy;
use super::kind::Kind;
use super::latency::LatencyStudy;
use super::lattice::LatticeStudy;
use super::predict::PredictStudy;
use super::ramp::RampStudy;
use super::spectrum::SpectrumStudy;
use super::surgery::SurgeryStudy;
use super::train::TrainStudy;
use super::trained_models::TrainedModels;
use crate::fit::Precision;

/// What a study measures.
#[derive(Clone, Debug)]
pub enum StudyWork {
    /// Fits over a grid.
    Fit(Box<FitStudy>),
    /// Training runs.
    Train(TrainStudy),
    /// Singular values of targets.
    Spectrum(SpectrumStudy),
    /// Times of inference.
    Latency(LatencyStudy),
    /// Trained heads against what they needed.
    Predict(Box<PredictStudy>),
    /// Trained heads against ramps over positions.
    Ramp(RampStudy),
    /// On how few tokens and in how few dimensions trained heads attend.
    Concentration(ConcentrationStudy),
    /// The same by the inputs and the rank that are allowed.
    Lattice(Box<LatticeStudy>),
    /// Trained models whose heads attend otherwise.
    Surgery(Box<SurgeryStudy>),
}

impl StudyWork {
    /// What of it a definition's key `kind` names.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Fit(_) => Kind::Fit,
            Self::Train(_) => Kind::Train,
            Self::Spectrum(_) => Kind::Spectrum,
            Self::Latency(_) => Kind::Latency,
            Self::Predict(_) => Kind::Predict,
            Self::Ramp(_) => Kind::Ramp,
            Self::Concentration(_) => Kind::Concentration,
            Self::Lattice(_) => Kind::Lattice,
            Self::Surgery(_) => Kind::Surgery,
        }
    }

    /// Whether its rows depend on the text that models read, whose name its folder then has.
    pub(in crate::study) fn is_of_text(&self) -> bool {
        match self {
            Self::Train(_) => true,
            _ => self.trained_models().is_some_and(|models| !models.of.is_empty()),
        }
    }

    /// Which trained models it looks at, where it looks at some.
    pub(in crate::study) fn trained_models(&self) -> Option<&TrainedModels> {
        match self {
            Self::Predict(study) => Some(&study.models),
            Self::Ramp(study) => Some(&study.models),
            Self::Concentration(study) => Some(&study.models),
            Self::Lattice(study) => Some(&study.models),
            Self::Surgery(study) => Some(&study.models),
            Self::Fit(_) | Self::Train(_) | Self::Spectrum(_) | Self::Latency(_) => None,
        }
    }

    /// The numbers that it is computed in.
    pub(in crate::study) fn dtype(&self) -> String {
        match self {
            Self::Fit(_) | Self::Spectrum(_) | Self::Ramp(_) | Self::Concentration(_) => {
                "float64".to_owned()
            }
            Self::Predict(study) => of_precision(study.search.precision),
            Self::Lattice(study) => of_precision(study.search.precision),
            Self::Surgery(study) => of_precision(study.search.precision),
            Self::Latency(_) => "float32".to_owned(),
            Self::Train(study) => {
                let mut names: Vec<_> =
                    study.runs.iter().map(|run| run.definition.dtype.name()).collect();
                names.sort_unstable();
                names.dedup();
                names.join(", ")
            }
        }
    }
}

/// The numbers that fits of trained heads are computed in.
fn of_precision(precision: Precision) -> String {
    match precision {
        Precision::F32 => "float32".to_owned(),
        Precision::F64 => "float64".to_owned(),
    }
}
