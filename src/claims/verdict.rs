//! A verdict: the outcome of one claim as a status, a headline and a sentence.

use std::fmt;

use super::words::joined;
use crate::claims::Claim;
use crate::claims::ruling::Ruling;
use crate::table::{plural, plural_range, significant};

/// The status of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum VerdictStatus {
    /// The rows support the claim as stated.
    Confirmed,
    /// The rows support a part of it, or are too few or too scattered to decide.
    Qualified,
    /// The rows contradict it at their scale: the whole interval of the effect is too small to matter, or has the other
    /// sign.
    Refuted,
    /// Every setting has one seed; the values of the rows do not matter.
    #[strum(to_string = "single seed")]
    SingleSeed,
    /// There are no rows, or their setting could not have shown the effect.
    #[strum(to_string = "not measured")]
    NotMeasured,
}

/// The maximum number of words of a headline.
pub const HEADLINE_WORDS: usize = 15;
/// The maximum number of words of a sentence about the measurement.
#[cfg(test)]
const MEASURED_WORDS: usize = 45;

/// The number of seeds that every setting needs before a claim is confirmed or refuted.
pub const SEEDS_TO_DECIDE: usize = 3;

impl VerdictStatus {
    /// Every status, the decisive ones first.
    pub const ALL: [Self; 5] =
        [Self::Confirmed, Self::Refuted, Self::Qualified, Self::SingleSeed, Self::NotMeasured];

    /// The rank from the most to the least certain status; confirmed and refuted share rank 0.
    pub fn certainty(self) -> usize {
        match self {
            Self::Confirmed | Self::Refuted => 0,
            Self::Qualified => 1,
            Self::SingleSeed => 2,
            Self::NotMeasured => 3,
        }
    }
}

/// The range of the numbers of seeds over the settings behind a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    fewest: usize,
    most: usize,
    noun: &'static str,
}

impl Seeds {
    /// The range over settings, from the number of seeds of each.
    pub fn of_settings(seeds: impl IntoIterator<Item = usize>) -> Self {
        let seeds: Vec<usize> = seeds.into_iter().collect();
        let fewest = seeds.iter().copied().min().unwrap_or(0);
        let most = seeds.iter().copied().max().unwrap_or(0);
        Self { fewest, most, noun: "seed" }
    }

    /// The same number of seeds in every setting.
    pub fn all(seeds: usize) -> Self {
        Self::of_settings([seeds])
    }

    /// Replaces the noun "seed", for example by "model", "round" or "pair".
    pub fn called(self, noun: &'static str) -> Self {
        Self { noun, ..self }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plural_range(self.fewest, self.most, self.noun))
    }
}

/// A claim with its measurement and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// The result in at most [`HEADLINE_WORDS`] words, without a full stop.
    pub headline: String,
    /// The result in sentences: numbers, seeds, scale, and its limits.
    pub measured: String,
    /// The status.
    pub status: VerdictStatus,
    /// The fewest seeds of any setting; 0 if nothing was measured.
    pub seeds: usize,
    /// The most seeds of any setting.
    pub most_seeds: usize,
}

impl Verdict {
    /// Makes the verdict from a ruling and its seeds. The headline ends in the seeds. Too few seeds decide nothing.
    /// `sentences` describe the measurement; empty ones are left out.
    pub(crate) fn new(
        claim: Claim,
        ruling: Ruling,
        seeds: Seeds,
        headline: impl fmt::Display,
        sentences: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let sentences = sentences.into_iter().map(Into::into).filter(|one| !one.is_empty());
        Self {
            claim,
            headline: with_minus_signs(&format!("{headline}, {seeds}")),
            measured: with_minus_signs(&(joined(sentences, ". ") + ".")),
            status: status(ruling, seeds),
            seeds: seeds.fewest,
            most_seeds: seeds.most,
        }
    }

    /// The verdict for a study that lacks the rows that the rule needs.
    pub(crate) fn lacking(claim: Claim) -> Self {
        let [headline, needs] = claim.lacking;
        Self::unmeasured(claim, headline, claim.with_bounds(needs))
    }

    /// The verdict for a claim that no study here measures.
    pub fn not_measured(claim: Claim) -> Self {
        let [headline, why] = claim.not_measured;
        Self::unmeasured(claim, headline, why.to_owned())
    }

    /// A verdict without rows: a headline, and a sentence that says what would be needed.
    pub(crate) fn unmeasured(claim: Claim, headline: &str, needs: String) -> Self {
        Self {
            claim,
            headline: headline.to_owned(),
            measured: needs,
            status: VerdictStatus::NotMeasured,
            seeds: 0,
            most_seeds: 0,
        }
    }
}

/// The status of a ruling. Fewer seeds than [`SEEDS_TO_DECIDE`] in a setting qualify at most; one seed in every setting
/// is always [`SingleSeed`](VerdictStatus::SingleSeed).
fn status(ruling: Ruling, seeds: Seeds) -> VerdictStatus {
    let ruling = ruling.undecided_if(seeds.fewest < SEEDS_TO_DECIDE);
    match ruling {
        Ruling::Hidden => VerdictStatus::NotMeasured,
        _ if seeds.most <= 1 => VerdictStatus::SingleSeed,
        Ruling::Holds => VerdictStatus::Confirmed,
        Ruling::Fails => VerdictStatus::Refuted,
        Ruling::Between => VerdictStatus::Qualified,
    }
}

/// Replaces each hyphen that begins a number by a minus sign (U+2212); `max-16` and `1e-5` keep theirs.
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

/// Says how many claims are decided, and how many chance alone would decide. `words` has one status per claim.
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
    use std::collections::HashMap;

    use super::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted, SingleSeed};
    use super::*;

    #[test]
    fn multiplicity_counts_measured_and_decided_claims() {
        let said = multiplicity(&[Confirmed, Refuted, Qualified, NotMeasured]);
        let parts = said.split(|c: char| !c.is_ascii_digit() && c != '.');
        let numbers: Vec<f64> = parts.filter_map(|part| part.parse().ok()).collect();
        assert_eq!(numbers, [4.0, 3.0, 2.0, 95.0, 0.15, 3.0], "{said}");
    }

    #[test]
    fn few_seeds_decide_nothing() {
        let of = |ruling, seeds: &[usize]| status(ruling, Seeds::of_settings(seeds.to_vec()));
        for (ruling, decided) in [(Ruling::Holds, Confirmed), (Ruling::Fails, Refuted)] {
            assert_eq!(of(ruling, &[1, 1]), SingleSeed);
            assert_eq!(of(ruling, &[1, 3]), Qualified, "some settings have more");
            assert_eq!(of(ruling, &[2]), Qualified);
            assert_eq!(of(ruling, &[3, 4]), decided);
        }
        assert_eq!(of(Ruling::Between, &[1]), SingleSeed);
        assert_eq!(of(Ruling::Between, &[3]), Qualified);
        for seeds in 0..4 {
            assert_eq!(of(Ruling::Hidden, &[seeds]), NotMeasured);
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
        for row in table.deserialize::<HashMap<String, String>>() {
            let row = row.unwrap();
            for (column, most) in [("headline", HEADLINE_WORDS), ("measured", MEASURED_WORDS)] {
                let words = row[column].split_whitespace().count();
                assert!(words <= most && words > 0, "{words} words: {}", row[column]);
            }
            assert!(!row["headline"].ends_with('.'), "{}", row["headline"]);
        }
    }
}
