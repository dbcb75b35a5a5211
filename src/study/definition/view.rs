//! What the rows of a study can be made into.

use std::fmt;
use std::str::FromStr;

use crate::experiment::Kind;
use crate::experiments::concentration::ConcentrationStudy;
use crate::experiments::fits::FitStudy;
use crate::experiments::heads::PredictStudy;
use crate::experiments::interventions::InterventionStudy;
use crate::experiments::latency::LatencyStudy;
use crate::experiments::lattice::LatticeStudy;
use crate::experiments::ramp::RampStudy;
use crate::experiments::spectrum::SpectrumStudy;
use crate::experiments::training::TrainStudy;
use crate::system::nearest::instead;

/// The views, each with its name and the kind of rows that it is made of, in the order of a report: targets first,
/// then fits, then trainings.
macro_rules! views {
    ($(#[doc = $doc:literal] $view:ident = $name:literal of $kind:ident,)*) => {
        /// The tables, figures and verdicts that a study's rows are made into: its definition's key `view`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum View {
            $(#[doc = $doc] $view,)*
        }

        impl View {
            /// Every view, in the order of a report.
            pub const ALL: &[Self] = &[$(Self::$view),*];

            /// The name in a definition.
            pub fn name(self) -> &'static str {
                match self { $(Self::$view => $name),* }
            }

            /// What it draws, in a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$view => $doc.trim_ascii()),* }
            }

            /// What the studies measure whose rows it is made of.
            pub fn kind(self) -> Kind {
                match self { $(Self::$view => Kind::of::<$kind>()),* }
            }
        }
    };
}

views! {
    /// Singular values and effective ranks of targets.
    Spectra = "spectra" of SpectrumStudy,
    /// Error against the logit bound, one line per target. Needs `caps`.
    Frontiers = "frontiers" of FitStudy,
    /// Needed max |logit| and rank penalty against n/d. Needs `tolerance`.
    LogitGrowth = "logit-growth" of FitStudy,
    /// Rank penalty by w/d and n/d. Needs `tolerance`.
    Phase = "phase" of FitStudy,
    /// Rank penalty of a target and of its controls. Needs `tolerance`.
    Controls = "controls" of FitStudy,
    /// Error against the logit bound, one line per layout. Needs `caps`.
    Layouts = "layouts" of FitStudy,
    /// Error against the window of the local head. Needs `caps`.
    WindowRule = "window-rule" of FitStudy,
    /// Loss and largest logit by step.
    Training = "training" of TrainStudy,
    /// Loss and logits of several variants.
    Arms = "arms" of TrainStudy,
    /// Perplexity by window and number of global heads.
    Ablation = "ablation" of TrainStudy,
    /// Loss by the share of long-range look-ups.
    Dial = "dial" of TrainStudy,
    /// Loss and peak logit by learning rate.
    LearningRate = "learning-rate" of TrainStudy,
    /// Inference times.
    Latency = "latency" of LatencyStudy,
    /// Factors of the logits of trained heads, by step.
    Decomposition = "decomposition" of PredictStudy,
    /// Needed against actual logits, one point per head.
    Prediction = "prediction" of PredictStudy,
    /// The heads of published models: which have large logits, and which of these need them.
    Published = "published" of PredictStudy,
    /// Logits that wider heads need with the same inputs.
    Ranks = "ranks" of PredictStudy,
    /// Logits of trained heads against a linear ramp of the distance.
    Ramp = "ramp" of RampStudy,
    /// Number of tokens and dimensions that heads use.
    Concentration = "concentration" of ConcentrationStudy,
    /// Needed logits by inputs and rank.
    Lattice = "lattice" of LatticeStudy,
    /// Rank penalty by head dimension.
    HeadDimension = "head-dimension" of LatticeStudy,
    /// Loss after attention is replaced in all heads.
    Surgery = "surgery" of InterventionStudy,
    /// Loss after the global heads are cut to few tokens or dimensions.
    GlobalHeads = "global-heads" of InterventionStudy,
    /// Runs that change one thing, compared with a baseline. Needs `[baseline]`.
    Interventions = "interventions" of TrainStudy,
    /// Loss and peak logits of runs, compared with a baseline. Needs `[baseline]`.
    Variants = "variants" of TrainStudy,
    /// Loss in bits per byte and peak logits, compared with a baseline. Needs `[baseline]`.
    Bits = "bits" of TrainStudy,
}

impl View {
    /// Where such a study stands in a report: targets first, then fits, then trainings.
    pub fn place(self) -> usize {
        self as usize
    }

    /// The view called `name` of a study of `kind`.
    ///
    /// # Errors
    /// In words, with the nearest name of such a view, where there is none of this name or it is of other rows.
    pub(super) fn named(name: &str, kind: Kind) -> Result<Self, String> {
        let view: Self = name.parse()?;
        if view.kind() == kind {
            return Ok(view);
        }
        let of_kind = Self::ALL.iter().filter(|view| view.kind() == kind);
        let names: Vec<&str> = of_kind.map(|view| view.name()).collect();
        Err(format!(
            "view {name:?} needs rows of kind {}, but the study's kind is {kind}; give one of {}",
            view.kind(),
            names.join(", ")
        ))
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for View {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|view| view.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|view| view.name()).collect();
            format!("unknown view {text:?}; {}", instead(text, &names))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_read_back_and_a_slip_names_the_nearest() {
        for view in View::ALL {
            assert_eq!(view.to_string().parse::<View>().unwrap(), *view);
            assert_eq!(View::named(view.name(), view.kind()).unwrap(), *view);
        }
        let error = "layout".parse::<View>().unwrap_err();
        assert!(error.contains("did you mean \"layouts\""), "{error}");
        let error = View::named("layouts", Kind::of::<TrainStudy>()).unwrap_err();
        assert!(error.contains("kind fit") && error.contains("training, arms"), "{error}");
    }
}
