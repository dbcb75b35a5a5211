//! The verdict on locality: a dense local target against its controls.

use super::claim::{Claim, Group, Origin, Rule};
use super::scale::of_cells;
use super::verdict::{Verdict, VerdictStatus};
use crate::fit::LARGEST_CAP;
use crate::table::{Growth, GrowthCell, GrowthSeed, Interval, plural};

pub(super) const LOCALITY_IS_HARD: Claim = Claim {
    id: "LocalityIsHard",
    text: "Low rank is a problem for short-range attention in particular",
    group: Group::SyntheticTargets,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: || Rule {
        confirmed: format!(
            "In every configuration (n, d) where low rank costs anything, a local band needs more \
            than {ALIKE} times the logits of as many random columns, by the whole interval."
        ),
        refuted: "In no such configuration does it need more.".to_owned(),
    },
    ..Claim::PLAIN
};

/// Is it locality? At every (n, d) where both are measured, the logits that a local band needs against those of
/// random columns of the same number, which are not local: the ratio of their inflations seed by seed, what reached ε at
/// no logit counting as more than anything. Where all seeds reached ε, the 95 % interval of the ratio has to say it
/// (Student's over seeds, of the logarithm), elsewhere every seed.
///
/// *Not yet measured*: no `dirichlet-band` and `random-sparse` of one width, without other change.
///
/// Cells in which both are free (up to [`ALIKE`]) tell nothing and are left out.
pub(crate) fn controls(study: &Growth) -> Verdict {
    let band =
        |cell: &&GrowthCell| cell.family == "dirichlet-band" && !cell.label.contains("no mask");
    let (mut larger, mut not_larger, mut unreached, mut seeds) = (0, 0, 0, usize::MAX);
    let mut fought: Vec<&GrowthCell> = Vec::new();
    let mut worst: Option<(&GrowthCell, &GrowthCell)> = None;
    for local in study.cells.iter().filter(band) {
        let rival = study.cells.iter().find(|cell| {
            cell.family == "random-sparse"
                && (cell.support, cell.n, cell.rank) == (local.support, local.n, local.rank)
        });
        let Some(rival) = rival else { continue };
        let (ours, theirs) = (inflation(local), inflation(rival));
        if (ours <= ALIKE && theirs <= ALIKE) || (ours.is_infinite() && theirs.is_infinite()) {
            continue;
        }
        fought.push(local);
        unreached += usize::from(theirs.is_infinite());
        match side(local, rival) {
            Side::Larger => larger += 1,
            Side::NotLarger => not_larger += 1,
            Side::Unclear => {}
        }
        seeds = seeds.min(local.seeds.len()).min(rival.seeds.len());
        if worst.is_none_or(|(_, last)| inflation(last) < theirs) {
            worst = Some((local, rival));
        }
    }
    let Some((local, rival)) = worst else {
        let needs = "Needs dirichlet-band and random-sparse of one width, at one length and rank.";
        return Verdict::lacking(LOCALITY_IS_HARD, "the band or its control is missing", needs);
    };
    let status = match fought.len() {
        all if all == not_larger => VerdictStatus::Refuted,
        all if all == larger => VerdictStatus::Confirmed,
        _ => VerdictStatus::Qualified,
    };
    let headline = format!(
        "band needs more than random columns in {larger} of {} configurations ({unreached} unreached); {}",
        fought.len(),
        plural(seeds, "seed")
    );
    let measured = format!(
        "A band needs more than random columns in {larger} of {} configurations; random columns unreached in {unreached}; {}. \
         Rank penalty at n = {}, d = {}: {} against {}{}.",
        fought.len(),
        of_cells(fought.iter().copied()),
        local.n,
        local.rank,
        shown(local),
        shown(rival),
        permuted(study, local)
    );
    Verdict::new(LOCALITY_IS_HARD, [headline, measured], status, seeds)
}

/// Inflations within this ratio of each other are alike: searches on different machines differ by up to 4 per cent
/// (docs/methods.md, Machines).
const ALIKE: f64 = 1.05;

/// On which side of [`ALIKE`] the ratio of two inflations lies.
enum Side {
    Larger,
    NotLarger,
    Unclear,
}

fn side(local: &GrowthCell, rival: &GrowthCell) -> Side {
    let inflation = |seed: &GrowthSeed| seed.inflation.unwrap_or(f64::INFINITY);
    let logs = local.seeds.iter().filter_map(|ours| {
        let theirs = rival.seeds.iter().find(|theirs| theirs.seed == ours.seed)?;
        Some((inflation(ours) / inflation(theirs)).ln())
    });
    // Of a seed that neither reached nothing is known.
    let logs: Vec<f64> = logs.filter(|log| !log.is_nan()).collect();
    let alike = ALIKE.ln();
    let (low, high) = match Interval::of(logs.iter().copied()) {
        Some(interval) => (interval.low, interval.high),
        None => logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &log| {
            (low.min(log), high.max(log))
        }),
    };
    if logs.is_empty() {
        Side::Unclear
    } else if high <= alike {
        Side::NotLarger
    } else if low >= alike {
        Side::Larger
    } else {
        Side::Unclear
    }
}

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
        _ => format!("no fit up to {LARGEST_CAP}"),
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
        (Some(band), Some(shuffled)) => {
            format!("; without a mask {}, shuffled {}", shown(band), shown(shuffled))
        }
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
        let status = |band: [Option<f64>; 2], sparse: [Option<f64>; 2], seeds| {
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
            .status
        };
        assert_eq!(status([Some(3.0), None], [Some(2.0), Some(9.0)], 3), VerdictStatus::Confirmed);
        assert_eq!(status([Some(3.0), None], [Some(2.0), Some(9.0)], 2), VerdictStatus::Qualified);
        assert_eq!(status([Some(2.0), Some(3.0)], [Some(3.0), None], 3), VerdictStatus::Refuted);
        assert_eq!(
            status([Some(2.0), Some(3.0)], [Some(3.0), None], 2),
            VerdictStatus::Qualified,
            "seeds"
        );
        assert_eq!(status([Some(2.0), Some(3.0)], [Some(1.0), None], 3), VerdictStatus::Qualified);
        assert_eq!(status([Some(2.04); 2], [Some(2.0); 2], 3), VerdictStatus::Refuted, "alike");
        assert_eq!(
            status([Some(1.0); 2], [Some(1.02); 2], 3),
            VerdictStatus::NotMeasured,
            "both free"
        );
        // Smaller in the median, in seeds too far apart to tell.
        let mut band = cell("dirichlet-band", 64, Some(2.0), 3);
        band.seeds[2].inflation = Some(9.0);
        let cells = vec![band, cell("random-sparse", 64, Some(3.0), 3)];
        let none = (Vec::new(), Vec::new());
        let apart = Growth { cells, slopes: none.0, models: none.1, failed: 0 };
        assert_eq!(controls(&apart).status, VerdictStatus::Qualified);
    }
}
