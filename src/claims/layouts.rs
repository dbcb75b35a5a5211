//! The verdict on layouts: whether splitting heads into local and global removes the pressure.

use super::claim::{Claim, Group, Origin, Rule};
use super::phrases::times_or;
use super::scale::listed;
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Interval, LayoutCell, Layouts, plural};

pub(super) const SPLIT_HELPS: Claim = Claim {
    id: "SplitHelps",
    text: "Splitting heads into local and global removes the pressure on logits",
    group: Group::SyntheticTargets,
    origin: Origin::Paper,
    place: "abstract",
    rule: || Rule {
        confirmed: format!(
            "At every seed and logit bound the split heads have a smaller error than global heads \
            of equal parameters, and the whole interval of the mean ratio lies below 1/{ALIKE}; \
            some target is not a mixture of a local and a global part."
        ),
        refuted: format!("At every setting the whole interval lies above 1/{ALIKE}."),
    },
    ..Claim::PLAIN
};

/// Errors within this ratio of each other are alike: searches on different machines differ by up to 3 per cent
/// (docs/methods.md, Machines).
const ALIKE: f64 = 1.05;
/// How the names of targets begin that are made of a local and a global part.
const MIXTURE: &str = "mixture";
/// Errors under this, in nats, are what rounding leaves.
const NO_ERROR: f64 = 1e-12;

/// Splitting: at every cap, the error of a layout with local *and* global heads against every
/// all-global layout of the same number of parameters, seed by seed. Intervals are Student's over seeds, of the logarithm
/// of the ratio of errors.
///
/// Targets that are mixtures of a local and a global part have the form of the split, so they qualify the claim at most.
///
/// *Not measured*: no split layout has an all-global rival of equal parameters.
pub(crate) fn layouts(study: &Layouts) -> Verdict {
    let pairs: Vec<(&LayoutCell, &LayoutCell)> = study
        .cells
        .iter()
        .filter(|cell| cell.is_split())
        .flat_map(|split| rivals(study, split).map(move |rival| (split, rival)))
        .collect();
    let contests: Vec<Vec<(usize, f64)>> = pairs
        .iter()
        .map(|(split, rival)| contest(split, rival))
        .filter(|seeds| !seeds.is_empty())
        .collect();
    let Some(seeds) = contests.iter().map(Vec::len).min() else {
        let needs = "Needs a layout with local and global heads, and an all-global one with as many parameters, at \
                     one bound and seed.";
        return Verdict::lacking(SPLIT_HELPS, "no layouts of equal parameters", needs);
    };
    let fought: usize = contests.iter().map(Vec::len).sum();
    let won = contests.iter().flatten().filter(|(_, log)| *log < 0.0).count();
    let overall = overall(&contests);
    let no_less = |seeds: &Vec<(usize, f64)>| {
        Interval::of(seeds.iter().map(|s| s.1)).is_some_and(|i| i.is_at_least(-ALIKE.ln()))
    };
    let status = if won == fought && overall.is_some_and(|i| i.is_at_most(-ALIKE.ln())) {
        VerdictStatus::Confirmed
    } else if contests.iter().all(no_less) {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::Qualified
    };
    let is_of_its_form = pairs.iter().all(|(split, _)| split.target.starts_with(MIXTURE));
    let status = match status {
        VerdictStatus::Confirmed if is_of_its_form => VerdictStatus::Qualified,
        status => status,
    };
    let mean = (contests.iter().flatten().map(|(_, log)| log).sum::<f64>() / fought as f64).exp();
    let ratio = |digits| times_or(overall.map(Interval::exp), mean, digits);
    let headline = format!(
        "split has {} the KL of global heads{}, {}",
        ratio(2),
        if is_of_its_form { ", local+global targets" } else { "" },
        plural(seeds, "seed")
    );
    let lengths = listed(pairs.iter().map(|(split, _)| split.n)).unwrap_or_default();
    let targets = if is_of_its_form { "Targets of one local and one global part, " } else { "" };
    let measured = format!(
        "{targets}n = {lengths}. At equal parameters and logit bound the split has the smaller error in {won} of {fought} \
         comparisons; its KL is {} (geometric mean over {}).",
        ratio(2),
        plural(contests.len(), "setting")
    );
    Verdict::new(SPLIT_HELPS, [headline, measured], status, seeds)
}

