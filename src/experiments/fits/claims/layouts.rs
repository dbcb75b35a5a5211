//! The verdict on layouts: whether splitting heads into local and global ones removes the pressure on logits.

use crate::claims::ruling::Ruling;
use crate::claims::words::listed;
use crate::claims::{Claim, Verdict};
use crate::experiments::fits::tables::layouts::{LayoutCell, Layouts};
use crate::experiments::training::claims::pairs::{Pairs, PairsOfSetting, log_ratio};
use crate::table::{Estimate, plural};

/// Errors with a ratio up to this count as equal: searches on different machines differ by up to 3 per cent
/// (docs/methods.md, Machines).
const ALIKE: f64 = 1.05;
/// The prefix of names of targets that have a local and a global part.
const MIXTURE: &str = "mixture";
/// Errors below this, in nats, are rounding errors.
const NO_ERROR: f64 = 1e-12;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[SPLIT_HELPS];

pub(crate) const SPLIT_HELPS: Claim = Claim {
    id: "SplitHelps",
    text: "Splitting heads into local and global removes the pressure on logits",
    place: "abstract",
    rule: [
        "At every seed and logit bound the split heads have a smaller error than global heads of \
            equal parameters, and the whole interval of the mean ratio lies below 1/{0}; some target \
            is not a mixture of a local and a global part.",
        "At every setting the whole interval lies above 1/{0}.",
    ],
    bounds: &[ALIKE],
    lacking: [
        "no layouts of equal parameters",
        "Needs a layout with local and global heads, and an all-global one with as many parameters, \
            at one bound and seed.",
    ],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Layouts) -> Vec<Verdict> {
    vec![layouts(study)]
}

/// Compares the error of layouts with local *and* global heads with every all-global layout of the same number of
/// parameters. It does so at every logit bound, seed by seed. Intervals are Student's over seeds, of the logarithm of
/// the ratio of errors.
///
/// Targets that are mixtures of a local and a global part match the split by construction, so they qualify the claim at most.
///
/// *Not measured*: no split layout has an all-global rival of equal parameters.
fn layouts(study: &Layouts) -> Verdict {
    let splits = study.cells.iter().filter(|cell| cell.is_split());
    let compared: Vec<(&LayoutCell, PairsOfSetting)> = splits
        .flat_map(|split| rivals(study, split).map(move |rival| (split, contest(split, rival))))
        .filter(|(_, pairs)| !pairs.seeds.is_empty())
        .collect();
    let is_of_its_form = compared.iter().all(|(split, _)| split.target.starts_with(MIXTURE));
    let lengths = listed(compared.iter().map(|(split, _)| split.n));
    let pairs = Pairs { settings: compared.into_iter().map(|(_, pairs)| pairs).collect() };
    let (all, won) = (pairs.len(), pairs.count(|ours, theirs| ours < theirs));
    let mean = pairs.all().map(|(ours, theirs)| log_ratio(ours, theirs)).sum::<f64>() / all as f64;
    let Some(mean) = Estimate::mean([mean]).filter(|_| all > 0) else {
        return Verdict::lacking(SPLIT_HELPS);
    };
    let is_smaller = |ratio: Estimate| ratio.at_most(-ALIKE.ln());
    let overall = pairs.overall(log_ratio).unwrap_or(mean);
    let ruling = match (pairs.every(log_ratio, is_smaller), is_smaller(overall)) {
        (Ruling::Fails, _) => Ruling::Fails,
        (_, Ruling::Holds) => Ruling::Holds.undecided_if(won < all || is_of_its_form),
        _ => Ruling::Between,
    };
    let ratio = overall.exp().times(2);
    let headline = format!(
        "split has {ratio} the KL of global heads{}",
        if is_of_its_form { ", local+global targets" } else { "" }
    );
    let targets = if is_of_its_form { "Targets of one local and one global part, " } else { "" };
    let sentences = [
        format!("{targets}n = {lengths}"),
        format!(
            "At equal parameters and logit bound the split has the smaller error in {won} of {all} comparisons; its KL is \
             {ratio} (geometric mean over {})",
            plural(pairs.settings.len(), "setting")
        ),
    ];
    Verdict::new(SPLIT_HELPS, ruling, pairs.seeds(), headline, sentences)
}

/// The all-global layouts for the same target, logit bound and number of parameters.
fn rivals<'a>(study: &'a Layouts, split: &'a LayoutCell) -> impl Iterator<Item = &'a LayoutCell> {
    study.cells.iter().filter(move |cell| {
        cell.is_global()
            && cell.target == split.target
            && cell.n == split.n
            && cell.cap == split.cap
            && cell.parameters() == split.parameters()
    })
}

/// The errors of the split layout and of its rival, for each seed that both have.
fn contest(split: &LayoutCell, rival: &LayoutCell) -> PairsOfSetting {
    let both = split.seeds.iter().filter_map(|ours| {
        let theirs = rival.seeds.iter().find(|theirs| theirs.seed == ours.seed)?;
        Some((ours.seed, ours.kl_nats.max(NO_ERROR), theirs.kl_nats.max(NO_ERROR)))
    });
    PairsOfSetting {
        ours: split.layout.to_string(),
        theirs: rival.layout.to_string(),
        context: split.n,
        seeds: both.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{self, Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::fits::tables::layouts::LayoutSeed;

    const SPLIT: &str = "local:24+global";

    fn cell(layout: &str, rank: usize, kl: f64, seeds: u64) -> LayoutCell {
        LayoutCell {
            target: "dirichlet-band".to_owned(),
            layout: layout.parse().unwrap(),
            n: 160,
            rank,
            cap: 8.0,
            seeds: (0..seeds).map(|seed| LayoutSeed { seed, kl_nats: kl }).collect(),
            floor: None,
        }
    }

    fn judged(cells: impl Into<Vec<LayoutCell>>) -> VerdictStatus {
        layouts(&Layouts { cells: cells.into(), failed: 0 }).status
    }

    #[test]
    fn a_split_beside_two_rivals_has_every_status() {
        let cells = |rival, seeds| {
            [
                cell("2xglobal", 8, 0.05, seeds),
                cell("global", 16, rival, seeds),
                cell(SPLIT, 8, 0.02, seeds),
            ]
        };
        assert_eq!(judged(cells(0.03, 3)), Confirmed);
        assert_eq!(judged(cells(0.03, 2)), Qualified, "two seeds are too few");
        assert_eq!(judged(cells(0.002, 3)), Qualified, "one rival is better");
        let target = "mixture of dirichlet-band and landmark".to_owned();
        let of_its_form = cells(0.03, 3).map(|cell| LayoutCell { target: target.clone(), ..cell });
        assert_eq!(judged(of_its_form), Qualified, "a target of the split's own form");
    }

    #[test]
    fn a_split_beside_one_rival_has_every_status() {
        let beside =
            |rank, rival| judged([cell("global", rank, rival, 3), cell(SPLIT, 8, 0.02, 3)]);
        assert_eq!(beside(16, 0.001), Refuted);
        assert_eq!(beside(16, 0.0202), Refuted, "alike");
        assert_eq!(beside(8, 0.1), NotMeasured, "unequal parameters");
        let mut apart = cell(SPLIT, 8, 0.02, 3);
        apart.seeds[0].kl_nats = 1e-4;
        assert_eq!(judged([cell("global", 16, 0.021, 3), apart]), Qualified, "seeds far apart");
    }
}
