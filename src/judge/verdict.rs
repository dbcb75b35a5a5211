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
    /// The rows are of one seed, whatever they say.
    SeenOnce,
    /// The rows cannot tell.
    NotYetMeasured,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "confirmed",
            Self::Qualified => "qualified",
            Self::Refuted => "refuted",
            Self::SeenOnce => "single seed",
            Self::NotYetMeasured => "not measured",
        })
    }
}

/// A headline has at most so many words.
pub const HEADLINE_WORDS: usize = 15;

/// The first clause, cut to [`HEADLINE_WORDS`] words.
fn first_words(text: &str) -> String {
    let end = [". ", "; "].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let words: Vec<&str> = text[..end].split_whitespace().take(HEADLINE_WORDS).collect();
    words.join(" ").trim_end_matches(['.', ',', ':']).to_owned()
}

/// Fewer seeds than this neither confirm nor refute a claim.
pub const SEEDS_TO_DECIDE: usize = 3;

impl Word {
    /// Every word, those that decide first.
    pub const ALL: [Self; 5] =
        [Self::Confirmed, Self::Refuted, Self::Qualified, Self::SeenOnce, Self::NotYetMeasured];

    /// Its place among words from the most to the least certain; what confirms and what refutes are alike.
    pub fn certainty(self) -> usize {
        match self {
            Self::Confirmed | Self::Refuted => 0,
            Self::Qualified => 1,
            Self::SeenOnce => 2,
            Self::NotYetMeasured => 3,
        }
    }

    /// The word where settings have from `fewest` to `most` seeds: fewer than [`SEEDS_TO_DECIDE`] qualify at most, and
    /// of one alone nothing can be told but that it was seen.
    fn with_seeds(self, fewest: usize, most: usize) -> Self {
        match self {
            Self::NotYetMeasured => self,
            _ if most <= 1 => Self::SeenOnce,
            Self::Confirmed | Self::Refuted if fewest < SEEDS_TO_DECIDE => Self::Qualified,
            word => word,
        }
    }
}

/// A claim, what was measured, and the word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// The result in at most [`HEADLINE_WORDS`] words, with no trailing dot.
    pub headline: String,
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
        Self::over(claim, measured, word, [seeds])
    }

    /// The verdict over settings with so many seeds each.
    pub(crate) fn over(
        claim: Claim,
        measured: String,
        word: Word,
        seeds: impl IntoIterator<Item = usize>,
    ) -> Self {
        let range = seeds.into_iter().fold(None, |range: Option<(usize, usize)>, seeds| {
            let (fewest, most) = range.unwrap_or((seeds, seeds));
            Some((fewest.min(seeds), most.max(seeds)))
        });
        let (fewest, most) = range.unwrap_or((0, 0));
        let headline = first_words(&measured);
        Self { claim, headline, measured, word: word.with_seeds(fewest, most), seeds: fewest }
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
         with no correction for how many there are: where chance alone were at work, {} of the {measured} would be expected to \
         decide all the same.",
        plural(measured, "verdict"),
        significant(MISSED * measured as f64, 2)
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
        assert!(told.contains("0.15 of the 3"), "{told}");
        assert_eq!(multiplicity(&words[2..]), "None of them decides (confirmed or refuted).");
    }

    #[test]
    fn few_seeds_decide_nothing() {
        for word in [Word::Confirmed, Word::Refuted] {
            assert_eq!(word.with_seeds(1, 1), Word::SeenOnce);
            assert_eq!(word.with_seeds(1, 3), Word::Qualified, "some settings have more");
            assert_eq!(word.with_seeds(2, 2), Word::Qualified);
            assert_eq!(word.with_seeds(3, 3), word);
        }
        assert_eq!(Word::Qualified.with_seeds(1, 1), Word::SeenOnce);
        for seeds in 0..4 {
            assert_eq!(Word::NotYetMeasured.with_seeds(seeds, seeds), Word::NotYetMeasured);
        }
    }
}
