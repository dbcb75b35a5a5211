//! TEMPORARY
pub use crate::experiments::concentration::{ConcentrationFound, FarFound};
pub use crate::experiments::fits::{
    FitAsked, FitFound, FitOf, FitTerms, FrontierRow, Proven, Reached,
};
pub use crate::experiments::heads::{HeadFound, HeadOf, HeadOutcome};
pub use crate::experiments::interventions::SurgeryFound;
pub use crate::experiments::latency::{LatencyFound, LatencyOf};
pub use crate::experiments::lattice::LatticeFound;
pub use crate::experiments::ramp::{RampFound, RampOf};
pub use crate::experiments::spectrum::{ATTENTION, LOGITS, SpectrumFound, SpectrumOf};
pub use crate::experiments::training::{ModelColumns, SYNTHETIC, TrainingFound, TrainingOf};
pub use crate::experiments::{ModelOf, TargetColumns};
pub use crate::record::InvariantChecker as Laws;
pub use crate::record::{Measurement as Kind, columns_of as columns_of_record, *};
pub use crate::run::{Course, CurveRow, EvaluationRow, StepRow};
