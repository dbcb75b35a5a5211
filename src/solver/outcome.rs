//! Outcomes of fits.

/// How a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A stationary point within tolerance.
    Converged,
    /// The iterations ran out first; the best point is kept.
    StepLimit,
    /// It was ended from outside before either; the point it was at is kept.
    Stopped,
    /// The objective became NaN or infinite; the last finite point is kept.
    Diverged,
    /// No factors can do it: the heads do not see all of the target, or no cap tried reached the
    /// tolerance.
    Infeasible,
}

impl Outcome {
    /// As it is written in a row.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::StepLimit => "step-limit",
            Self::Stopped => "stopped",
            Self::Diverged => "diverged",
            Self::Infeasible => "infeasible",
        }
    }

    /// The outcome that `name` writes so.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Converged, Self::StepLimit, Self::Stopped, Self::Diverged, Self::Infeasible]
            .into_iter()
            .find(|outcome| outcome.name() == name)
    }
}