/// The all-global layouts for the same target, cap and number of parameters.
fn rivals<'a>(study: &'a Layouts, split: &'a LayoutCell) -> impl Iterator<Item = &'a LayoutCell> {
    study.cells.iter().filter(move |cell| {
        cell.is_global()
            && cell.target == split.target
            && cell.n == split.n
            && cell.cap == split.cap
            && cell.parameters() == split.parameters()
    })
}

/// Of each seed that both have, the logarithm of the split's error over the rival's.
fn contest(split: &LayoutCell, rival: &LayoutCell) -> Vec<(usize, f64)> {
    let both = split.seeds.iter().filter_map(|ours| {
        let theirs = rival.seeds.iter().find(|theirs| theirs.seed == ours.seed)?;
        let [ours_nats, theirs_nats] = [ours, theirs].map(|seed| seed.kl_nats.max(NO_ERROR));
        Some((ours.seed, (ours_nats / theirs_nats).ln()))
    });
    both.collect()
}

/// Student's interval over seeds of each one's mean over all settings.
fn overall(contests: &[Vec<(usize, f64)>]) -> Option<Interval> {
    let of_seed = |&(seed, _): &(usize, f64)| {
        let one = |seeds: &Vec<(usize, f64)>| Some(seeds.iter().find(|s| s.0 == seed)?.1);
        let all: Option<Vec<f64>> = contests.iter().map(one).collect();
        all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
    };
    Interval::of(contests.first()?.iter().filter_map(of_seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LayoutSeed;

    fn cell(layout: &str, rank: usize, kl: f64, seeds: usize) -> LayoutCell {
        LayoutCell {
            target: "dirichlet-band".to_owned(),
            layout: layout.to_owned(),
            n: 160,
            rank,
            cap: 8.0,
            seeds: (0..seeds).map(|seed| LayoutSeed { seed, kl_nats: kl }).collect(),
            floor: None,
        }
    }

    fn judged(rival: f64, seeds: usize) -> Verdict {
        let cells = vec![
            cell("2xglobal", 8, 0.05, seeds),
            cell("global", 16, rival, seeds),
            cell("local:24+global", 8, 0.02, seeds),
        ];
        layouts(&Layouts { cells, failed: 0 })
    }

    #[test]
    fn every_word_has_its_rows() {
        assert_eq!(judged(0.03, 3).status, VerdictStatus::Confirmed);
        assert_eq!(judged(0.03, 2).status, VerdictStatus::Qualified, "two seeds are too few");
        let of_its_form = ["2xglobal", "global", "local:24+global"].map(|layout| LayoutCell {
            target: "mixture of dirichlet-band and landmark".to_owned(),
            ..cell(layout, if layout == "global" { 16 } else { 8 }, 0.03, 3)
        });
        let [mut rival, other, mut split] = of_its_form;
        rival.seeds.iter_mut().for_each(|seed| seed.kl_nats = 0.05);
        split.seeds.iter_mut().for_each(|seed| seed.kl_nats = 0.02);
        let of_its_form = layouts(&Layouts { cells: vec![rival, other, split], failed: 0 });
        assert_eq!(
            of_its_form.status,
            VerdictStatus::Qualified,
            "a target of the split's own form"
        );
        let mixed = judged(0.002, 3);
        assert_eq!(mixed.status, VerdictStatus::Qualified, "one rival is better");
        let cells = vec![cell("global", 16, 0.001, 3), cell("local:24+global", 8, 0.02, 3)];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).status, VerdictStatus::Refuted);
        let cells = vec![cell("global", 16, 0.001, 2), cell("local:24+global", 8, 0.02, 2)];
        assert_eq!(
            layouts(&Layouts { cells, failed: 0 }).status,
            VerdictStatus::Qualified,
            "two seeds"
        );
        let cells = vec![cell("global", 16, 0.0202, 3), cell("local:24+global", 8, 0.02, 3)];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).status, VerdictStatus::Refuted, "alike");
        let mut apart = cell("local:24+global", 8, 0.02, 3);
        apart.seeds[0].kl_nats = 1e-4;
        let cells = vec![cell("global", 16, 0.021, 3), apart];
        assert_eq!(
            layouts(&Layouts { cells, failed: 0 }).status,
            VerdictStatus::Qualified,
            "seeds far apart"
        );
        let cells = vec![cell("global", 8, 0.1, 3), cell("local:24+global", 8, 0.02, 3)];
        let unequal = layouts(&Layouts { cells, failed: 0 });
        assert_eq!(unequal.status, VerdictStatus::NotMeasured, "unequal parameters");
    }
}
