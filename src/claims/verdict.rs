//! A verdict: what the rows say of one claim, as a status, a headline and a sentence.

use std::fmt;

use super::claim::Claim;
use crate::table::{plural, plural_range, significant};

/// The status of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictStatus {
    /// The rows support the claim as it stands.
    Confirmed,
    /// The rows support a part of it, or are too few or too scattered to decide.
    Qualified,
    /// The rows contradict it at their scale: the whole interval of the effect is too small to matter, or has the other
    /// sign.
    Refuted,
    /// The rows have one seed, whatever they show.
    SingleSeed,
    /// There are no rows, or the claim could not have shown itself in them.
    NotMeasured,
}

impl fmt::Display for VerdictStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Confirmed => "confirmed",
            Self::Qualified => "qualified",
            Self::Refuted => "refuted",
            Self::SingleSeed => "single seed",
            Self::NotMeasured => "not measured",
        })
    }
}

/// A headline has at most so many words.
pub const HEADLINE_WORDS: usize = 15;
/// A sentence that says what was measured has at most so many.
#[cfg(test)]
const MEASURED_WORDS: usize = 45;

/// Fewer seeds than this neither confirm nor refute a claim.
pub const SEEDS_TO_DECIDE: usize = 3;

impl VerdictStatus {
    /// Every status, those that decide first.
    pub const ALL: [Self; 5] =
        [Self::Confirmed, Self::Refuted, Self::Qualified, Self::SingleSeed, Self::NotMeasured];

    /// Its place among words from the most to the least certain; confirmed and refuted share the first place.
    pub fn certainty(self) -> usize {
        match self {
            Self::Confirmed | Self::Refuted => 0,
            Self::Qualified => 1,
            Self::SingleSeed => 2,
            Self::NotMeasured => 3,
        }
    }

    /// The status where settings have from `fewest` to `most` seeds: fewer than [`SEEDS_TO_DECIDE`] qualify at most, and
    /// one seed is always [`SingleSeed`](Self::SingleSeed).
    fn with_seeds(self, fewest: usize, most: usize) -> Self {
        match self {
            Self::NotMeasured => self,
            _ if most <= 1 => Self::SingleSeed,
            Self::Confirmed | Self::Refuted if fewest < SEEDS_TO_DECIDE => Self::Qualified,
            status => status,
        }
    }

    /// The status where the measurement can support a claim or speak against it, but not decide it.
    pub(super) fn undecided(self) -> Self {
        match self {
            Self::Confirmed | Self::Refuted => Self::Qualified,
            status => status,
        }
    }
}

/// A claim, what was measured, and the status for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// The result in at most [`HEADLINE_WORDS`] words, with no trailing dot.
    pub headline: String,
    /// What the rows show: numbers, seeds, scale, and what they cannot show.
    pub measured: String,
    /// The status.
    pub status: VerdictStatus,
    /// The fewest seeds of any setting behind it; 0 where nothing was measured.
    pub seeds: usize,
    /// The most seeds of any setting.
    pub most_seeds: usize,
}

impl Verdict {
    /// The verdict after `seeds` seeds, of a headline and a sentence: too few seeds decide nothing.
    pub(crate) fn new(
        claim: Claim,
        said: [String; 2],
        status: VerdictStatus,
        seeds: usize,
    ) -> Self {
        Self::over(claim, said, status, [seeds])
    }

    /// The verdict over settings, by the seeds of each; a headline that ends in the fewest seeds gets the most too.
    pub(crate) fn over(
        claim: Claim,
        [headline, measured]: [String; 2],
        status: VerdictStatus,
        seeds: impl IntoIterator<Item = usize>,
    ) -> Self {
        let range = seeds.into_iter().fold(None, |range: Option<(usize, usize)>, seeds| {
            let (fewest, most) = range.unwrap_or((seeds, seeds));
            Some((fewest.min(seeds), most.max(seeds)))
        });
        let (fewest, most) = range.unwrap_or((0, 0));
        let ending = ["seed", "paired seed"].into_iter().find_map(|noun| {
            Some((headline.strip_suffix(&plural(fewest, noun))?.to_owned(), noun))
        });
        let headline = match ending {
            Some((before, noun)) => before + &plural_range(fewest, most, noun),
            None => headline,
        };
        let [headline, measured] = [headline, measured].map(|said| with_minus_signs(&said));
        Self {
            claim,
            headline,
            measured,
            status: status.with_seeds(fewest, most),
            seeds: fewest,
            most_seeds: most,
        }
    }

