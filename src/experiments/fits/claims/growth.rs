//! Verdicts on logit growth, for dense local targets and for sparse global ones.

use super::scale_of_cells;
use crate::claims::ruling::Ruling;
use crate::claims::verdict::Seeds;
use crate::claims::words::joined;
use crate::claims::{Claim, Origin, Verdict};
use crate::experiments::fits::tables::growth::{Growth, GrowthCell, GrowthSlope};
use crate::table::{Estimate, plural, significant};

/// A slope whose interval lies below this counts as no growth: at 0.1, 100 times the n/d costs 1.6 times the logits.
const NO_GROWTH: f64 = 0.1;
/// Low rank counts as easy up to this rank penalty: half as much again as without a rank limit.
const EASY: f64 = 1.5;

/// The claims that [`verdicts`] decides.
pub(crate) const CLAIMS: &[Claim] = &[DENSE_LOCAL_GROWS, SPARSE_IS_EASY];

pub(crate) const DENSE_LOCAL_GROWS: Claim = Claim {
    id: "DenseLocalGrows",
    text: "Dense local attention at n ≫ d needs logits that grow with n/d",
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: [
        "The exponent of n/d in the rank penalty has an interval above 0 that reaches past {0} for \
            dense local targets; those of both sparse controls lie below it.",
        "The whole interval lies below {0}, and every fit reached its KL.",
    ],
    bounds: &[NO_GROWTH],
    lacking: [
        "too few fits for an exponent",
        "Needs fits of dirichlet-band that reached the KL in three configurations or more.",
    ],
    ..Claim::PLAIN
};

pub(crate) const SPARSE_IS_EASY: Claim = Claim {
    id: "SparseIsEasy",
    text: "Sparse long-range attention fits low rank without large logits",
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: [
        "For both sparse families the whole interval of the rank penalty is at most {0} in every \
            configuration whose rank is at least the number of columns per row.",
        "For both families the whole interval lies above {0} in some configuration.",
    ],
    bounds: &[EASY],
    lacking: [
        "a sparse family is missing",
        "Needs rows of landmark and of random-sparse at ranks of m and k or more.",
    ],
    ..Claim::PLAIN
};

/// The two verdicts of a study of logit growth.
pub(crate) fn verdicts(study: &Growth) -> Vec<Verdict> {
    vec![dense_local(study), sparse_global(study)]
}

/// Dense local: the slope of log rank penalty on log(n/d) for `dirichlet-band`, with its 95 % interval. A slope over
/// all ranks confirms only if the slope of each rank agrees, since ranks differ in level.
///
/// *Not measured*: no slope, or an interval that includes both outcomes.
fn dense_local(study: &Growth) -> Verdict {
    let Some((family, slope)) = slope_of(study, "dirichlet-band") else {
        return Verdict::lacking(DENSE_LOCAL_GROWS);
    };
    let ends = |slope: Estimate| slope.ends().unwrap_or([f64::NAN; 2]);
    let [low, high] = ends(slope);
    let controls: Vec<(&GrowthSlope, Estimate)> =
        ["landmark", "random-sparse"].iter().filter_map(|name| slope_of(study, name)).collect();
    let is_apart = controls.len() == 2
        && controls.iter().all(|(_, slope)| slope.at_most(low) == Ruling::Holds);
    let by_rank = slopes_by_rank(study, family);
    let at_each_rank = by_rank.iter().all(|(_, slope)| slope.at_least(0.0) == Ruling::Holds);
    let grows = low > 0.0 && high > NO_GROWTH;
    let is_flat = high < NO_GROWTH && family.unreached == 0;
    let ruling = Ruling::of_rule(grows, is_flat)
        .undecided_if_holds(!(is_apart && at_each_rank))
        .hidden_if(!grows && !is_flat);
    let exponents = |bounds: bool| {
        let each = by_rank.iter().enumerate().map(|(at, (rank, slope))| match at {
            0 if bounds => format!("{} (d = {rank})", slope.shown(3)),
            0 => format!("{} (d = {rank})", significant(slope.value, 3)),
            _ => format!("{} ({rank})", significant(slope.value, 2)),
        });
        joined(each, ", ")
    };
    let two_decimals = |slope: Estimate| {
        let [low, high] = ends(slope);
        format!("{:.2} [{low:.2}, {high:.2}]", slope.value)
    };
    let (headline, of_ranks) = if by_rank.is_empty() {
        (format!("rank penalty: exponent of n/d {}", two_decimals(slope)), String::new())
    } else {
        let of_ranks = format!("Exponent of n/d in a band's rank penalty: {}", exponents(true));
        (format!("penalty's exponent of n/d: {}", exponents(false)), of_ranks)
    };
    let controls = controls.iter().map(|(control, slope)| (control.family.as_str(), *slope));
    let all = [("band", slope)].into_iter().chain(controls);
    let all = all.map(|(family, slope)| format!("{family} {}", two_decimals(slope)));
    let of_band = study.cells.iter().filter(|cell| cell.family == "dirichlet-band");
    let unreached = plural(family.unreached, "band fit");
    let sentences = [
        of_ranks,
        format!("Ranks together: {}; {}", joined(all, ", "), scale_of_cells(of_band)),
        if family.unreached > 0 { format!("{unreached} reached no bound") } else { String::new() },
        match ruling {
            Ruling::Hidden => "The interval decides nothing".to_owned(),
            _ => String::new(),
        },
    ];
    Verdict::new(DENSE_LOCAL_GROWS, ruling, Seeds::all(family.seeds), headline, sentences)
}

