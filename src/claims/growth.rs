//! Verdicts on logit growth: dense local targets, and sparse global ones.

use super::claim::{Claim, Group, Origin, Rule};
use super::scale::of_cells;
use super::verdict::{Verdict, VerdictStatus};
use crate::table::{Growth, GrowthCell, GrowthSlope, Slope, plural, significant};

pub(super) const DENSE_LOCAL_GROWS: Claim = Claim {
    id: "DenseLocalGrows",
    text: "Dense local attention at n ≫ d needs logits that grow with n/d",
    group: Group::SyntheticTargets,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: || Rule {
        confirmed: format!(
            "The exponent of n/d in the rank penalty has an interval above 0 that reaches past \
            {NO_GROWTH} for dense local targets; those of both sparse controls lie below it."
        ),
        refuted: format!(
            "The whole interval lies below {NO_GROWTH}, and every fit reached its KL."
        ),
    },
    ..Claim::PLAIN
};

pub(super) const SPARSE_IS_EASY: Claim = Claim {
    id: "SparseIsEasy",
    text: "Sparse long-range attention fits low rank without large logits",
    group: Group::SyntheticTargets,
    origin: Origin::Derived,
    place: "the rank argument for n ≫ d",
    rule: || Rule {
        confirmed: format!(
            "For both sparse families the whole interval of the rank penalty is at most {EASY} in \
            every configuration whose rank is at least the number of columns per row."
        ),
        refuted: format!(
            "For both families the whole interval lies above {EASY} in some configuration."
        ),
    },
    ..Claim::PLAIN
};

/// A slope whose interval lies under this is no growth worth the name: 0.1 means that 100 times
/// the n/d costs 1.6 times the logits.
const NO_GROWTH: f64 = 0.1;

/// Up to this inflation low rank is called easy: half as much again as with no rank limit.
const EASY: f64 = 1.5;

/// The two verdicts of a study of logit growth.
pub(crate) fn growth(study: &Growth) -> Vec<Verdict> {
    vec![dense_local(study), sparse_global(study)]
}

/// Dense local: the slope of log inflation on log(n/d) for `dirichlet-band`, with its 95 % interval. A slope over all ranks
/// confirms only what the slope of each rank shows, since ranks differ in level.
///
/// *Not yet measured*: no slope, or an interval that holds both.
fn dense_local(study: &Growth) -> Verdict {
    let Some((family, slope)) = slope_of(study, "dirichlet-band") else {
        let lacking = "too few fits for an exponent";
        return Verdict::lacking(DENSE_LOCAL_GROWS, lacking, why_no_slope(study));
    };
    let controls: Vec<(&GrowthSlope, Slope)> =
        ["landmark", "random-sparse"].iter().filter_map(|name| slope_of(study, name)).collect();
    let apart = controls.len() == 2 && controls.iter().all(|(_, other)| other.high < slope.low);
    let by_rank = slopes_by_rank(study, family);
    let at_each_rank = by_rank.iter().all(|(_, slope)| slope.low > 0.0);
    let status = if slope.low > 0.0 && slope.high > NO_GROWTH {
        if apart && at_each_rank { VerdictStatus::Confirmed } else { VerdictStatus::Qualified }
    } else if slope.high < NO_GROWTH && family.unreached == 0 {
        VerdictStatus::Refuted
    } else {
        VerdictStatus::NotMeasured
    };
    let exponent = |slope: Slope| shown(slope.slope, slope.low, slope.high);
    let seeds = plural(family.seeds, "seed");
    let (headline, mut measured) = match &by_rank[..] {
        [] => {
            (format!("rank penalty: exponent of n/d {}, {seeds}", exponent(slope)), String::new())
        }
        [(rank, first), rest @ ..] => {
            let more: String = rest
                .iter()
                .map(|(rank, slope)| format!(", {} ({rank})", significant(slope.slope, 2)))
                .collect();
            let value = significant(first.slope, 3);
            let bounds = [first.low, first.high].map(|end| significant(end, 3));
            (
                format!("penalty's exponent of n/d: {value} (d = {rank}){more}, {seeds}"),
                format!(
                    "Exponent of n/d in a band's rank penalty: {value} [{}] (d = {rank}){more}. ",
                    bounds.join(", ")
                ),
            )
        }
    };
    let all = [("band", slope)]
        .into_iter()
        .chain(controls.iter().map(|(control, slope)| (control.family.as_str(), *slope)));
    let all: Vec<String> =
        all.map(|(family, slope)| format!("{family} {}", exponent(slope))).collect();
    let of_band = study.cells.iter().filter(|cell| cell.family == "dirichlet-band");
    measured.push_str(&format!("Ranks together: {}; {}.", all.join(", "), of_cells(of_band)));
    if family.unreached > 0 {
        let fits = plural(family.unreached, "band fit");
        measured.push_str(&format!(" {fits} reached no bound."));
    }
    if status == VerdictStatus::NotMeasured {
        measured.push_str(" The interval decides nothing.");
    }
    Verdict::new(DENSE_LOCAL_GROWS, [headline, measured], status, family.seeds)
}

