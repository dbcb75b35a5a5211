//! What a study can measure.

use std::fmt;
use std::str::FromStr;

use crate::row::{
    Column, ConcentrationFound, FitFound, HeadFound, LatencyFound, LatticeFound, RampFound,
    SpectrumFound, SurgeryFound, TrainingFound, columns,
};
use crate::system::nearest::instead;

/// What a study measures, by the key `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Fits over a grid.
    Fit,
    /// Training runs.
    Train,
    /// Singular values of targets.
    Spectrum,
    /// Times of inference.
    Latency,
    /// Trained heads against what they needed.
    Predict,
    /// Trained heads against ramps over positions.
    Ramp,
    /// On how few tokens and in how few dimensions trained heads attend.
    Concentration,
    /// The same by the inputs and the rank that are allowed.
    Lattice,
    /// Trained models whose heads attend otherwise.
    Surgery,
}

impl Kind {
    const NAMES: [(&'static str, Self); 9] = [
        ("fit", Self::Fit),
        ("train", Self::Train),
        ("spectrum", Self::Spectrum),
        ("latency", Self::Latency),
        ("predict", Self::Predict),
        ("ramp", Self::Ramp),
        ("concentration", Self::Concentration),
        ("lattice", Self::Lattice),
        ("surgery", Self::Surgery),
    ];

    /// The tables that define such a study.
    pub(super) fn tables(self) -> &'static [&'static str] {
        match self {
            Self::Fit => &["grid", "search", "target"],
            Self::Train => &["train", "run", "predicted", "baseline"],
            Self::Spectrum => &["grid", "target"],
            Self::Latency => &["grid", "train", "run"],
            Self::Predict => &["predict", "search"],
            Self::Ramp => &["ramp"],
            Self::Concentration => &["concentration"],
            Self::Lattice => &["lattice", "search"],
            Self::Surgery => &["surgery", "search"],
        }
    }

    /// The columns of its rows.
    pub fn columns(self) -> Vec<Column> {
        match self {
            Self::Fit => columns::<FitFound>(),
            Self::Train => columns::<TrainingFound>(),
            Self::Spectrum => columns::<SpectrumFound>(),
            Self::Latency => columns::<LatencyFound>(),
            Self::Predict => columns::<HeadFound>(),
            Self::Ramp => columns::<RampFound>(),
            Self::Concentration => columns::<ConcentrationFound>(),
            Self::Lattice => columns::<LatticeFound>(),
            Self::Surgery => columns::<SurgeryFound>(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, kind)| *kind).ok_or_else(|| {
            format!("unknown kind {text:?}; {}", instead(text, &Self::NAMES.map(|(name, _)| name)))
        })
    }
}
