//! The verdict on locality: a dense local target against its controls.

use super::claims::Claim;
use super::verdict::{Verdict, Word};
use crate::table::{Growth, GrowthCell, plural};

/// Is it locality? At every (n, d) where both are measured, the logits that a local band needs against those of
/// random columns of the same number, which are not local; inflations, medians over seeds, what reached ε at
/// no logit counting as more than anything.
///
/// - *confirmed*: the band's inflation is the larger in every cell, three seeds or more;
/// - *refuted*: it is the larger in none;
/// - *qualified*: in some, or seeds are few;
/// - *not yet measured*: no `dirichlet-band` and `random-sparse` of one width, without other change.
///
/// Cells in which both are free (up to 1.05) tell nothing and are left out.
pub(crate) fn controls(study: &Growth) -> Verdict {
    let band =
        |cell: &&GrowthCell| cell.family == "dirichlet-band" && !cell.label.contains("no mask");
    let (mut larger, mut fought, mut seeds) = (0, 0, usize::MAX);
    let mut worst: Option<(&GrowthCell, &GrowthCell)> = None;
    for local in study.cells.iter().filter(band) {
        let rival = study.cells.iter().find(|cell| {
            cell.family == "random-sparse"
                && (cell.support, cell.n, cell.rank) == (local.support, local.n, local.rank)
        });
        let Some(rival) = rival else { continue };
        let (ours, theirs) = (inflation(local), inflation(rival));
        if (ours <= FREE && theirs <= FREE) || (ours.is_infinite() && theirs.is_infinite()) {
            continue;
        }
        fought += 1;
        larger += usize::from(ours > theirs);
        seeds = seeds.min(local.seeds.len()).min(rival.seeds.len());
        if worst.is_none_or(|(_, last)| inflation(last) < theirs) {
            worst = Some((local, rival));
        }
    }
    let Some((local, rival)) = worst else {
        let why = "Needs dirichlet-band and random-sparse of one width, at one length and rank.";
        return Verdict::new(Claim::LocalityIsHard, why.to_owned(), Word::NotYetMeasured, 0);
    };
    let word = match larger {
        0 => Word::Refuted,
        all if all == fought => Word::Confirmed,
        _ => Word::Qualified,
    };
    let measured = format!(
        "{} needs more logits than {} in {larger} of {fought} cells (n, d) where low rank costs either anything. \
         At n = {}, d = {}: inflation {} against {}{}. {} a cell.",
        local.label,
        rival.label,
        local.n,
        local.rank,
        shown(local),
        shown(rival),
        permuted(study, local),
        plural(seeds, "seed")
    );
    Verdict::new(Claim::LocalityIsHard, measured, word, seeds)
}

const FREE: f64 = 1.05;

/// The median inflation; infinite where most seeds reached ε at no logit.
fn inflation(cell: &GrowthCell) -> f64 {
    match cell.inflation() {
        Some(spread) if cell.is_mostly_reached() => spread.median,
        _ => f64::INFINITY,
    }
}

fn shown(cell: &GrowthCell) -> String {
    match inflation(cell) {
        value if value.is_finite() => format!("{value:.2}"),
        _ => "beyond any logit".to_owned(),
    }
}

/// The same band without a mask, as it is and shuffled, where both are measured.
fn permuted(study: &Growth, like: &GrowthCell) -> String {
    let at = |family: &str| {
        study.cells.iter().find(|cell| {
            cell.family == family
                && cell.label.contains("no mask")
                && (cell.support, cell.n, cell.rank) == (like.support, like.n, like.rank)
        })
    };
    match (at("dirichlet-band"), at("permuted")) {
        (Some(band), Some(shuffled)) => format!(
            "; without a mask {}, and {} with rows and columns shuffled",
            shown(band),
            shown(shuffled)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::GrowthSeed;

    fn cell(family: &str, n: usize, inflation: Option<f64>, seeds: usize) -> GrowthCell {
        let seed = |seed| GrowthSeed { seed, needed: inflation, floor: Some(1.0), inflation };
        GrowthCell {
            family: family.to_owned(),
            label: family.to_owned(),
            support: Some(32),
            tolerance: 0.1,
            n,
            rank: 8,
            seeds: (0..seeds).map(seed).collect(),
            step_limited: 0,
        }
    }

    #[test]
    fn every_word_has_its_cells() {
        let word = |band: [Option<f64>; 2], sparse: [Option<f64>; 2], seeds| {
            let cells = [64, 128].into_iter().enumerate().flat_map(|(at, n)| {
                [
                    cell("dirichlet-band", n, band[at], seeds),
                    cell("random-sparse", n, sparse[at], seeds),
                ]
            });
            controls(&Growth {
                cells: cells.collect(),
                slopes: Vec::new(),
                models: Vec::new(),
                failed: 0,
            })
            .word
        };
        assert_eq!(word([Some(3.0), None], [Some(2.0), Some(9.0)], 3), Word::Confirmed);
        assert_eq!(word([Some(3.0), None], [Some(2.0), Some(9.0)], 2), Word::Qualified);
        assert_eq!(word([Some(2.0), Some(3.0)], [Some(3.0), None], 3), Word::Refuted);
        assert_eq!(word([Some(2.0), Some(3.0)], [Some(1.0), None], 3), Word::Qualified);
        assert_eq!(word([Some(1.0); 2], [Some(1.02); 2], 3), Word::NotYetMeasured, "both free");
    }
}
