//! The figure of the logits that trained heads need at other ranks.

use crate::experiments::heads::figures::heads::title_of;
use crate::experiments::heads::tables::head_parts::HeadParts;
use crate::experiments::heads::tables::heads::TrainedHeads;
use crate::figure::model::{BAR, heights};
use crate::figure::style::{DARK, pale};
use crate::figure::{Axis, Figure, Key, Panel, Series, Shape};
use crate::figure::{Ink, Stroke};
use crate::table::{Spread, distinct, groups, significant};

type ValueOf = fn(&HeadParts) -> Option<f64>;

/// A way to form queries and keys, with the label and ink of its bars. `at_rank` and `at_any` give the needed logits at
/// the rank of a row and at any rank.
struct Made {
    of: &'static str,
    from: usize,
    at_rank: ValueOf,
    at_any: ValueOf,
}

const MADE: [Made; 2] = [
    Made {
        of: "needed, unrestricted inputs",
        from: 4,
        at_rank: |head| head.needed,
        at_any: |head| head.floor,
    },
    Made {
        of: "needed from the layer inputs",
        from: 8,
        at_rank: |head| head.needed_tied,
        at_any: |head| head.needed_any_rank,
    },
];

impl Made {
    fn ink(&self) -> Ink {
        Ink::of_rank(self.from)
    }

    /// The ink of bars; a paler colour, because seeds are drawn over them.
    fn bars(&self) -> Ink {
        Ink { colour: pale(self.ink().colour), ..self.ink() }
    }
}

const PROVEN: &str = "proven lower bound";