/// The slopes of a family at each rank where three of its cells reached ε.
fn slopes_by_rank(study: &Growth, family: &GrowthSlope) -> Vec<(usize, Slope)> {
    let same =
        |other: &&GrowthSlope| other.label == family.label && other.tolerance == family.tolerance;
    study.slopes.iter().filter(same).filter_map(|own| Some((own.rank?, own.slope?))).collect()
}

/// Why there is no slope of `dirichlet-band`.
fn why_no_slope(study: &Growth) -> String {
    match study.pooled_slopes().find(|family| family.family == "dirichlet-band") {
        None => "Needs rows of dirichlet-band.".to_owned(),
        Some(family) => format!(
            "An exponent needs three configurations; {} of dirichlet-band reached the KL, {} did not.",
            plural(family.reached, "fit"),
            family.unreached
        ),
    }
}

/// The slope of a family; of several widths, that of the widest.
fn slope_of<'a>(study: &'a Growth, name: &str) -> Option<(&'a GrowthSlope, Slope)> {
    let of_family = study.pooled_slopes().filter(|family| family.family == name);
    of_family.filter_map(|f| Some((f, f.slope?))).max_by_key(|(family, _)| family.support)
}

fn shown(value: f64, low: f64, high: f64) -> String {
    format!("{value:.2} [{low:.2}, {high:.2}]")
}

/// What low rank costs a sparse global family, over the cells whose rank is at least the number of
/// columns that a row is spread over.
enum Cost {
    /// In every cell the whole interval of inflation is at most [`EASY`], and every fit reached ε.
    Easy,
    /// In some cell the whole interval is above [`EASY`], or no seed reached ε.
    Hard,
    /// Neither.
    Unclear,
}

/// Sparse global: inflation of `landmark` (low rank by make) and of `random-sparse` (not).
///
/// Intervals are Student's over the seeds of a cell, of the logarithm.
///
/// *Not yet measured*: one of the two has no rows at a rank of its support or more.
fn sparse_global(study: &Growth) -> Verdict {
    let (landmark, sparse) = (eligible(study, "landmark"), eligible(study, "random-sparse"));
    if landmark.is_empty() || sparse.is_empty() {
        let needs = "Needs rows of landmark and of random-sparse at ranks of m and k or more.";
        return Verdict::lacking(SPARSE_IS_EASY, "a sparse family is missing", needs);
    }
    let status = match (cost(&landmark), cost(&sparse)) {
        (Cost::Easy, Cost::Easy) => VerdictStatus::Confirmed,
        (Cost::Hard, Cost::Hard) => VerdictStatus::Refuted,
        _ => VerdictStatus::Qualified,
    };
    let seeds = landmark.iter().chain(&sparse).map(|cell| cell.seeds.len()).min().unwrap_or(0);
    let cells = || landmark.iter().chain(&sparse).copied();
    let headline = format!(
        "penalty {} (landmark), {} (random sparse), ranks ≥ columns, {}",
        at_most(&landmark),
        at_most(&sparse),
        plural(seeds, "seed")
    );
    let measured = format!(
        "Largest rank penalty at ranks of the number of columns or more: {}; {}. {}.",
        worst_text(&landmark),
        worst_text(&sparse),
        of_cells(cells())
    );
    Verdict::over(
        SPARSE_IS_EASY,
        [headline, measured],
        status,
        cells().map(|cell| cell.seeds.len()),
    )
}

