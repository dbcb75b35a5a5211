//! The arithmetic of a fit.

use super::problem::FitError;

/// The arithmetic of an evaluation. Vectors and sums over rows are float64 in both cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// float32 logits and products: half the time and half the memory.
    F32,
    /// float64 throughout.
    #[default]
    F64,
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl std::str::FromStr for Precision {
    type Err = FitError;

    fn from_str(text: &str) -> Result<Self, FitError> {
        match text {
            "f32" => Ok(Self::F32),
            "f64" => Ok(Self::F64),
            _ => Err(FitError::Precision(text.to_owned())),
        }
    }
}
