//! The figures of a study of trained heads.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use crate::predict::PARTS;
use crate::table::{HeadParts, Spread, TrainedHeads, significant};

/// A level of a logit, from the least that is needed to what is.
type Level = (&'static str, LevelOf);

type LevelOf = fn(&HeadParts) -> Option<f64>;

/// What lies between two of them is a part: inflation, tying, drift, gauge.
const LEVELS: [Level; 5] = [
    ("floor, any rank", |h| h.floor),
    ("needed at rank d", |h| h.needed),
    ("needed, tied to the inputs", |h| h.needed_tied),
    ("½ spread, what softmax sees", |h| Some(0.5 * h.spread)),
    ("actual", |h| Some(h.actual)),
];

/// The levels that the largest logit of each model is made of, against step: a panel a run.
pub fn decomposition(study: &TrainedHeads) -> Option<Figure> {
    let epsilon = study.epsilon_told();
    let largest: Vec<&HeadParts> =
        study.largest().into_iter().filter(|head| head.epsilon == epsilon).collect();
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for head in &largest {
        let run = (head.of.as_str(), head.run.as_str());
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    let of_run = |(of, run): (&str, &str)| -> Vec<&HeadParts> {
        largest.iter().copied().filter(|h| (h.of.as_str(), h.run.as_str()) == (of, run)).collect()
    };
    // One step alone is no line.
    runs.retain(|run| steps(&of_run(*run)).len() > 1);
    if runs.is_empty() {
        return None;
    }
    let values = largest.iter().flat_map(|h| LEVELS.iter().filter_map(|(_, of)| of(h)));
    let y = Axis::log("max |logit| (nats)", values);
    let panels = runs.iter().map(|run| {
        let here = of_run(*run);
        let mut series = Vec::new();
        for (at, (name, of)) in LEVELS.into_iter().enumerate() {
            let seeds =
                here.iter().filter_map(|h| Some((h.step as f64, of(h).filter(|v| *v > 0.0)?)));
            series.push(Series::new(name, ink(at), Shape::Seeds, seeds.collect()));
            let medians = steps(&here).into_iter().filter_map(|step| {
                let at_step = here.iter().filter(|h| h.step == step).filter_map(|h| of(h));
                Some((step as f64, Spread::of(at_step)?.median)).filter(|point| point.1 > 0.0)
            });
            series.push(Series::new(name, ink(at), Shape::LineMarkers, medians.collect()));
        }
        let first = here[0];
        let title = format!("{}: n = {}, d = {}", first.run, first.n, first.rank);
        let all_steps = here.iter().map(|h| h.step as f64);
        Panel::new(&title, Axis::log_at("step", all_steps), y.clone(), series)
    });
    let mut keys: Vec<Key> = LEVELS
        .iter()
        .enumerate()
        .rev()
        .map(|(at, (name, _))| Key::new(name, ink(at), Shape::LineMarkers))
        .collect();
    keys.push(Key::new("seed", Ink::grey(Stroke::Solid), Shape::Seeds));
    Some(Figure {
        name: "decomposition".to_owned(),
        caption: format!(
            "The largest logit of each model, and what its attention needed of it at ε = {epsilon} nats, against \
             step. The way from one line up to the next is a part: floor to needed inflation (the price of rank), \
             to tied tying, to ½ spread drift, to actual gauge. Lines are medians over seeds, strokes seeds."
        ),
        alt: parts_alt(&largest),
        keys,
        panels: panels.collect(),
    })
}

/// What the attention of each model's largest head would have needed at larger ranks: a panel a run.
pub fn ranks(study: &TrainedHeads) -> Option<Figure> {
    let epsilon = study.epsilon_told();
    let last = study.last_step();
    let largest: Vec<&HeadParts> =
        study.largest().into_iter().filter(|h| h.epsilon == epsilon && h.step == last).collect();
    let levels = [0, 1, 2, 4].map(|at| (at, LEVELS[at]));
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for wider in study.wider() {
        let run = (wider.own.of.as_str(), wider.own.run.as_str());
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    if runs.is_empty() {
        return None;
    }
    let values = largest
        .iter()
        .flat_map(|h| levels.iter().filter_map(|(_, (_, of))| of(h)).chain(h.lower_bound_tied));
    let y = Axis::log("max |logit| (nats)", values);
    let panels = runs.iter().map(|&run| {
        let here: Vec<&HeadParts> =
            largest.iter().copied().filter(|h| (h.of.as_str(), h.run.as_str()) == run).collect();
        let mut all_ranks: Vec<usize> = here.iter().map(|head| head.rank).collect();
        all_ranks.sort_unstable();
        all_ranks.dedup();
        let mut series = Vec::new();
        for (at, (name, of)) in levels {
            let value = |h: &&HeadParts| of(h).filter(|v| *v > 0.0);
            let seeds = here.iter().filter_map(|h| Some((h.rank as f64, value(h)?)));
            series.push(Series::new(name, ink(at), Shape::Seeds, seeds.collect()));
            let medians = all_ranks.iter().filter_map(|&rank| {
                let at_rank = here.iter().filter(|h| h.rank == rank).filter_map(value);
                Some((rank as f64, Spread::of(at_rank)?.median))
            });
            series.push(Series::new(name, ink(at), Shape::LineMarkers, medians.collect()));
        }
        let ends = [all_ranks[0], all_ranks[all_ranks.len() - 1]];
        for (name, stroke, of) in ANY_RANK {
            let level = Spread::of(here.iter().filter_map(|h| of(h))).map(|spread| spread.median);
            let line = level.iter().flat_map(|&level| ends.map(|rank| (rank as f64, level)));
            series.push(Series::new(name, tied_ink(stroke), Shape::Line, line.collect()));
        }
        let title = format!("{}: n = {}, d = {}", run.1, here[0].n, all_ranks[0]);
        let x = Axis::log_at("rank r of queries and keys", all_ranks.iter().map(|&r| r as f64));
        Panel::new(&title, x, y.clone(), series)
    });
    let key = |&(at, (name, _)): &(usize, Level)| {
        let name = if at == 1 { "needed at rank r" } else { name };
        Key::new(name, ink(at), Shape::LineMarkers)
    };
    let mut keys: Vec<Key> = levels.iter().rev().map(key).collect();
    keys.extend(ANY_RANK.map(|(name, stroke, _)| Key::new(name, tied_ink(stroke), Shape::Line)));
    keys.push(Key::new("seed", Ink::grey(Stroke::Solid), Shape::Seeds));
    let alt = study.wider().into_iter().filter_map(|wider| {
        let tied = |head: &HeadParts| head.needed_tied.map(|v| significant(v, 3));
        Some(format!(
            "{}, seed {}: tied needs {} at rank {}, {} at {}, {} at any.",
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
            "The largest logit of each model, and what its attention would have needed of it at ε = {epsilon} nats in a wider \
             head with the same inputs. Lines across are for W_q·W_kᵀ of any rank. Lines are medians over seeds, strokes seeds."
        ),
        alt: alt.collect::<Vec<_>>().join(" "),
        keys,
        panels: panels.collect(),
    })
}

fn steps(heads: &[&HeadParts]) -> Vec<usize> {
    let mut steps: Vec<usize> = heads.iter().map(|head| head.step).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// What tied logits need at any rank, from above and from below: lines across.
const ANY_RANK: [(&str, Stroke, LevelOf); 2] = [
    ("tied, any rank", Stroke::Dashed, |h| h.needed_any_rank),
    ("no less at any rank: proven", Stroke::Dotted, |h| h.lower_bound_tied),
];

/// The ink of tied logits, in other strokes.
fn tied_ink(stroke: Stroke) -> Ink {
    Ink { stroke, ..ink(2) }
}

fn ink(level: usize) -> Ink {
    match level {
        0 => Ink::grey(Stroke::Dashed),
        4 => Ink::of_arm("mhsa"),
        level => Ink::of_rank([4, 8, 32][level - 1]),
    }
}

/// Needed against actual at the last step: a point a head, a panel an ε; and the same of what inputs can make.
pub fn prediction(study: &TrainedHeads) -> Vec<Figure> {
    let figure = |name: &str, label: &str, of: fn(&HeadParts) -> Option<f64>, caption: &str| {
        let last = study.last_step();
        let heads: Vec<&HeadParts> = study.heads.iter().filter(|head| head.step == last).collect();
        let point = |h: &&HeadParts| Some((of(h).filter(|v| *v > 0.0)?, h.actual));
        let shown: Vec<(f64, f64)> = heads.iter().filter_map(point).collect();
        let both = || shown.iter().flat_map(|&(needed, actual)| [needed, actual]);
        let (x, y) = (Axis::log(label, both()), Axis::log("actual max |logit| (nats)", both()));
        let panels = study.epsilons().into_iter().map(|epsilon| {
            let here: Vec<&HeadParts> =
                heads.iter().copied().filter(|h| h.epsilon == epsilon).collect();
            let ends = (x.range.0.max(y.range.0), x.range.1.min(y.range.1));
            let diagonal = vec![(ends.0, ends.0), (ends.1, ends.1)];
            let mut series =
                vec![Series::new("equal", Ink::grey(Stroke::Dashed), Shape::Line, diagonal)];
            for (arm, kind, ink) in kinds_of(study) {
                let points = here
                    .iter()
                    .filter(|h| h.arm == arm && is_local(h) == (kind == "local"))
                    .filter_map(point);
                let name = format!("{arm}, {kind} heads");
                series.push(Series::new(&name, ink, Shape::Points, points.collect()));
            }
            Panel::new(&format!("ε = {epsilon} nats"), x.clone(), y.clone(), series)
        });
        let mut keys: Vec<Key> = kinds_of(study)
            .into_iter()
            .map(|(arm, kind, ink)| Key::new(&format!("{arm}, {kind}"), ink, Shape::Points))
            .collect();
        keys.push(Key::grey("needed = actual", Stroke::Dashed));
        Figure {
            name: name.to_owned(),
            caption: caption.to_owned(),
            alt: orderings_alt(study),
            keys,
            panels: panels.collect(),
        }
    };
    vec![
        figure(
            "needed-against-actual",
            "needed max |logit| at rank d (nats)",
            |h| h.needed,
            "Each head's largest logit against the least that gives its attention within ε, queries and keys free \
             at the head's rank. What lies above the diagonal is tying, drift and gauge.",
        ),
        figure(
            "tied-against-actual",
            "needed max |logit|, tied to the inputs (nats)",
            |h| h.needed_tied,
            "The same with queries and keys made of the head's own inputs by one pair of matrices. What lies above the \
             diagonal is drift and gauge.",
        ),
    ]
}

fn is_local(head: &HeadParts) -> bool {
    head.kind.starts_with("local")
}

/// The arms with the kinds of heads that they have, and their inks.
fn kinds_of(study: &TrainedHeads) -> Vec<(String, &'static str, Ink)> {
    let mut found: Vec<(String, &'static str, Ink)> = Vec::new();
    for head in &study.heads {
        let kind = if is_local(head) { "local" } else { "global" };
        if found.iter().all(|(arm, other, _)| (arm, *other) != (&head.arm, kind)) {
            let ink = match (head.arm.as_str(), kind) {
                ("ls", "global") => Ink::of_arm("layer-alternating"),
                (arm, _) => Ink::of_arm(arm),
            };
            found.push((head.arm.clone(), kind, ink));
        }
    }
    found
}

fn parts_alt(largest: &[&HeadParts]) -> String {
    let lines = largest.iter().filter_map(|head| {
        let parts = head.parts()?;
        let shown: Vec<String> = PARTS
            .iter()
            .zip(parts)
            .map(|(name, part)| format!("{name} {}", significant(part, 3)))
            .collect();
        Some(format!(
            "{}, seed {}, step {}: {} = {}.",
            head.run,
            head.seed,
            head.step,
            significant(head.actual, 3),
            shown.join(" × ")
        ))
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn orderings_alt(study: &TrainedHeads) -> String {
    let lines = study.orderings().into_iter().map(|one| {
        format!(
            "{}, ε = {}: ρ of actual with {} {}.",
            one.arm,
            one.epsilon,
            one.by,
            significant(one.correlation.rho, 2)
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}