/// The logits that the attention of each model's largest head needs at its own rank, at larger ranks and at any rank.
/// Bars are for free queries and keys and for those from the layer inputs; the actual logits are a line. One panel per run.
pub fn ranks(study: &TrainedHeads) -> Option<Figure> {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let largest: Vec<&HeadParts> =
        study.largest().into_iter().filter(|h| h.epsilon == epsilon && h.step == last).collect();
    let wider = study.wider();
    let runs = groups(&wider, |wider| (wider.own.of.as_str(), wider.own.run.as_str()));
    if runs.is_empty() {
        return None;
    }
    let of_run = |own: &HeadParts| -> Vec<&HeadParts> {
        largest.iter().copied().filter(|h| (&h.of, &h.run) == (&own.of, &own.run)).collect()
    };
    let actual = Ink { colour: DARK, ..Ink::numbered(0) };
    let mut keys: Vec<Key> =
        MADE.iter().map(|made| Key::new(made.of, made.bars(), Shape::Bars)).collect();
    keys.push(Key::seed());
    keys.push(Key::new(PROVEN, proven(), Shape::Line));
    keys.push(Key::new("max |logit| of the head", actual, Shape::Line));
    keys.push(Key::new("its range over seeds", actual, Shape::Band));
    let alt = wider.iter().filter_map(|wider| {
        let tied = |head: &HeadParts| head.needed_tied.map(|v| significant(v, 3));
        Some(format!(
            "{}, seed {}: from the layer inputs, needed {} at rank {}, {} at {}, {} at any.",
            wider.own.run,
            wider.own.seed,
            tied(wider.own)?,
            wider.own.rank,
            tied(wider.wider)?,
            wider.wider.rank,
            wider.own.needed_any_rank.map(|v| significant(v, 3))?
        ))
    });
    Some(Figure {
        name: "ranks".to_owned(),
        caption: format!(
            "The largest logit of each model, and the logits that its attention needs at ε = {epsilon} nats in a head of larger or any \
             rank. Bars and lines are medians over seeds, ticks single seeds. Each panel has its own vertical axis."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: runs.iter().map(|run| panel(&of_run(run[0].own), epsilon)).collect(),
    })
}

fn panel(heads: &[&HeadParts], epsilon: f64) -> Panel {
    let ranks = distinct(heads.iter().map(|head| head.rank));
    // Rows of a head differ only in rank, so the rows of one rank supply values that do not depend on it.
    let once = || heads.iter().copied().filter(|head| head.rank == ranks[0]);
    let mut names: Vec<String> = ranks.iter().map(usize::to_string).collect();
    names.push("any".to_owned());
    let any = ranks.len() as f64;
    let x = Axis::of_names("rank r of queries and keys", names);
    let mut series = Vec::new();
    let actual = Ink { colour: DARK, ..Ink::numbered(0) };
    if let Some(level) = Spread::of(once().map(|head| head.actual)) {
        let band = [(x.range.0, level), (x.range.1, level)];
        series.push(Series::band("actual", actual, &band));
        series.push(Series::level("actual", actual, x.range, level.median));
    }
    for (nth, made) in MADE.iter().enumerate() {
        let beside = (nth as f64 - 0.5) * BAR * 1.04;
        let at_ranks = ranks.iter().enumerate().flat_map(|(at, &rank)| {
            let here = heads.iter().filter(move |head| head.rank == rank);
            here.filter_map(move |head| Some((at as f64 + beside, (made.at_rank)(head)?)))
        });
        let at_any = once().filter_map(|head| Some((any + beside, (made.at_any)(head)?)));
        let seeds = at_ranks.chain(at_any).collect();
        let [seeds, medians] = Series::over_seeds(made.of, made.ink(), seeds);
        series.extend([Series { shape: Shape::Bars, ink: made.bars(), ..medians }, seeds]);
    }
    if let Some(bound) = Spread::of(once().filter_map(|head| head.lower_bound_tied)) {
        let bar = (any + 0.02 * BAR, any + 1.02 * BAR);
        series.push(Series::level(PROVEN, proven(), bar, bound.median));
    }
    let label = format!("max |logit|, needed at ε = {epsilon} nats");
    let y = Axis::linear(&label, heights(&series), Some(0.0));
    let title = title_of(&heads[0].arm, &heads[0].run, heads[0].n, ranks[0]);
    Panel::new(&title, x, y, series)
}

/// The ink of proven lower bounds on logits needed from the layer inputs.
fn proven() -> Ink {
    Ink { stroke: Stroke::Dotted, colour: DARK, ..Ink::numbered(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::heads::tables::heads_tests::head;

    #[test]
    fn bars_stand_side_by_side_at_each_rank_and_at_any() {
        let at = |seed: usize, rank, tying| HeadParts {
            rank,
            needed_any_rank: Some(6.0),
            lower_bound_tied: Some(5.0),
            actual: 20.0 + seed as f64,
            ..head(("mhsa", seed, 10, 0), [2.0, 1.5, tying, 1.0, 1.0], 1.0)
        };
        let heads = [0, 1, 2]
            .into_iter()
            .flat_map(|seed| [at(seed, 8, 4.0 + seed as f64), at(seed, 16, 3.0)]);
        let figure = ranks(&TrainedHeads { heads: heads.collect(), failed: 0 }).unwrap();
        let [panel] = &figure.panels[..] else { panic!("one run") };
        assert_eq!(panel.title, "multi-head: n = 64, d_head = 8");
        let ticks: Vec<&str> = panel.x.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(ticks, ["8", "16", "any"]);
        let heights = |name: &str, shape: Shape| -> Vec<f64> {
            let found = panel.series.iter().find(|s| s.name == name && s.shape == shape).unwrap();
            found.points.iter().map(|point| point.1).collect()
        };
        assert_eq!(heights("needed, unrestricted inputs", Shape::Bars), [3.0, 3.0, 2.0]);
        assert_eq!(
            heights("needed from the layer inputs", Shape::Bars),
            [15.0, 9.0, 6.0],
            "medians"
        );
        assert_eq!(heights("needed from the layer inputs", Shape::Seeds).len(), 9);
        assert_eq!(heights(PROVEN, Shape::Line), [5.0, 5.0]);
        assert_eq!(heights("actual", Shape::Band), [20.0, 20.0, 22.0, 22.0]);
        assert_eq!(panel.y.range.0, 0.0, "bars begin at zero");
        assert!(figure.svg().unwrap().contains("any"));
    }
}
