//! Reads one family's parameters and checks them, each with its default and bounds.

use std::path::PathBuf;

use super::{Parameters, TargetError};

/// Reads parameters for a family; its errors name the family.
pub(super) struct Check<'a> {
    pub(super) family: &'static str,
    pub(super) parameters: &'a Parameters,
}

impl<'a> Check<'a> {
    pub(super) fn window(&self) -> Result<usize, TargetError> {
        self.count("window", self.parameters.window, "the number of relative distances in the band")
    }

    pub(super) fn k(&self) -> Result<usize, TargetError> {
        let meaning = match self.family {
            "previous-token" => "the relative distance; for 0, use uniform-band with window 1",
            _ => "the number of columns per row",
        };
        self.count("k", self.parameters.k, meaning)
    }

    pub(super) fn m(&self) -> Result<usize, TargetError> {
        self.count("m", self.parameters.m, "the number of columns that all rows share")
    }

    pub(super) fn c(&self) -> Result<usize, TargetError> {
        self.count("c", self.parameters.c, "the number of clusters")
    }

    pub(super) fn vocabulary(&self) -> Result<usize, TargetError> {
        self.count("vocabulary", self.parameters.vocabulary, "the number of distinct tokens")
    }

    /// Reads τ; the default is a quarter of the window.
    pub(super) fn tau(&self, window: usize) -> Result<f64, TargetError> {
        let tau = self.parameters.tau.unwrap_or(window as f64 / 4.0);
        self.within("tau", tau, tau > 0.0 && tau.is_finite(), "above 0 and finite, in tokens")
    }

    /// Reads α. Within its bounds a draw neither underflows completely nor gives equal weights.
    pub(super) fn alpha(&self) -> Result<f64, TargetError> {
        let alpha = self.parameters.alpha.unwrap_or(1.0);
        self.within("alpha", alpha, (1e-6..=1e6).contains(&alpha), "from 1e-6 to 1e6")
    }

    pub(super) fn sigma(&self) -> Result<f64, TargetError> {
        let sigma = self.parameters.sigma.unwrap_or(1.0);
        self.within("sigma", sigma, sigma > 0.0 && sigma <= 1e6, "above 0 and at most 1e6")
    }

    pub(super) fn lambda(&self) -> Result<f64, TargetError> {
        let lambda = self.parameters.lambda.unwrap_or(0.5);
        self.within("lambda", lambda, lambda > 0.0 && lambda < 1.0, "above 0 and below 1")
    }

    pub(super) fn path(&self) -> Result<PathBuf, TargetError> {
        self.parameters.path.clone().ok_or_else(|| {
            self.wrong("needs path (a .npy, .csv, .parquet or .safetensors file)".to_owned())
        })
    }

    /// The family named by `parameter`, which must not be a combination itself. Each parameter has one value, so a nested
    /// combination could not be distinguished from the outer one.
    pub(super) fn part(
        &self,
        parameter: &str,
        name: &'a Option<String>,
    ) -> Result<&'a str, TargetError> {
        let Some(name) = name else {
            return Err(self.wrong(format!("needs {parameter} (the name of a family)")));
        };
        let mixture_inside = self.family == "mixture" && name == "mixture";
        if name == "permuted" || mixture_inside {
            return Err(self.wrong(format!("{parameter} cannot be {name}; name another family")));
        }
        Ok(name)
    }

    pub(super) fn wrong(&self, why: String) -> TargetError {
        TargetError::Parameter { family: self.family, why }
    }

    fn count(
        &self,
        parameter: &str,
        value: Option<usize>,
        meaning: &str,
    ) -> Result<usize, TargetError> {
        match value {
            None => Err(self.wrong(format!("needs {parameter} ({meaning})"))),
            Some(0) => {
                Err(self.wrong(format!("{parameter} is 0; it must be at least 1 ({meaning})")))
            }
            Some(value) => Ok(value),
        }
    }

    fn within(
        &self,
        parameter: &str,
        value: f64,
        valid: bool,
        bounds: &str,
    ) -> Result<f64, TargetError> {
        if valid {
            Ok(value)
        } else {
            Err(self.wrong(format!("{parameter} is {value}; it must be {bounds}")))
        }
    }
}
