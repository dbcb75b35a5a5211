//! The parameters that describe a family, under the same names everywhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::TargetError;

/// The parameters of a target family, each under its one name: the command line's flags, the keys
/// of a definition and the columns of the rows.
///
/// [`Family::from_parameters`] decides which of them a family takes. A part of a `mixture` or of a `permuted` takes its
/// parameters from the same set. The docs of a field are also the help of its flag.
///
/// [`Family::from_parameters`]: super::Family::from_parameters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "lm", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
// A default in brackets is no link.
#[allow(rustdoc::broken_intra_doc_links)]
pub struct Parameters {
    /// Width of a band or a local head, in tokens.
    #[cfg_attr(feature = "cli", arg(long, value_name = "W"))]
    pub window: Option<usize>,
    /// Decay length of decay-band, in tokens [default: window / 4].
    #[cfg_attr(feature = "cli", arg(long))]
    pub tau: Option<f64>,
    /// Concentration of dirichlet-band [default: 1].
    #[cfg_attr(feature = "cli", arg(long))]
    pub alpha: Option<f64>,
    /// Standard deviation of lognormal-band, in nats [default: 1].
    #[cfg_attr(feature = "cli", arg(long))]
    pub sigma: Option<f64>,
    /// Tokens to look back (previous-token) or columns per row (random-sparse).
    #[cfg_attr(feature = "cli", arg(long))]
    pub k: Option<usize>,
    /// Columns that all rows of landmark share.
    #[cfg_attr(feature = "cli", arg(long))]
    pub m: Option<usize>,
    /// Number of clusters of clustered.
    #[cfg_attr(feature = "cli", arg(long))]
    pub c: Option<usize>,
    /// Number of distinct tokens of induction.
    #[cfg_attr(feature = "cli", arg(long, value_name = "TOKENS"))]
    pub vocabulary: Option<usize>,
    /// Weight of the local part of mixture [default: 0.5].
    #[cfg_attr(feature = "cli", arg(long))]
    pub lambda: Option<f64>,
    /// Family of the local part of mixture.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub local: Option<String>,
    /// Family of the global part of mixture.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub global: Option<String>,
    /// Family that permuted shuffles.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME"))]
    pub of: Option<String>,
    /// Read the matrix of the family named file from here.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILE"))]
    pub path: Option<PathBuf>,
}

impl Parameters {
    /// The parameters that have a value, each with its name and the value as text, in the order of the fields.
    pub(super) fn given(&self) -> Vec<(&'static str, String)> {
        fn text<T: ToString>(value: &Option<T>) -> Option<String> {
            value.as_ref().map(T::to_string)
        }
        [
            ("window", text(&self.window)),
            ("tau", text(&self.tau)),
            ("alpha", text(&self.alpha)),
            ("sigma", text(&self.sigma)),
            ("k", text(&self.k)),
            ("m", text(&self.m)),
            ("c", text(&self.c)),
            ("vocabulary", text(&self.vocabulary)),
            ("lambda", text(&self.lambda)),
            ("local", text(&self.local)),
            ("global", text(&self.global)),
            ("of", text(&self.of)),
            ("path", self.path.as_ref().map(|path| path.display().to_string())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// Reads parameters for a family; its errors name the family.
pub(super) struct Check<'a> {
    pub(super) family: &'static str,
    pub(super) parameters: &'a Parameters,
}

impl<'a> Check<'a> {
    pub(super) fn window(&self) -> Result<usize, TargetError> {
        self.count("window", self.parameters.window, "the number of relative distances in the band")
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

    pub(super) fn count(
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
        let wrong = || self.wrong(format!("{parameter} is {value}; it must be {bounds}"));
        valid.then_some(value).ok_or_else(wrong)
    }
}
