//! The figures of what trained heads needed against what they have.

use super::model::{Axis, Figure, Key, Panel, Series, Shape};
use super::style::{Ink, Stroke};
use crate::table::{HeadParts, TrainedHeads, significant};

/// What captions say of the errors.
const WHY_SEVERAL: &str = "A panel an ε, from loose to strict: what is needed grows as ε shrinks, and no ε is the \
                           right one.";

/// Needed against actual at the last step: a point a head, a panel an ε; and the same of what inputs can make.
pub fn prediction(study: &TrainedHeads) -> Vec<Figure> {
    let figure = |name: &str, label: &str, of: fn(&HeadParts) -> Option<f64>, caption: &str| {
        let last = study.last_step();
        let mut heads = study.at_own_rank();
        heads.retain(|head| head.step == last);
        let point = |h: &&HeadParts| Some((of(h).filter(|v| *v > 0.0)?, h.actual));
        let shown: Vec<(f64, f64)> = heads.iter().filter_map(point).collect();
        let left_out = match heads.len() - shown.len() {
            0 => String::new(),
            count => format!(
                " Left out: {count} of {} points, of heads that need no logits within ε, or for which none were found.",
                heads.len()
            ),
        };
        let x = Axis::log(label, shown.iter().map(|point| point.0));
        let y = Axis::log("actual max |logit| (nats)", shown.iter().map(|point| point.1));
        // Where the axes have no value in common, the diagonal is not to be seen.
        let ends = (x.range.0.max(y.range.0), x.range.1.min(y.range.1));
        let diagonal =
            if ends.0 < ends.1 { vec![(ends.0, ends.0), (ends.1, ends.1)] } else { vec![] };
        let panels = study.epsilons().into_iter().map(|epsilon| {
            let here: Vec<&HeadParts> =
                heads.iter().copied().filter(|h| h.epsilon == epsilon).collect();
            let grey = Ink::grey(Stroke::Dashed);
            let mut series = vec![Series::new("equal", grey, Shape::Line, diagonal.clone())];
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
            caption: format!("{caption} {WHY_SEVERAL}{left_out}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::head_of_parts as head;

    #[test]
    fn axes_hold_their_own_points_and_the_diagonal_what_both_hold() {
        let of = |floor: f64, seed| head(("mhsa", seed, 10, 0), [floor, 1.0, 2.0, 2.0, 1.0], 1.0);
        let heads = vec![of(2.0, 0), of(10.0, 1)];
        let [figure, _] = &prediction(&TrainedHeads { heads, failed: 0 })[..] else {
            panic!("two")
        };
        let panel = &figure.panels[0];
        assert!(1.5 < panel.x.range.0 && panel.x.range.1 < 12.0, "needed 2 and 10: {:?}", panel.x);
        assert!(7.0 < panel.y.range.0 && panel.y.range.1 < 48.0, "actual 8 and 40: {:?}", panel.y);
        let [from, to] = panel.series[0].points[..] else { panic!("a diagonal") };
        assert_eq!((from.0, to.0), (panel.y.range.0, panel.x.range.1));
        let heads = vec![of(2.0, 0)];
        let apart = &prediction(&TrainedHeads { heads, failed: 0 })[0];
        assert!(apart.panels[0].series[0].points.is_empty(), "needed 2, actual 8");
    }
}
