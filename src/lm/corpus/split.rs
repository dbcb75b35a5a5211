//! The parts of a corpus.

/// A part of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// The part that the model learns from.
    Train,
    /// The part held out for the evaluations during training.
    Valid,
    /// The part that training never looks at.
    Test,
}

impl Split {
    /// Every split, in the order in which tokens are stored.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// The name that files use: `train`, `valid` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }
}
