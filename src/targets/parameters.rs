//! The parameters that describe a family, under the same names everywhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of a target family, each under its one name: the command line's flags, the keys
/// of a definition and the columns of the rows.
///
/// [`Family::from_parameters`] decides which of them a family takes. A part of a `mixture` or of a `permuted` takes its
/// parameters from the same set.
///
/// [`Family::from_parameters`]: super::Family::from_parameters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "lm", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// w of bands: each query attends to its last w tokens.
    pub window: Option<usize>,
    /// τ of `decay-band`, in tokens: the distance over which weights fall by e; default w/4.
    pub tau: Option<f64>,
    /// α of `dirichlet-band`, the concentration; default 1.
    pub alpha: Option<f64>,
    /// σ of `lognormal-band`, the standard deviation of log weights; default 1.
    pub sigma: Option<f64>,
    /// k: the distance of `previous-token`, or the keys per query of `random-sparse`.
    pub k: Option<usize>,
    /// m of `landmark`: the keys that all queries share.
    pub m: Option<usize>,
    /// c of `clustered`: the number of clusters.
    pub c: Option<usize>,
    /// Vocabulary size of `induction`.
    pub vocabulary: Option<usize>,
    /// λ of `mixture`: the weight of the local family; default 0.5.
    pub lambda: Option<f64>,
    /// Local family of `mixture`.
    pub local: Option<String>,
    /// Global family of `mixture`.
    pub global: Option<String>,
    /// Family that `permuted` permutes.
    pub of: Option<String>,
    /// File of the family `file`: .npy, .csv, .parquet or .safetensors.
    pub path: Option<PathBuf>,
}

impl Parameters {
    /// The names of the parameters that have a value, in the order of the fields.
    pub(super) fn given(&self) -> Vec<&'static str> {
        [
            ("window", self.window.is_some()),
            ("tau", self.tau.is_some()),
            ("alpha", self.alpha.is_some()),
            ("sigma", self.sigma.is_some()),
            ("k", self.k.is_some()),
            ("m", self.m.is_some()),
            ("c", self.c.is_some()),
            ("vocabulary", self.vocabulary.is_some()),
            ("lambda", self.lambda.is_some()),
            ("local", self.local.is_some()),
            ("global", self.global.is_some()),
            ("of", self.of.is_some()),
            ("path", self.path.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }

    /// Returns these parameters, with missing values taken from `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            window: self.window.or(other.window),
            tau: self.tau.or(other.tau),
            alpha: self.alpha.or(other.alpha),
            sigma: self.sigma.or(other.sigma),
            k: self.k.or(other.k),
            m: self.m.or(other.m),
            c: self.c.or(other.c),
            vocabulary: self.vocabulary.or(other.vocabulary),
            lambda: self.lambda.or(other.lambda),
            local: self.local.or(other.local),
            global: self.global.or(other.global),
            of: self.of.or(other.of),
            path: self.path.or(other.path),
        }
    }
}
