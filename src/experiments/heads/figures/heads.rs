//! The figures of the factors of trained heads' logits.

use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::style::DARK;
use crate::figure::ticks::length;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::groups;

/// One level of a head's logits, from the smallest that is needed to the actual one.
type Level = (&'static str, LevelOf);

type LevelOf = fn(&HeadRow) -> Option<f64>;

/// The ratio of two successive levels is a factor: rank penalty, input factor, excess factor, shift factor.
const LEVELS: [Level; 5] = [
    ("floor: needed at unlimited rank", |h| h.found.floor),
    ("needed at rank d_head", |h| h.found.needed),
    ("needed from the layer inputs", |h| h.found.needed_from_input),
    ("half-range, what softmax receives", |h| Some(0.5 * h.found.spread)),
    ("max |logit|", |h| Some(h.found.actual)),
];

/// The number of runs in the first figure: one row of panels.
const LEADING: usize = 3;

/// The levels of the largest logit of each model against step, one panel per run. The first figure has the first run of
/// each variant of each study, up to one row of panels. The other runs are in a second figure.
pub fn decomposition(study: &TrainedHeads) -> Vec<Figure> {
    let epsilon = study.epsilon_told();
    let largest: Vec<&HeadRow> =
        study.largest().into_iter().filter(|head| head.found.epsilon == epsilon).collect();
    let mut runs = groups(largest.iter().copied(), |head| (&head.of.model.of, head.run()));
    // A run with a single step has no line.
    runs.retain(|run| run.iter().any(|head| head.step() != run[0].step()));
    let mut arms: Vec<(&Option<String>, &str)> = Vec::new();
    let (leading, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| {
        let arm = (&run[0].of.model.of, run[0].of.model.arm.as_str());
        let leads = arms.len() < LEADING && !arms.contains(&arm);
        if leads {
            arms.push(arm);
        }
        leads
    });
    let values = largest.iter().flat_map(|h| LEVELS.iter().filter_map(|(_, of)| of(h)));
    let y = Axis::log(&format!("max |logit|, needed at ε = {epsilon} nats"), values);
    let mut keys: Vec<Key> = LEVELS
        .iter()
        .enumerate()
        .rev()
        .map(|(at, (name, _))| Key::new(name, ink(at), Shape::LineMarkers))
        .collect();
    keys.push(Key::seed());
    let figure = |name: &str, which: &str, runs: &[Vec<&HeadRow>]| Figure {
        name: name.to_owned(),
        caption: format!(
            "The largest logit of each model during training, and the logits that its attention needs at ε = {epsilon} nats. Each \
             step up is a factor: rank penalty, input factor, excess factor, shift factor. Lines are medians over seeds, ticks \
             single seeds. A larger marker or broader line lies under another.{which}"
        ),
        keys: keys.clone(),
        panels: runs.iter().map(|run| panel(run, &y)).collect(),
    };
    if leading.is_empty() {
        return Vec::new();
    }
    if others.is_empty() {
        return vec![figure("decomposition", "", &leading)];
    }
    vec![
        figure("decomposition", " Other runs are in the next figure.", &leading),
        figure("decomposition-others", "", &others),
    ]
}

fn panel(heads: &[&HeadRow], y: &Axis) -> Panel {
    let mut series = Vec::new();
    for (at, (name, of)) in LEVELS.into_iter().enumerate() {
        let seeds = heads.iter().filter_map(|h| Some((h.step() as f64, of(h)?))).collect();
        series.extend(Series::over_seeds(name, ink(at), seeds).map(|series| series.above(0.0)));
    }
    let first = heads[0];
    let title = title_of(&first.of.model.arm, first.run(), first.found.n, first.found.rank);
    let all_steps = heads.iter().map(|h| h.step() as f64);
    Panel::new(&title, Axis::log_at("step", all_steps), y.clone(), series)
}

/// The title of a panel: `multi-head, RoPE: n = 512, d_head = 8`.
pub(crate) fn title_of(arm: &str, run: &str, n: usize, rank: usize) -> String {
    let (variant, rest) = Variant::of_name(arm, run);
    // The head dimension already shows that heads are wide.
    let rest = match rest.as_str() {
        "" | "wide heads" => String::new(),
        rest => format!(", {rest}"),
    };
    format!("{}{rest}: {}, d_head = {rank}", variant.name(), length(n))
}

fn ink(level: usize) -> Ink {
    match level {
        0 => Ink::grey(Stroke::Dashed),
        4 => Ink { stroke: Stroke::Solid, colour: DARK, ..Ink::numbered(0) },
        level => Ink::of_rank([4, 8, 32][level - 1]),
    }
}
