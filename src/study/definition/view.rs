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
    ($($(#[$doc:meta])* $view:ident = $name:literal of $kind:ident,)*) => {
        /// The tables, figures and verdicts that a study's rows are made into: its definition's key `view`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum View {
            $($(#[$doc])* $view,)*
        }

        impl View {
            /// Every view, in the order of a report.
            pub const ALL: &[Self] = &[$(Self::$view),*];

            /// The name in a definition.
            pub fn name(self) -> &'static str {
                match self { $(Self::$view => $name),* }
            }

            /// What the studies measure whose rows it is made of.
            pub fn kind(self) -> Kind {
                match self { $(Self::$view => Kind::of::<$kind>()),* }
            }
        }
    };
}

views! {
    /// Singular values and effective ranks.
    Spectra = "spectra" of SpectrumStudy,
    /// Error against cap, family by family: fits with caps.
    Frontiers = "frontiers" of FitStudy,
    /// L*(ε) against n/d: fits with a tolerance.
    LogitGrowth = "logit-growth" of FitStudy,
    /// Inflation over w/d and n/d: fits with a tolerance.
    Phase = "phase" of FitStudy,
    /// Inflation of a target and of its controls: fits with a tolerance.
    Controls = "controls" of FitStudy,
    /// Error against cap: fits with caps, in several layouts.
    Layouts = "layouts" of FitStudy,
    /// Error against the local head's window: fits with caps.
    WindowRule = "window-rule" of FitStudy,
    /// Loss and logits against step: trainings.
    Training = "training" of TrainStudy,
    /// Every arm side by side: trainings.
    Arms = "arms" of TrainStudy,
    /// Perplexity against window and number of global heads: trainings.
    Ablation = "ablation" of TrainStudy,
    /// Loss against the share of recall: trainings.
    Dial = "dial" of TrainStudy,
    /// Loss and peak logits against the learning rate: trainings.
    LearningRate = "learning-rate" of TrainStudy,
    /// Times of inference.
    Latency = "latency" of LatencyStudy,
    /// What the logits of trained heads are made of, against step.
    Decomposition = "decomposition" of PredictStudy,
    /// Needed against actual logits, head by head.
    Prediction = "prediction" of PredictStudy,
    /// Heads of models from elsewhere: those of large logits, and what they needed.
    Published = "published" of PredictStudy,
    /// What wider heads would have needed with the same inputs.
    Ranks = "ranks" of PredictStudy,
    /// Logits against what a ramp of their lag costs: trained heads.
    Ramp = "ramp" of RampStudy,
    /// On how few tokens and in how few dimensions heads attend.
    Concentration = "concentration" of ConcentrationStudy,
    /// What heads need by the inputs and the rank that are allowed.
    Lattice = "lattice" of LatticeStudy,
    /// What the rank of queries and keys costs heads, by their dimension.
    HeadDimension = "head-dimension" of LatticeStudy,
    /// What models lose where their heads attend otherwise.
    Surgery = "surgery" of InterventionStudy,
    /// What models lose where their global heads are cut to few tokens, or to few dimensions.
    GlobalHeads = "global-heads" of InterventionStudy,
    /// Runs that differ from a baseline in one thing each: trainings.
    Interventions = "interventions" of TrainStudy,
    /// Loss and peak logits of runs that differ in positions, lengths or widths: trainings.
    Variants = "variants" of TrainStudy,
    /// Loss in bits and peak logits beside a baseline: trainings.
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