    /// The verdict where rows are missing: `lacking` is the headline, `needs` says which rows would be needed.
    pub(crate) fn lacking(claim: Claim, lacking: &str, needs: impl Into<String>) -> Self {
        Self::new(claim, [lacking.to_owned(), needs.into()], VerdictStatus::NotMeasured, 0)
    }

    /// The verdict on a claim that no study here measures.
    pub fn not_measured(claim: Claim) -> Self {
        let [headline, why] = claim.not_measured;
        Self::lacking(claim, headline, why)
    }
}

/// The text with a minus sign (U+2212) for each hyphen that begins a number; `max-16` and `1e-5` keep theirs.
fn with_minus_signs(said: &str) -> String {
    let mut before = ' ';
    let mut out = String::with_capacity(said.len());
    for (at, letter) in said.char_indices() {
        let begins = letter == '-'
            && matches!(before, ' ' | '[' | '(')
            && said[at + 1..].starts_with(|next: char| next.is_ascii_digit());
        out.push(if begins { '−' } else { letter });
        before = letter;
    }
    out
}

/// The share of 95 % intervals that miss their true value.
const MISSED: f64 = 0.05;

/// How many claims are decided, and how many of those chance alone would decide. `words` has one status for each
/// claim.
pub fn multiplicity(words: &[VerdictStatus]) -> String {
    let measured = words.iter().filter(|status| **status != VerdictStatus::NotMeasured).count();
    let decided = words
        .iter()
        .filter(|status| matches!(status, VerdictStatus::Confirmed | VerdictStatus::Refuted))
        .count();
    if decided == 0 {
        return format!("None of {} is confirmed or refuted.", plural(words.len(), "claim"));
    }
    format!(
        "Of {}, {measured} are measured and {decided} decided (confirmed or refuted). Each uses its own 95 % intervals, \
         without correction for their number: by chance alone, {} of {measured} would be decided.",
        plural(words.len(), "claim"),
        significant(MISSED * measured as f64, 2)
    )
}

#[cfg(test)]
mod tests {
    use super::{HEADLINE_WORDS, MEASURED_WORDS, VerdictStatus, multiplicity};

    #[test]
    fn multiplicity_counts_measured_and_decided_claims() {
        let words = [
            VerdictStatus::Confirmed,
            VerdictStatus::Refuted,
            VerdictStatus::Qualified,
            VerdictStatus::NotMeasured,
        ];
        let said = multiplicity(&words);
        let numbers: Vec<&str> = said
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|n| !n.is_empty())
            .collect();
        assert_eq!(numbers[..3], ["4", "3", "2"], "{said}");
        assert!(numbers.contains(&"0.15"), "{said}");
    }

    #[test]
    fn few_seeds_decide_nothing() {
        for status in [VerdictStatus::Confirmed, VerdictStatus::Refuted] {
            assert_eq!(status.with_seeds(1, 1), VerdictStatus::SingleSeed);
            assert_eq!(
                status.with_seeds(1, 3),
                VerdictStatus::Qualified,
                "some settings have more"
            );
            assert_eq!(status.with_seeds(2, 2), VerdictStatus::Qualified);
            assert_eq!(status.with_seeds(3, 3), status);
        }
        assert_eq!(VerdictStatus::Qualified.with_seeds(1, 1), VerdictStatus::SingleSeed);
        for seeds in 0..4 {
            assert_eq!(
                VerdictStatus::NotMeasured.with_seeds(seeds, seeds),
                VerdictStatus::NotMeasured
            );
        }
    }

    #[test]
    fn committed_headlines_and_sentences_are_short() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/verdicts.csv");
        let mut table = csv::Reader::from_path(path).unwrap();
        let header = table.headers().unwrap().clone();
        let at = |name| header.iter().position(|column| column == name).unwrap();
        for row in table.records() {
            let row = row.unwrap();
            for (column, most) in [("headline", HEADLINE_WORDS), ("measured", MEASURED_WORDS)] {
                let text = &row[at(column)];
                let words = text.split_whitespace().count();
                assert!(words <= most && words > 0, "{words} words: {text}");
            }
            assert!(!row[at("headline")].ends_with('.'), "{}", &row[at("headline")]);
        }
    }
}
