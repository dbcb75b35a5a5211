//! The figure of a study of lattices.

use crate::experiments::heads::figures::heads::title_of;
use crate::experiments::lattice::tables::lattice::{LatticeOfHead, Lattices};
use crate::figure::ticks::natural;
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::figure::{Ink, Stroke};
use crate::heads::{InputSet, RankLimit};
use crate::table::{Spread, groups};

/// The logits that the attention of each run's largest head needs against rank: one line per set of inputs, one panel
/// per run and ε.
pub fn lattice(study: &Lattices) -> Option<Figure> {
    let last = study.last_step();
    let largest = study.largest(|head| head.step == last);
    // "Any rank" is drawn at twice the last rank, one step further.
    let finite: Vec<usize> = study.ranks().into_iter().filter_map(number).collect();
    let any = 2 * finite.last().copied()?;
    let at = |rank: RankLimit| number(rank).unwrap_or(any) as f64;
    let mut runs = groups(largest.iter().copied(), |head| (&head.of, &head.run, head.epsilon));
    let title = |head: &LatticeOfHead| title_of(&head.arm, &head.run, head.n, head.own_rank);
    runs.sort_by(|a, b| b[0].epsilon.total_cmp(&a[0].epsilon));
    runs.sort_by_cached_key(|run| (natural(&title(run[0])), run[0].of.clone(), run[0].run.clone()));
    let needed = largest.iter().flat_map(|head| head.corners.iter().filter_map(|c| c.needed));
    let y = Axis::log("max |logit|", needed.chain(largest.iter().map(|head| head.actual)));
    let mut x = Axis::log_at("rank of queries and keys", study.ranks().into_iter().map(at));
    for tick in x.ticks.iter_mut().filter(|tick| tick.value == any as f64) {
        tick.label = "any".to_owned();
    }
    let several = study.epsilons().len() > 1;
    let epsilons: Vec<String> = study.epsilons().iter().map(f64::to_string).collect();
    let ends = [at(study.ranks()[0]), any as f64];
    let panels = runs.iter().map(|here| {
        let mut series = Vec::new();
        for (name, ink, value) in LEVELS {
            let level = Spread::of(here.iter().filter_map(|head| value(head)));
            let line = level.iter().flat_map(|level| ends.map(|rank| (rank, level.median)));
            series.push(Series::new(name, ink, Shape::Line, line.collect()));
        }
        for inputs in study.inputs() {
            let of = |head: &LatticeOfHead, rank| head.needed(inputs, rank).filter(|v| *v > 0.0);
            let seeds = here.iter().flat_map(|head| {
                study.ranks().into_iter().filter_map(move |rank| Some((at(rank), of(head, rank)?)))
            });
            let [seeds, mut medians] =
                Series::over_seeds(inputs.name(), ink(inputs), seeds.collect());
            // A median over only the seeds that reached ε would be too low.
            let reached = |x: f64| seeds.points.iter().filter(|point| point.0 == x).count();
            medians.points.retain(|point| reached(point.0) == here.len());
            series.extend([seeds, medians]);
        }
        let mut title = title(here[0]);
        if several {
            title.push_str(&format!(", ε = {}", here[0].epsilon));
        }
        Panel::new(&title, x.clone(), y.clone(), series)
    });
    let panels = panels.collect();
    let mut keys: Vec<Key> = study
        .inputs()
        .into_iter()
        .map(|inputs| Key::new(explained(inputs), ink(inputs), Shape::LineMarkers))
        .collect();
    keys.extend(LEVELS.map(|(name, ink, _)| Key::new(name, ink, Shape::Line)));
    keys.push(Key::seed());
    Some(Figure {
        name: "lattice".to_owned(),
        caption: format!(
            "The max |logit| that reproduces the attention of each model's largest head within ε = {} nats, against the rank of \
             queries and keys, by what these are computed from. Markers are medians where every seed reached ε; ticks \
             are single seeds. A gap between two lines is the cost of an input restriction.",
            epsilons.join(", ")
        ),
        alt: study.in_words(),
        keys,
        panels,
    })
}

fn number(rank: RankLimit) -> Option<usize> {
    match rank {
        RankLimit::Of(rank) => Some(rank),
        RankLimit::Any => None,
    }
}

/// A horizontal line at a level of a head's logits.
type Level = (&'static str, Ink, fn(&LatticeOfHead) -> Option<f64>);

const LEVELS: [Level; 2] = [
    ("max |logit| of the head", Ink::grey(Stroke::Solid), |head| Some(head.actual)),
    ("floor: any rank and inputs", Ink::grey(Stroke::Dashed), |head| {
        head.floor().filter(|floor| *floor > 0.0)
    }),
];

fn ink(inputs: InputSet) -> Ink {
    Ink::numbered(match inputs {
        InputSet::Own => 1,
        InputSet::Free => 0,
        InputSet::Bias => 3,
        InputSet::Line => 5,
        InputSet::Pair => 2,
        InputSet::Pairs4 => 8,
        InputSet::Positions => 4,
    })
}

fn explained(inputs: InputSet) -> &'static str {
    match inputs {
        InputSet::Own => "layer inputs",
        InputSet::Bias => "+ a constant",
        InputSet::Line => "+ the position",
        InputSet::Pair => "+ 1 sine–cosine pair",
        InputSet::Pairs4 => "+ 4 pairs",
        InputSet::Positions => "+ one-hot positions",
        InputSet::Free => "unrestricted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::lattice::tables::lattice::made_up::head;

    #[test]
    fn a_line_is_where_every_seed_reached_epsilon_and_any_rank_stands_last() {
        let heads = (1..4).map(|seed| head(seed, [20.0, 32.0], 8.0)).collect();
        let figure = lattice(&Lattices { heads, failed: 0 }).unwrap();
        let [panel] = &figure.panels[..] else { panic!("one run and one ε") };
        assert_eq!(panel.title, "multi-head: n = 256, d_head = 16");
        let line = |name: &str| {
            let mut found = panel.series.iter();
            found.find(|s| s.name == name && s.shape == Shape::LineMarkers).unwrap().points.clone()
        };
        assert_eq!(line("own"), [(16.0, 32.0), (32.0, 20.0)], "none at rank 2");
        assert_eq!(line("free"), [(2.0, 30.0), (16.0, 5.0), (32.0, 4.0)]);
        assert_eq!(panel.x.ticks.last().unwrap().label, "any");
    }
}
