//! What the rows say of a claim, in one word and one sentence.

use std::fmt;

use super::claims::Claim;

/// The word for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The rows bear the claim out as it stands.
    Confirmed,
    /// The rows bear out a part of it, or too few of them bear it out.
    Qualified,
    /// The rows speak against it.
    Refuted,
    /// The rows cannot tell.
    NotYetMeasured,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "confirmed",
            Self::Qualified => "qualified",
            Self::Refuted => "refuted",
            Self::NotYetMeasured => "not yet measured",
        })
    }
}

/// Fewer seeds than this never confirm a claim.
pub const SEEDS_TO_CONFIRM: usize = 3;

impl Word {
    /// The word after `seeds` seeds: a confirmation by fewer than [`SEEDS_TO_CONFIRM`] is qualified.
    fn with_seeds(self, seeds: usize) -> Self {
        if self == Self::Confirmed && seeds < SEEDS_TO_CONFIRM { Self::Qualified } else { self }
    }
}

/// A claim, what was measured, and the word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// What the rows show: the numbers, over how many seeds, and what they do not show.
    pub measured: String,
    /// The word.
    pub word: Word,
    /// The fewest seeds behind it; 0 where nothing was measured.
    pub seeds: usize,
}

impl Verdict {
    /// The verdict after `seeds` seeds: too few of them never confirm.
    pub(crate) fn new(claim: Claim, measured: String, word: Word, seeds: usize) -> Self {
        Self { claim, measured, word: word.with_seeds(seeds), seeds }
    }

    /// What there is to say of a claim that no study here bears on.
    pub fn not_measured(claim: Claim) -> Self {
        let why = "No study here measures it.";
        Self::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn few_seeds_never_confirm() {
        assert_eq!(Word::Confirmed.with_seeds(2), Word::Qualified);
        assert_eq!(Word::Confirmed.with_seeds(3), Word::Confirmed);
        assert_eq!(Word::Refuted.with_seeds(1), Word::Refuted);
    }
}
