//! The verdict on layouts: whether splitting heads into local and global removes the pressure.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Interval, LayoutCell, Layouts, plural, significant};

/// Errors within this ratio of each other are alike: searches on different machines differ by up to 3 per cent
/// (analysis/METHODS.md, Machines).
pub(super) const ALIKE: f64 = 1.05;
/// Errors under this, in nats, are what rounding leaves.
const NO_ERROR: f64 = 1e-12;

/// Splitting: at every cap, the error of a layout with local *and* global heads against every
/// all-global layout of the same number of parameters, seed by seed. Intervals are Student's over seeds, of the logarithm
/// of the ratio of errors.
///
/// *Not yet measured*: no split layout has an all-global rival of equal parameters.
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
        let why = "No layout with local and global heads has an all-global rival of the same number \
                   of parameters, cap and seed.";
        return Verdict::new(Claim::SplitHelps, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let fought: usize = contests.iter().map(Vec::len).sum();
    let won = contests.iter().flatten().filter(|(_, log)| *log < 0.0).count();
    let overall = overall(&contests);
    let no_less = |seeds: &Vec<(usize, f64)>| {
        Interval::of(seeds.iter().map(|s| s.1)).is_some_and(|i| i.is_at_least(-ALIKE.ln()))
    };
    let word = if won == fought && overall.is_some_and(|i| i.is_at_most(-ALIKE.ln())) {
        Word::Confirmed
    } else if contests.iter().all(no_less) {
        Word::Refuted
    } else {
        Word::Qualified
    };
    let overall = overall.map_or_else(String::new, |overall| {
        format!(
            " Its error is {} times the rival's, 95 %, the geometric mean over all.",
            overall.exp().shown(2)
        )
    });
    let mut lengths: Vec<usize> = pairs.iter().map(|(split, _)| split.n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    let measured = format!(
        "{} At equal parameters the split has the smaller error in {won} of {fought} comparisons \
         (target × cap × rival × seed, {} each, {} settings but for the seed; n = {}).{overall}",
        sentences(&pairs),
        plural(seeds, "seed"),
        contests.len(),
        lengths.join(", ")
    );
    Verdict::new(Claim::SplitHelps, measured, word, seeds)
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

/// One sentence for the least and one for the greatest cap; of several targets, for the middle one.
fn sentences(pairs: &[(&LayoutCell, &LayoutCell)]) -> String {
    let mut targets: Vec<&str> = pairs.iter().map(|(split, _)| split.target.as_str()).collect();
    targets.dedup();
    let target = targets[targets.len() / 2];
    let named = if targets.len() > 1 { format!("{target}: ") } else { String::new() };
    let pairs: Vec<_> = pairs.iter().filter(|(split, _)| split.target == target).collect();
    let caps = pairs.iter().map(|(split, _)| split.cap);
    let (least, greatest) =
        (caps.clone().fold(f64::INFINITY, f64::min), caps.fold(f64::NEG_INFINITY, f64::max));
    let mut ends = vec![least];
    if greatest > least {
        ends.push(greatest);
    }
    let sentence = |cap: f64| {
        let mut cells: Vec<&LayoutCell> = Vec::new();
        for (split, rival) in pairs.iter().filter(|(split, _)| split.cap == cap) {
            for cell in [*split, *rival] {
                if !cells.iter().any(|known| std::ptr::eq(*known, cell)) {
                    cells.push(cell);
                }
            }
        }
        let each = cells.iter().filter_map(|cell| {
            Some(format!("{} ({})", significant(cell.kl_nats()?.median, 2), cell.label()))
        });
        format!("At cap {cap} the median KL in nats is {}.", each.collect::<Vec<_>>().join(", "))
    };
    let sentences: Vec<String> = ends.into_iter().map(sentence).collect();
    named + &sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LayoutSeed;

    fn cell(layout: &str, rank: usize, kl: f64, seeds: usize) -> LayoutCell {
        LayoutCell {
            target: "mixture".to_owned(),
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
        assert_eq!(judged(0.03, 3).word, Word::Confirmed);
        assert_eq!(judged(0.03, 2).word, Word::Qualified, "two seeds are too few");
        let mixed = judged(0.002, 3);
        assert_eq!(mixed.word, Word::Qualified, "one rival is better");
        assert!(mixed.measured.contains("3 of 6 comparisons"), "{}", mixed.measured);
        let cells = vec![cell("global", 16, 0.001, 3), cell("local:24+global", 8, 0.02, 3)];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).word, Word::Refuted);
        let cells = vec![cell("global", 16, 0.001, 2), cell("local:24+global", 8, 0.02, 2)];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).word, Word::Qualified, "two seeds");
        let cells = vec![cell("global", 16, 0.0202, 3), cell("local:24+global", 8, 0.02, 3)];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).word, Word::Refuted, "alike");
        let mut apart = cell("local:24+global", 8, 0.02, 3);
        apart.seeds[0].kl_nats = 1e-4;
        let cells = vec![cell("global", 16, 0.021, 3), apart];
        assert_eq!(layouts(&Layouts { cells, failed: 0 }).word, Word::Qualified, "seeds far apart");
        let cells = vec![cell("global", 8, 0.1, 3), cell("local:24+global", 8, 0.02, 3)];
        let unequal = layouts(&Layouts { cells, failed: 0 });
        assert_eq!(unequal.word, Word::NotYetMeasured, "unequal parameters");
    }
}