/// The slopes of a family at each rank with three or more cells that reached ε.
fn slopes_by_rank(study: &Growth, family: &GrowthSlope) -> Vec<(usize, Estimate)> {
    let same =
        |other: &&GrowthSlope| other.label == family.label && other.tolerance == family.tolerance;
    let own = study.slopes.iter().filter(same);
    own.filter_map(|own| Some((own.rank?, own.slope?))).collect()
}

/// The slope of a family; if the family has several widths, that of the widest.
fn slope_of<'a>(study: &'a Growth, name: &str) -> Option<(&'a GrowthSlope, Estimate)> {
    let of_family = study.pooled_slopes().filter(|family| family.family == name);
    let with_slope = of_family.filter_map(|family| Some((family, family.slope?)));
    with_slope.max_by_key(|(family, _)| family.support)
}

/// Sparse global: the rank penalty of `landmark` (low rank by construction) and of `random-sparse` (not). It covers the
/// cells whose rank is at least the support of a row. Intervals are Student's over the seeds of a cell, of the
/// logarithm.
///
/// *Not measured*: one of the two has no rows at a rank of at least its support.
fn sparse_global(study: &Growth) -> Verdict {
    let families = ["landmark", "random-sparse"].map(|family| {
        let of_family = study.cells.iter().filter(|cell| cell.family == family);
        let is_easy_by_count =
            |cell: &&GrowthCell| cell.support.is_none_or(|support| cell.rank >= support);
        of_family.filter(is_easy_by_count).collect::<Vec<&GrowthCell>>()
    });
    if families.iter().any(Vec::is_empty) {
        return Verdict::lacking(SPARSE_IS_EASY);
    }
    let [landmark, sparse] = &families;
    let headline = format!(
        "penalty {} (landmark), {} (random sparse), ranks ≥ columns",
        largest_penalty(landmark),
        largest_penalty(sparse)
    );
    let cells = || families.iter().flatten().copied();
    let sentences = [
        format!(
            "Largest rank penalty at ranks of the number of columns or more: {}; {}",
            worst(landmark),
            worst(sparse)
        ),
        scale_of_cells(cells()),
    ];
    let ruling = Ruling::every(families.iter().map(|cells| cost(cells)));
    let seeds = Seeds::of_settings(cells().map(|cell| cell.seeds.len()));
    Verdict::new(SPARSE_IS_EASY, ruling, seeds, headline, sentences)
}

/// The largest median rank penalty as text: `up to 1.2×`.
fn largest_penalty(cells: &[&GrowthCell]) -> String {
    let medians = cells.iter().filter_map(|cell| Some(cell.inflation()?.median));
    match medians.reduce(f64::max) {
        Some(most) => format!("up to {most:.2}×"),
        None => "unbounded".to_owned(),
    }
}

/// Low rank is easy for a family if every fit reached ε and the whole interval of every cell's rank penalty is at most
/// [`EASY`]. It is not easy if in some cell the whole interval is above, or no seed reached ε.
fn cost(cells: &[&GrowthCell]) -> Ruling {
    let within = |cell: &GrowthCell, holds: fn([f64; 2]) -> bool| {
        cell.inflation_within().and_then(|penalty| penalty.ends()).is_some_and(holds)
    };
    let is_easy =
        |cell: &&GrowthCell| cell.unreached() == 0 && within(cell, |[_, high]| high <= EASY);
    let is_hard = |cell: &&GrowthCell| cell.reached() == 0 || within(cell, |[low, _]| low >= EASY);
    Ruling::of_rule(cells.iter().all(is_easy), cells.iter().any(is_hard))
}