/// `up to 1.2×`.
fn at_most(cells: &[&GrowthCell]) -> String {
    let medians = cells.iter().filter_map(|cell| Some(cell.inflation()?.median));
    match medians.reduce(f64::max) {
        Some(most) => format!("up to {most:.2}×"),
        None => "unbounded".to_owned(),
    }
}

fn eligible<'a>(study: &'a Growth, family: &str) -> Vec<&'a GrowthCell> {
    let of_family = study.cells.iter().filter(|cell| cell.family == family);
    of_family.filter(|cell| cell.support.is_none_or(|support| cell.rank >= support)).collect()
}

fn cost(cells: &[&GrowthCell]) -> Cost {
    let easy = |cell: &&GrowthCell| {
        cell.unreached() == 0 && cell.inflation_within().is_some_and(|i| i.is_at_most(EASY))
    };
    let hard = |cell: &&GrowthCell| {
        cell.reached() == 0 || cell.inflation_within().is_some_and(|i| i.is_at_least(EASY))
    };
    if cells.iter().all(easy) {
        Cost::Easy
    } else if cells.iter().any(hard) {
        Cost::Hard
    } else {
        Cost::Unclear
    }
}

/// The worst cell of a family: `landmark 1.15 (n = 256, d = 8)`.
fn worst_text(cells: &[&GrowthCell]) -> String {
    let unreached: usize = cells.iter().map(|cell| cell.unreached()).sum();
    let known = cells.iter().filter_map(|cell| Some((cell, cell.inflation()?.median)));
    let mut text = match known.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((cell, inflation)) => {
            let GrowthCell { family, n, rank, .. } = cell;
            format!("{family} {inflation:.2} (n = {n}, d = {rank})")
        }
        None => format!("{} unbounded", cells[0].family),
    };
    if unreached > 0 {
        text.push_str(&format!(", {} reached no bound", plural(unreached, "fit")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::GrowthSeed;

    fn family(
        name: &str,
        slope: Option<(f64, f64)>,
        unreached: usize,
        seeds: usize,
    ) -> GrowthSlope {
        GrowthSlope {
            family: name.to_owned(),
            label: name.to_owned(),
            support: Some(8),
            tolerance: 0.05,
            rank: None,
            slope: slope.map(|(low, high)| Slope {
                slope: 0.5 * (low + high),
                low,
                high,
                points: 9,
            }),
            reached: 27,
            unreached,
            seeds,
        }
    }

    fn word_of(dense: GrowthSlope, controls: &[GrowthSlope]) -> VerdictStatus {
        let slopes = [&[dense], controls].concat();
        dense_local(&Growth { cells: Vec::new(), slopes, models: Vec::new(), failed: 0 }).status
    }

    #[test]
    fn dense_local_has_every_word() {
        let flat = [
            family("landmark", Some((-0.02, 0.03)), 0, 3),
            family("random-sparse", Some((0.1, 0.2)), 0, 3),
        ];
        let steep = [flat[0].clone(), family("random-sparse", Some((0.3, 0.6)), 0, 3)];
        let dense = |slope, unreached, seeds| family("dirichlet-band", slope, unreached, seeds);
        assert_eq!(word_of(dense(Some((0.4, 0.6)), 7, 3), &flat), VerdictStatus::Confirmed);
        assert_eq!(
            word_of(dense(Some((0.4, 0.6)), 0, 2), &flat),
            VerdictStatus::Qualified,
            "two seeds"
        );
        let flat_at_16 = GrowthSlope { rank: Some(16), ..dense(Some((-0.1, 0.1)), 0, 3) };
        let with_rank = [&flat[..], &[flat_at_16]].concat();
        let status = word_of(dense(Some((0.4, 0.6)), 0, 3), &with_rank);
        assert_eq!(status, VerdictStatus::Qualified, "flat at one rank");
        assert_eq!(
            word_of(dense(Some((0.4, 0.6)), 0, 3), &steep),
            VerdictStatus::Qualified,
            "control grows"
        );
        assert_eq!(
            word_of(dense(Some((0.4, 0.6)), 0, 3), &[]),
            VerdictStatus::Qualified,
            "no controls"
        );
        assert_eq!(word_of(dense(Some((-0.1, 0.05)), 0, 3), &flat), VerdictStatus::Refuted);
        assert_eq!(
            word_of(dense(Some((-0.1, 0.05)), 0, 2), &flat),
            VerdictStatus::Qualified,
            "two seeds"
        );
        let censored = word_of(dense(Some((-0.1, 0.05)), 4, 3), &flat);
        assert_eq!(censored, VerdictStatus::NotMeasured, "a censored slope does not refute");
        assert_eq!(word_of(dense(Some((-0.3, 0.6)), 0, 3), &flat), VerdictStatus::NotMeasured);
        assert_eq!(word_of(dense(None, 20, 3), &flat), VerdictStatus::NotMeasured);
    }

    fn cell(name: &str, rank: usize, inflation: Option<f64>, seeds: usize) -> GrowthCell {
        let seed = |seed| GrowthSeed {
            seed,
            needed: inflation.map(|times| 4.0 * times),
            floor: Some(4.0),
            inflation,
        };
        GrowthCell {
            family: name.to_owned(),
            label: name.to_owned(),
            support: Some(8),
            tolerance: 0.05,
            n: 256,
            rank,
            seeds: (0..seeds).map(seed).collect(),
            step_limited: 0,
        }
    }

    #[test]
    fn sparse_global_has_every_word() {
        let status = |landmark: Option<f64>, sparse: Option<f64>, seeds| {
            let cells = vec![
                cell("landmark", 4, None, seeds),
                cell("landmark", 8, landmark, seeds),
                cell("random-sparse", 8, sparse, seeds),
            ];
            sparse_global(&Growth { cells, slopes: Vec::new(), models: Vec::new(), failed: 0 })
                .status
        };
        assert_eq!(status(Some(1.1), Some(1.2), 3), VerdictStatus::Confirmed);
        assert_eq!(status(Some(1.1), Some(1.2), 2), VerdictStatus::Qualified, "two seeds");
        assert_eq!(status(Some(1.1), Some(4.0), 3), VerdictStatus::Qualified, "one hard");
        assert_eq!(status(Some(2.0), None, 3), VerdictStatus::Refuted);
        assert_eq!(status(Some(2.0), None, 2), VerdictStatus::Qualified, "two seeds");
        let cells = vec![cell("landmark", 8, Some(1.0), 3)];
        let models = Vec::new();
        let alone = sparse_global(&Growth { cells, slopes: Vec::new(), models, failed: 0 });
        assert_eq!(alone.status, VerdictStatus::NotMeasured);
        // A median under what is easy, of seeds that may lie above it.
        let mut apart = cell("landmark", 8, Some(1.2), 3);
        apart.seeds[2].inflation = Some(2.0);
        assert!(matches!(cost(&[&apart]), Cost::Unclear), "{:?}", apart.inflation_within());
    }
}
