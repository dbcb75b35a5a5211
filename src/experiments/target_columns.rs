//! The columns that describe a target.

use crate::record::record;
use crate::targets::{Family, Visibility};

record! {
    /// A target's family with its parameters, each under the name that definitions give it.
    #[derive(Default)]
    pub struct TargetColumns {
        /// the family of the target
        family: String,
        /// w, the number of relative distances in a band
        #[range = Counted]
        window: Option<usize>,
        /// τ, the relative distance over which a decaying band falls by e
        #[range = Positive]
        tau: Option<f64>,
        /// α, the concentration of a Dirichlet band
        #[range = Positive]
        alpha: Option<f64>,
        /// σ, the standard deviation of a lognormal band
        #[unit = "nats"]
        sigma: Option<f64>,
        /// k, the relative distance of `previous-token`, or the columns per row of `random-sparse`
        #[range = Counted]
        k: Option<usize>,
        /// m, the columns that all rows of `landmark` share
        #[range = Counted]
        m: Option<usize>,
        /// c, the number of clusters of `clustered`
        #[range = Counted]
        c: Option<usize>,
        /// the number of distinct tokens of `induction`
        #[range = Counted]
        vocabulary: Option<usize>,
        /// λ, the weight of the local part of `mixture`
        lambda: Option<f64>,
        /// the family of the local part of `mixture`
        local: Option<String>,
        /// the family of the global part of `mixture`
        global: Option<String>,
        /// the family that `permuted` shuffles
        of: Option<String>,
        /// the file that `file` reads
        path: Option<String>,
    }
}

impl From<&Family> for TargetColumns {
    fn from(family: &Family) -> Self {
        let p = family.parameters();
        Self {
            family: family.name().to_owned(),
            window: p.window,
            tau: p.tau,
            alpha: p.alpha,
            sigma: p.sigma,
            k: p.k,
            m: p.m,
            c: p.c,
            vocabulary: p.vocabulary,
            lambda: p.lambda,
            local: p.local,
            global: p.global,
            of: p.of,
            path: p.path.map(|path| path.display().to_string()),
        }
    }
}

impl TargetColumns {
    /// The family and its parameters as text: `dirichlet-band, w = 32`. The mask is named only if it is not causal,
    /// since most targets are causal.
    pub fn label(&self, visibility: Visibility) -> String {
        let mut label = self.family.clone();
        if let (Some(local), Some(global)) = (&self.local, &self.global) {
            label.push_str(&format!(" of {local} and {global}"));
        }
        label.extend(self.of.as_ref().map(|of| format!(" {of}")));
        let count = |value: Option<usize>| value.map(|value| value as f64);
        for (symbol, value) in [
            ("w", count(self.window)),
            ("τ", self.tau),
            ("α", self.alpha),
            ("σ", self.sigma),
            ("k", count(self.k)),
            ("m", count(self.m)),
            ("c", count(self.c)),
            ("vocabulary", count(self.vocabulary)),
            ("λ", self.lambda),
        ] {
            label.extend(value.map(|value| format!(", {symbol} = {value}")));
        }
        if visibility == Visibility::Bidirectional {
            label.push_str(", no mask");
        }
        label
    }

    /// The number of columns over which a row of the target is spread: its m, k or window, as given.
    pub fn support(&self) -> Option<usize> {
        match self.family.as_str() {
            // Its k is a distance.
            "previous-token" => Some(1),
            _ => self.m.or(self.k).or(self.window),
        }
    }
}
