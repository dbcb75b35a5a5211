//! The figures of the logits that trained heads need against those that they have.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use super::ticks::tick_label;
use super::variant::Variant;
use crate::table::{HeadParts, TrainedHeads, arm_name, significant};

/// Needed against actual at the last step: a point per head, a panel per ε; and the same computed from the layer inputs.
pub fn prediction(study: &TrainedHeads) -> Vec<Figure> {
    let figure = |name: &str, label: &str, of: fn(&HeadParts) -> Option<f64>, caption: &str| {
        let last = study.last_step();
        let mut heads = study.at_own_rank();
        heads.retain(|head| head.step == last);
        let point = |h: &&HeadParts| Some((of(h).filter(|v| *v > 0.0)?, h.actual));
        let shown: Vec<(f64, f64)> = heads.iter().filter_map(point).collect();
        let left_out = match heads.len() - shown.len() {
            0 => String::new(),
            count => {
                format!(" Not drawn: {count} of {} points, without a needed logit.", heads.len())
            }
        };
        let x = Axis::log(label, shown.iter().map(|point| point.0));
        // The axis of actual logits holds the whole diagonal.
        let actual = shown.iter().map(|point| point.1);
        let y = Axis::log("max |logit| of the head", actual.chain([x.range.0, x.range.1]));
        let diagonal = vec![(x.range.0, x.range.0), (x.range.1, x.range.1)];
        let panels = study.epsilons().into_iter().map(|epsilon| {
            let here: Vec<&HeadParts> =
                heads.iter().copied().filter(|h| h.epsilon == epsilon).collect();
            let grey = Ink::grey(Stroke::Dashed);
            let mut series =
                vec![Series::new("needed = actual", grey, Shape::Line, diagonal.clone())];
            for (arm, kind, ink) in kinds_of(study) {
                let points = here
                    .iter()
                    .filter(|h| h.arm == arm && is_local(h) == (kind == "local"))
                    .filter_map(point);
                let name = name_of(study, &arm, kind);
                series.push(Series::new(&name, ink, Shape::Points, points.collect()));
            }
            Panel::new(
                &format!("Error ε = {} nats", tick_label(epsilon)),
                x.clone(),
                y.clone(),
                series,
            )
        });
        let mut keys: Vec<Key> = kinds_of(study)
            .into_iter()
            .map(|(arm, kind, ink)| Key::new(&name_of(study, &arm, kind), ink, Shape::Points))
            .collect();
        keys.push(Key::grey("needed = actual", Stroke::Dashed));
        Figure {
            name: name.to_owned(),
            caption: format!("{caption} Each point is one head, each panel one error ε.{left_out}"),
            alt: orderings_alt(study),
            keys,
            panels: panels.collect(),
        }
    };
    vec![
        figure(
            "needed-against-actual",
            "max |logit| needed at rank d_head",
            |h| h.needed,
            "The max |logit| of each trained head against the smallest that reproduces its attention within ε at the same rank. \
             Points above the dashed line have larger logits than rank alone explains.",
        ),
        figure(
            "tied-against-actual",
            "max |logit| needed from the layer inputs",
            |h| h.needed_tied,
            "The max |logit| of each trained head against the smallest that reproduces its attention within ε from the head's own \
             layer inputs. Points above the dashed line have larger logits than rank and inputs explain.",
        ),
    ]
}

fn is_local(head: &HeadParts) -> bool {
    head.kind.starts_with("local")
}

/// `LS-attention, local heads`; `multi-head` where all heads are global.
fn name_of(study: &TrainedHeads, arm: &str, kind: &str) -> String {
    match study.heads.iter().any(|head| head.arm == arm && is_local(head)) {
        true => format!("{}, {kind} heads", arm_name(arm)),
        false => arm_name(arm).to_owned(),
    }
}

/// The variants with the kinds of heads that they have, and their inks.
fn kinds_of(study: &TrainedHeads) -> Vec<(String, &'static str, Ink)> {
    let mut found: Vec<(String, &'static str, Ink)> = Vec::new();
    for head in &study.heads {
        let kind = if is_local(head) { "local" } else { "global" };
        if found.iter().all(|(arm, other, _)| (arm, *other) != (&head.arm, kind)) {
            let ink = Variant::plain(&head.arm).ink();
            let ink = if kind == "local" { ink.of_local_heads() } else { ink };
            found.push((head.arm.clone(), kind, ink));
        }
    }
    found
}

fn orderings_alt(study: &TrainedHeads) -> String {
    let lines = study.orderings().into_iter().map(|one| {
        format!(
            "{}, ε = {}: rank correlation of max |logit| with {} {}.",
            arm_name(&one.arm),
            one.epsilon,
            one.by,
            significant(one.correlation.rho, 2)
        )
    });
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::head_of_parts as head;

    #[test]
    fn the_diagonal_lies_inside_the_axes() {
        let of = |floor: f64, seed| head(("mhsa", seed, 10, 0), [floor, 1.0, 2.0, 2.0, 1.0], 1.0);
        let heads = vec![of(2.0, 0), of(10.0, 1)];
        let [figure, _] = &prediction(&TrainedHeads { heads, failed: 0 })[..] else {
            panic!("two")
        };
        let panel = &figure.panels[0];
        assert!(1.5 < panel.x.range.0 && panel.x.range.1 < 12.0, "needed 2 and 10: {:?}", panel.x);
        assert!(panel.y.range.1 >= 40.0, "actual 8 and 40: {:?}", panel.y);
        let [from, to] = panel.series[0].points[..] else { panic!("a diagonal") };
        assert_eq!((from.0, to.0), panel.x.range);
        assert!(panel.y.range.0 <= from.1 && to.1 <= panel.y.range.1, "{:?}", panel.y);
    }
}
