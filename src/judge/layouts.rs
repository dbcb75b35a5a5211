//! The verdict on layouts: whether splitting heads into local and global removes the pressure.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{LayoutCell, Layouts, plural, significant};

/// Splitting: at every cap, the error of a layout with local *and* global heads against every
/// all-global layout of the same number of parameters, seed by seed.
///
/// - *confirmed*: in every seed, at every cap, against every rival the split has the smaller error,
///   three seeds or more;
/// - *refuted*: in every such comparison it has not;
/// - *qualified*: it wins some and loses some, or seeds are few;
/// - *not yet measured*: no split layout has an all-global rival of equal parameters.
pub(crate) fn layouts(study: &Layouts) -> Verdict {
    let pairs: Vec<(&LayoutCell, &LayoutCell)> = study
        .cells
        .iter()
        .filter(|cell| cell.is_split())
        .flat_map(|split| rivals(study, split).map(move |rival| (split, rival)))
        .collect();
    let (mut won, mut fought, mut seeds) = (0, 0, usize::MAX);
    for (split, rival) in &pairs {
        let (wins, both) = contest(split, rival);
        won += wins;
        fought += both;
        seeds = seeds.min(both);
    }
    if fought == 0 {
        let why = "No layout with local and global heads has an all-global rival of the same number \
                   of parameters, cap and seed.";
        return Verdict::new(Claim::SplitHelps, why.to_owned(), Word::NotYetMeasured, 0);
    }
    let word = match won {
        0 => Word::Refuted,
        _ if won == fought => Word::Confirmed,
        _ => Word::Qualified,
    };
    let measured = format!(
        "{} At equal parameters the split has the smaller error in {won} of {fought} comparisons \
         (target × cap × rival × seed, {} each).",
        sentences(&pairs),
        plural(seeds, "seed")
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

/// In how many of the seeds that both have the split's error is smaller, and how many both have.
fn contest(split: &LayoutCell, rival: &LayoutCell) -> (usize, usize) {
    let both = split.seeds.iter().filter_map(|ours| {
        let theirs = rival.seeds.iter().find(|theirs| theirs.seed == ours.seed)?;
        Some(ours.kl_nats < theirs.kl_nats)
    });
    both.fold((0, 0), |(won, all), win| (won + usize::from(win), all + 1))
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
        let cells = vec![cell("global", 8, 0.1, 3), cell("local:24+global", 8, 0.02, 3)];
        let unequal = layouts(&Layouts { cells, failed: 0 });
        assert_eq!(unequal.word, Word::NotYetMeasured, "unequal parameters");
    }
}
