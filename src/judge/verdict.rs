//! What the rows say of a claim, in one word and one sentence.

use std::fmt;

use super::claims::Claim;
use crate::table::{plural, significant};

/// The word for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The rows bear the claim out as it stands.
    Confirmed,
    /// The rows bear out a part of it, or are too few or too far apart to bear it out or to speak against it.
    Qualified,
    /// The rows speak against it, at their scale: the whole of the interval of what it tells of is too small to matter,
    /// or on the other side.
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

/// Fewer seeds than this neither confirm nor refute a claim.
pub const SEEDS_TO_DECIDE: usize = 3;

impl Word {
    /// The word after `seeds` seeds: fewer than [`SEEDS_TO_DECIDE`] qualify at most.
    fn with_seeds(self, seeds: usize) -> Self {
        match self {
            Self::Confirmed | Self::Refuted if seeds < SEEDS_TO_DECIDE => Self::Qualified,
            word => word,
        }
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
    /// The verdict after `seeds` seeds: too few of them decide nothing.
    pub(crate) fn new(claim: Claim, measured: String, word: Word, seeds: usize) -> Self {
        Self { claim, measured, word: word.with_seeds(seeds), seeds }
    }

    /// What there is to say of a claim that no study here bears on.
    pub fn not_measured(claim: Claim) -> Self {
        let why = "No study here measures it.";
        Self::new(claim, why.to_owned(), Word::NotYetMeasured, 0)
    }
}

/// The share of intervals that miss what they are of.
const MISSED: f64 = 0.05;

/// What to make of so many words at once: how many decide, and how many of those chance alone would bring.
pub fn multiplicity(words: &[Word]) -> String {
    let measured = words.iter().filter(|word| **word != Word::NotYetMeasured).count();
    let decided =
        words.iter().filter(|word| matches!(word, Word::Confirmed | Word::Refuted)).count();
    if decided == 0 {
        return "None of them decides (confirmed or refuted).".to_owned();
    }
    format!(
        "Of {} that rest on rows {decided} decide (confirmed or refuted). Each does so by 95 % intervals of its own, \
         with no correction for how many there are: where chance alone were at work, {} in {decided} would be expected to \
         decide all the same.",
        plural(measured, "verdict"),
        significant(MISSED * decided as f64, 2)
    )
}

#[cfg(test)]
mod tests {
    use super::{Word, multiplicity};

    #[test]
    fn chance_is_told_for_those_that_decide() {
        let words = [Word::Confirmed, Word::Refuted, Word::Qualified, Word::NotYetMeasured];
        let told = multiplicity(&words);
        assert!(told.starts_with("Of 3 verdicts that rest on rows 2 decide"), "{told}");
        assert!(told.contains("0.10 in 2"), "{told}");
        assert_eq!(multiplicity(&words[2..]), "None of them decides (confirmed or refuted).");
    }

    #[test]
    fn few_seeds_decide_nothing() {
        assert_eq!(Word::Confirmed.with_seeds(2), Word::Qualified);
        assert_eq!(Word::Confirmed.with_seeds(3), Word::Confirmed);
        assert_eq!(Word::Refuted.with_seeds(2), Word::Qualified);
        assert_eq!(Word::Refuted.with_seeds(3), Word::Refuted);
        assert_eq!(Word::NotYetMeasured.with_seeds(0), Word::NotYetMeasured);
    }
}
