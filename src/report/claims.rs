//! The claims, each with the verdicts of the studies that measured it.

use std::cmp::Reverse;

use super::section::Section;
use crate::claims::{Claim, Verdict, VerdictStatus};
use crate::experiments::claims::CLAIMS;

/// One study's verdict on a claim.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'s> {
    /// The study.
    pub section: &'s Section,
    /// Its verdict.
    pub verdict: &'s Verdict,
}

/// A claim and the studies that measured it.
#[derive(Clone, Debug)]
pub struct ClaimRow<'s> {
    /// The claim.
    pub claim: Claim,
    /// The studies in the order of certainty of their verdicts, then of seeds (most first), then of measuring time
    /// (longest first).
    pub studies: Vec<Measured<'s>>,
}

impl<'s> ClaimRow<'s> {
    /// Returns one row per claim, in the order of [`CLAIMS`].
    pub fn all(sections: impl Iterator<Item = &'s Section> + Clone) -> Vec<Self> {
        CLAIMS.iter().map(|&claim| Self::new(claim, sections.clone())).collect()
    }

    fn new(claim: Claim, sections: impl Iterator<Item = &'s Section>) -> Self {
        let mut studies = Vec::new();
        for section in sections {
            let own = section.analysis.verdicts.iter().filter(|verdict| verdict.claim == claim);
            studies.extend(own.map(|verdict| Measured { section, verdict }));
        }
        studies.sort_by(|a, b| {
            let seconds = |one: &Measured<'_>| one.section.wall_time_s.unwrap_or(0.0);
            let rank =
                |one: &Measured<'_>| (one.verdict.status.certainty(), Reverse(one.verdict.seeds));
            rank(a).cmp(&rank(b)).then(seconds(b).total_cmp(&seconds(a)))
        });
        Self { claim, studies }
    }

    /// Counts the claims per verdict, the most certain verdict first. Verdicts without claims are left out.
    pub fn counts(rows: &[Self]) -> Vec<(VerdictStatus, usize)> {
        let count = |status| rows.iter().filter(|row| row.status() == status).count();
        let all = VerdictStatus::ALL.into_iter().map(|status| (status, count(status)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The verdict on the claim: that of the first study, or *qualified* if one study confirms the claim and another
    /// refutes it.
    pub fn status(&self) -> VerdictStatus {
        let has = |status| self.studies.iter().any(|one| one.verdict.status == status);
        match self.studies.first() {
            None => VerdictStatus::NotMeasured,
            Some(_) if has(VerdictStatus::Confirmed) && has(VerdictStatus::Refuted) => {
                VerdictStatus::Qualified
            }
            Some(first) => first.verdict.status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use super::*;
    use crate::report::Analysis;

    fn section(study: &str, status: VerdictStatus, seeds: usize, seconds: f64) -> Section {
        let mut verdict = Verdict::not_measured(CLAIMS[0]);
        (verdict.status, verdict.seeds, verdict.most_seeds) = (status, seeds, seeds);
        Section {
            study: study.to_owned(),
            analysis: Analysis { verdicts: vec![verdict], ..Analysis::default() },
            wall_time_s: Some(seconds),
            ..Section::default()
        }
    }

    fn row(sections: &[Section]) -> (Vec<&str>, VerdictStatus) {
        let row = ClaimRow::new(CLAIMS[0], sections.iter());
        (row.studies.iter().map(|one| one.section.study.as_str()).collect(), row.status())
    }

    #[test]
    fn the_most_certain_and_largest_study_comes_first_and_a_contradiction_qualifies() {
        let mut sections = vec![
            section("few", Qualified, 2, 900.0),
            section("small", Confirmed, 3, 10.0),
            section("none", NotMeasured, 0, 1e6),
            section("large", Confirmed, 3, 600.0),
        ];
        assert_eq!(row(&sections), (vec!["large", "small", "few", "none"], Confirmed));
        sections.push(section("against", Refuted, 3, 1.0));
        assert_eq!(row(&sections).1, Qualified);
        assert_eq!(row(&[]), (vec![], NotMeasured));
    }
}
