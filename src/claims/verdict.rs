//! A verdict: what the rows say of one claim, as a status, a headline and a sentence.

use std::fmt;

use super::words::joined;
use crate::claims::Claim;
use crate::claims::Reason;
use crate::claims::ruling::Ruling;
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
}

/// The seeds of the settings behind a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    fewest: usize,
    most: usize,
    noun: &'static str,
}

impl Seeds {
    /// The seeds of each setting.
    pub fn of_settings(seeds: impl IntoIterator<Item = usize>) -> Self {
        let range = seeds.into_iter().fold(None, |range: Option<(usize, usize)>, seeds| {
            let (fewest, most) = range.unwrap_or((seeds, seeds));
            Some((fewest.min(seeds), most.max(seeds)))
        });
        let (fewest, most) = range.unwrap_or((0, 0));
        Self { fewest, most, noun: "seed" }
    }

    /// One number of seeds.
    pub fn all(seeds: usize) -> Self {
        Self::of_settings([seeds])
    }

    /// What stands for a seed: models, rounds, pairs.
    pub fn called(self, noun: &'static str) -> Self {
        Self { noun, ..self }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plural_range(self.fewest, self.most, self.noun))
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
    /// Why it is qualified, where it is.
    pub reason: Option<Reason>,
    /// The fewest seeds of any setting behind it; 0 where nothing was measured.
    pub seeds: usize,
    /// The most seeds of any setting.
    pub most_seeds: usize,
}

impl Verdict {
    /// The verdict by a ruling over seeds, with a headline that ends in the seeds, and sentences of what was measured.
    /// Too few seeds decide nothing; an empty sentence is left out.
    pub(crate) fn new(
        claim: Claim,
        ruling: Ruling,
        seeds: Seeds,
        headline: impl fmt::Display,
        sentences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let (status, reason) = status(ruling, seeds);
        let sentences = sentences.into_iter().map(Into::into).filter(|one| !one.is_empty());
        Self {
            claim,
            headline: with_minus_signs(&format!("{headline}, {seeds}")),
            measured: with_minus_signs(&(joined(sentences, ". ") + ".")),
            status,
            reason,
            seeds: seeds.fewest,
            most_seeds: seeds.most,
        }
    }

    /// The verdict where rows are missing that the claim's rule needs.
    pub(crate) fn lacking(claim: Claim) -> Self {
        let [headline, needs] = claim.lacking;
        Self::unmeasured(claim, headline, claim.with_bounds(needs))
    }

    /// The verdict on a claim that no study here measures.
    pub fn not_measured(claim: Claim) -> Self {
        let [headline, why] = claim.not_measured;
        Self::unmeasured(claim, headline, why.to_owned())
    }

    /// The verdict without rows: a headline, and a sentence that says what would be needed.
    pub(crate) fn unmeasured(claim: Claim, headline: &str, needs: String) -> Self {
        Self {
            claim,
            headline: headline.to_owned(),
            measured: needs,
            status: VerdictStatus::NotMeasured,
            reason: None,
            seeds: 0,
            most_seeds: 0,
        }
    }
}

/// The status of a ruling, and why it is qualified: fewer seeds than [`SEEDS_TO_DECIDE`] in a setting qualify at most, and
/// one seed in every setting is always [`SingleSeed`](VerdictStatus::SingleSeed).
fn status(ruling: Ruling, seeds: Seeds) -> (VerdictStatus, Option<Reason>) {
    let ruling = ruling.undecided_if(seeds.fewest < SEEDS_TO_DECIDE);
    match ruling {
        Ruling::Hidden => (VerdictStatus::NotMeasured, None),
        _ if seeds.most <= 1 => (VerdictStatus::SingleSeed, None),
        Ruling::Holds => (VerdictStatus::Confirmed, None),
        Ruling::Fails => (VerdictStatus::Refuted, None),
        Ruling::Between(reason) => (VerdictStatus::Qualified, Some(reason)),
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
    use super::*;

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
        let of = |ruling, seeds: &[usize]| status(ruling, Seeds::of_settings(seeds.to_vec()));
        let undecided = (VerdictStatus::Qualified, Some(Reason::Undecided));
        for (ruling, decided) in
            [(Ruling::Holds, VerdictStatus::Confirmed), (Ruling::Fails, VerdictStatus::Refuted)]
        {
            assert_eq!(of(ruling, &[1, 1]), (VerdictStatus::SingleSeed, None));
            assert_eq!(of(ruling, &[1, 3]), undecided, "some settings have more");
            assert_eq!(of(ruling, &[2]), undecided);
            assert_eq!(of(ruling, &[3, 4]), (decided, None));
        }
        for reason in [Reason::PartHolds, Reason::Undecided] {
            let between = Ruling::Between(reason);
            assert_eq!(of(between, &[1]), (VerdictStatus::SingleSeed, None));
            assert_eq!(of(between, &[3]), (VerdictStatus::Qualified, Some(reason)));
        }
        for seeds in 0..4 {
            assert_eq!(of(Ruling::Hidden, &[seeds]), (VerdictStatus::NotMeasured, None));
        }
    }

    #[test]
    fn a_verdict_ends_its_headline_in_seeds_and_its_sentences_in_dots() {
        let seeds = Seeds::of_settings([1, 3]).called("pair");
        let sentences = ["a [-1, 2]", "", "max-16"];
        let verdict = Verdict::new(Claim::PLAIN, Ruling::Holds, seeds, "ratio -0.5", sentences);
        assert_eq!(verdict.headline, "ratio −0.5, 1–3 pairs");
        assert_eq!(verdict.measured, "a [−1, 2]. max-16.");
        assert_eq!((verdict.seeds, verdict.most_seeds), (1, 3));
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