/// The cell of a family with the largest rank penalty, as text: `landmark 1.15 (n = 256, d = 8)`.
fn worst(cells: &[&GrowthCell]) -> String {
    let unreached: usize = cells.iter().map(|cell| cell.unreached()).sum();
    let known = cells.iter().filter_map(|cell| Some((cell, cell.inflation()?.median)));
    let text = match known.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((cell, inflation)) => {
            let GrowthCell { family, n, rank, .. } = cell;
            format!("{family} {inflation:.2} (n = {n}, d = {rank})")
        }
        None => format!("{} unbounded", cells[0].family),
    };
    match unreached {
        0 => text,
        some => format!("{text}, {} reached no bound", plural(some, "fit")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::claims::VerdictStatus::{Confirmed, NotMeasured, Qualified, Refuted};
    use crate::experiments::fits::tables::growth::GrowthSeed;

    /// A cell with the same rank penalty for every seed.
    pub(crate) fn cell(
        family: &str,
        rank: usize,
        inflation: Option<f64>,
        seeds: usize,
    ) -> GrowthCell {
        let needed = inflation.map(|times| 4.0 * times);
        let seed = |seed| GrowthSeed { seed, needed, floor: Some(4.0), inflation };
        GrowthCell {
            family: family.to_owned(),
            label: family.to_owned(),
            support: Some(8),
            tolerance: 0.05,
            n: 256,
            rank,
            seeds: (0..seeds).map(seed).collect(),
            step_limited: 0,
        }
    }

    pub(crate) fn study(cells: Vec<GrowthCell>) -> Growth {
        Growth { cells, slopes: Vec::new(), failed: 0 }
    }

    fn slope(family: &str, ends: Option<[f64; 2]>, unreached: usize, seeds: usize) -> GrowthSlope {
        GrowthSlope {
            family: family.to_owned(),
            label: family.to_owned(),
            support: Some(8),
            tolerance: 0.05,
            rank: None,
            slope: ends.map(|ends| Estimate::within(0.5 * (ends[0] + ends[1]), ends)),
            points: 9,
            reached: 27,
            unreached,
            seeds,
        }
    }

    #[test]
    fn dense_local_has_every_word() {
        let flat = [
            slope("landmark", Some([-0.02, 0.03]), 0, 3),
            slope("random-sparse", Some([0.1, 0.2]), 0, 3),
        ];
        let steep = [flat[0].clone(), slope("random-sparse", Some([0.3, 0.6]), 0, 3)];
        let band = |ends, unreached, seeds| slope("dirichlet-band", ends, unreached, seeds);
        let flat_at_16 = GrowthSlope { rank: Some(16), ..band(Some([-0.1, 0.1]), 0, 3) };
        let with_rank = [&flat[..], &[flat_at_16]].concat();
        let status = |band: GrowthSlope, controls: &[GrowthSlope]| {
            let slopes = [&[band], controls].concat();
            dense_local(&Growth { slopes, ..study(Vec::new()) }).status
        };
        let grows = |seeds| band(Some([0.4, 0.6]), 0, seeds);
        assert_eq!(status(band(Some([0.4, 0.6]), 7, 3), &flat), Confirmed);
        assert_eq!(status(grows(2), &flat), Qualified, "two seeds");
        assert_eq!(status(grows(3), &with_rank), Qualified, "flat at one rank");
        assert_eq!(status(grows(3), &steep), Qualified, "control grows");
        assert_eq!(status(grows(3), &[]), Qualified, "no controls");
        assert_eq!(status(band(Some([-0.1, 0.05]), 0, 3), &flat), Refuted);
        let censored = status(band(Some([-0.1, 0.05]), 4, 3), &flat);
        assert_eq!(censored, NotMeasured, "a censored slope does not refute");
        assert_eq!(status(band(Some([-0.3, 0.6]), 0, 3), &flat), NotMeasured);
        assert_eq!(status(band(None, 20, 3), &flat), NotMeasured);
    }

    #[test]
    fn sparse_global_has_every_word() {
        let status = |landmark: Option<f64>, sparse: Option<f64>, seeds| {
            let cells = vec![
                cell("landmark", 4, None, seeds),
                cell("landmark", 8, landmark, seeds),
                cell("random-sparse", 8, sparse, seeds),
            ];
            sparse_global(&study(cells)).status
        };
        assert_eq!(status(Some(1.1), Some(1.2), 3), Confirmed);
        assert_eq!(status(Some(1.1), Some(1.2), 2), Qualified, "two seeds");
        assert_eq!(status(Some(1.1), Some(4.0), 3), Qualified, "one hard");
        assert_eq!(status(Some(2.0), None, 3), Refuted);
        let alone = study(vec![cell("landmark", 8, Some(1.0), 3)]);
        assert_eq!(sparse_global(&alone).status, NotMeasured);
        // The median counts as easy, but some seeds may lie above it.
        let mut apart = cell("landmark", 8, Some(1.2), 3);
        apart.seeds[2].inflation = Some(2.0);
        assert_eq!(cost(&[&apart]), Ruling::Between, "{:?}", apart.inflation_within());
    }
}
