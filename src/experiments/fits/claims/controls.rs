//! The verdict on locality: a dense local target compared with its controls.

use super::scale_of_cells;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::{Claim, Origin, Verdict};
use crate::experiments::fits::tables::growth::{Growth, GrowthCell, GrowthSeed};
use crate::solver::LARGEST_CAP;
use crate::table::Estimate;

/// Rank penalties with a ratio up to this count as equal: searches on different machines differ by up to 4 per cent
/// (docs/methods.md, Machines).
const ALIKE: f64 = 1.05;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[LOCALITY_IS_HARD];

pub(crate) const LOCALITY_IS_HARD: Claim = Claim {
    id: "LocalityIsHard",
    text: "Low rank is a problem for short-range attention in particular",
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: [
        "In every configuration (n, d) where low rank costs anything, a local band needs more than \
            {0} times the logits of as many random columns, by the whole interval.",
        "In no such configuration does it need more.",
    ],
    bounds: &[ALIKE],
    lacking: [
        "the band or its control is missing",
        "Needs dirichlet-band and random-sparse of one width, at one length and rank.",
    ],
    ..Claim::PLAIN
};

/// The verdicts on [`CLAIMS`].
pub(crate) fn verdicts(study: &Growth) -> Vec<Verdict> {
    vec![controls(study)]
}

/// Tests whether locality needs large logits. At every (n, d) it compares the rank penalty of a local band with that of
/// as many random columns, which are not local. It does so seed by seed; a fit that did not reach ε counts as larger
/// than any. If all seeds reached ε, the 95 % interval of the ratio decides (Student's over seeds, of the logarithm),
/// else every seed must agree.
///
/// *Not measured*: no `dirichlet-band` and `random-sparse` of one width that are alike otherwise.
///
/// Cells in which rank costs nothing for either (up to [`ALIKE`]) are left out.
fn controls(study: &Growth) -> Verdict {
    let bands = study
        .cells
        .iter()
        .filter(|cell| cell.family == "dirichlet-band" && !cell.label.contains("no mask"));
    let with_rival = bands.filter_map(|band| {
        let rival = like(study, band).find(|cell| cell.family == "random-sparse")?;
        let penalties = [inflation(band), inflation(rival)];
        let tells_nothing = penalties.iter().all(|penalty| *penalty <= ALIKE)
            || penalties.iter().all(|penalty| penalty.is_infinite());
        (!tells_nothing).then_some((band, rival))
    });
    let compared: Vec<(&GrowthCell, &GrowthCell)> = with_rival.collect();
    let of_rival = |(_, rival): &(&GrowthCell, &GrowthCell)| inflation(rival);
    let reversed = compared.iter().rev();
    let Some((band, rival)) = reversed.max_by(|a, b| of_rival(a).total_cmp(&of_rival(b))) else {
        return Verdict::lacking(LOCALITY_IS_HARD);
    };
    let rulings: Vec<Ruling> =
        compared.iter().map(|(band, rival)| needs_more(band, rival)).collect();
    let larger = rulings.iter().filter(|ruling| **ruling == Ruling::Holds).count();
    let unreached = compared.iter().filter(|pair| of_rival(pair).is_infinite()).count();
    let count =
        format!("needs more than random columns in {larger} of {} configurations", compared.len());
    let scale = scale_of_cells(compared.iter().map(|(band, _)| *band));
    let sentences = [
        format!("A band {count}; random columns unreached in {unreached}; {scale}"),
        format!(
            "Rank penalty at n = {}, d = {}: {} against {}{}",
            band.n,
            band.rank,
            shown(band),
            shown(rival),
            without_mask(study, band)
        ),
    ];
    let seeds = compared.iter().map(|(band, rival)| band.seeds.len().min(rival.seeds.len()));
    let seeds = Seeds::all(seeds.min().unwrap_or(0));
    let headline = format!("band {count} ({unreached} unreached)");
    Verdict::new(LOCALITY_IS_HARD, Ruling::every(rulings), seeds, headline, sentences)
}

/// Whether a band needs more than its rival: compares the ratio of their rank penalties with [`ALIKE`].
fn needs_more(band: &GrowthCell, rival: &GrowthCell) -> Ruling {
    let inflation = |seed: &GrowthSeed| seed.inflation.unwrap_or(f64::INFINITY);
    let logs = band.seeds.iter().filter_map(|ours| {
        let theirs = rival.seeds.iter().find(|theirs| theirs.seed == ours.seed)?;
        Some((inflation(ours) / inflation(theirs)).ln())
    });
    // A seed for which neither fit reached ε gives no ratio.
    let logs: Vec<f64> = logs.filter(|log| !log.is_nan()).collect();
    let all = |of: fn(f64, f64) -> f64| logs.iter().copied().reduce(of);
    let interval = Estimate::interval(logs.iter().copied()).and_then(|ratio| ratio.ends());
    let ends = interval.or_else(|| Some([all(f64::min)?, all(f64::max)?]));
    let alike = ALIKE.ln();
    ends.map_or(Ruling::of_rule(false, false), |[low, high]| {
        Ruling::of_rule(low >= alike && high > alike, high <= alike)
    })
}

/// The cells with the same width, length and rank as `cell`.
fn like<'g>(study: &'g Growth, cell: &GrowthCell) -> impl Iterator<Item = &'g GrowthCell> {
    let size = (cell.support, cell.n, cell.rank);
    study.cells.iter().filter(move |other| (other.support, other.n, other.rank) == size)
}

/// The median rank penalty; infinite if at least half of the seeds did not reach ε.
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

/// The rank penalties of the same band without a mask, and of that band shuffled, as text; empty unless both are measured.
fn without_mask(study: &Growth, band: &GrowthCell) -> String {
    let at = |family: &str| {
        like(study, band).find(|cell| cell.family == family && cell.label.contains("no mask"))
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
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::fits::claims::growth::tests::{cell, study};

    #[test]
    fn every_word_has_its_cells() {
        let status = |band: [Option<f64>; 2], sparse: [Option<f64>; 2], seeds| {
            let cells = [64, 128].into_iter().enumerate().flat_map(|(at, n)| {
                [("dirichlet-band", band[at]), ("random-sparse", sparse[at])].map(
                    |(family, inflation)| GrowthCell { n, ..cell(family, 8, inflation, seeds) },
                )
            });
            controls(&study(cells.collect())).status
        };
        assert_eq!(status([Some(3.0), None], [Some(2.0), Some(9.0)], 3), Confirmed);
        assert_eq!(status([Some(3.0), None], [Some(2.0), Some(9.0)], 2), Qualified);
        assert_eq!(status([Some(2.0), Some(3.0)], [Some(3.0), None], 3), Refuted);
        assert_eq!(status([Some(2.0), Some(3.0)], [Some(1.0), None], 3), Qualified);
        assert_eq!(status([Some(2.04); 2], [Some(2.0); 2], 3), Refuted, "alike");
        assert_eq!(status([Some(1.0); 2], [Some(1.02); 2], 3), NotMeasured, "both free");
        // A smaller median, but seeds scatter too much to decide.
        let mut band = cell("dirichlet-band", 8, Some(2.0), 3);
        band.seeds[2].inflation = Some(9.0);
        let apart = study(vec![band, cell("random-sparse", 8, Some(3.0), 3)]);
        assert_eq!(controls(&apart).status, Qualified);
    }
}
