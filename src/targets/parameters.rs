//! The options that describe a family, under one set of names everywhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of a target family, each under its one name: the command line's flags, the keys
/// of a definition and the columns of the rows.
///
/// Which of them a family takes is the family's to say ([`Family::from_parameters`]); a part of a
/// `mixture` or of a `permuted` takes its parameters from the same set.
///
/// [`Family::from_parameters`]: super::Family::from_parameters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// w, the number of lags of a band: row i sees lags 0 to w − 1.
    pub window: Option<usize>,
    /// τ, the lag over which `decay-band` falls by e.
    pub tau: Option<f64>,
    /// α, the concentration of `dirichlet-band`.
    pub alpha: Option<f64>,
    /// σ, the spread of `lognormal-band`, in nats.
    pub sigma: Option<f64>,
    /// k, the lag of `previous-token`, or the columns in a row of `random-sparse`.
    pub k: Option<usize>,
    /// m, the number of columns that every row of `landmark` shares.
    pub m: Option<usize>,
    /// c, the number of clusters that `clustered` draws its tokens into.
    pub c: Option<usize>,
    /// The number of different tokens that `induction` draws from.
    pub vocabulary: Option<usize>,
    /// λ, the weight of the local part of a `mixture`.
    pub lambda: Option<f64>,
    /// The family of a mixture's local part.
    pub local: Option<String>,
    /// The family of a mixture's global part.
    pub global: Option<String>,
    /// The family whose rows and columns `permuted` shuffles.
    pub of: Option<String>,
    /// The file that `file` reads.
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

    /// These parameters, with what is missing taken from `other`.
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
