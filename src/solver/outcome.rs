//! Outcomes of fits.

/// The outcome of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The fit reached a stationary point within tolerance.
    Converged,
    /// The iterations ran out first; the best point is kept.
    StepLimit,
    /// The fit was stopped from outside before either; its current point is kept.
    Stopped,
    /// The objective became NaN or infinite; the last finite point is kept.
    Diverged,
    /// No factors are possible: the heads cannot attend to all of the target, or no tried logit bound reached the tolerance.
    Infeasible,
}

impl Outcome {
    /// The name in table rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::StepLimit => "step-limit",
            Self::Stopped => "stopped",
            Self::Diverged => "diverged",
            Self::Infeasible => "infeasible",
        }
    }

    /// The outcome with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Converged, Self::StepLimit, Self::Stopped, Self::Diverged, Self::Infeasible]
            .into_iter()
            .find(|outcome| outcome.name() == name)
    }
}
