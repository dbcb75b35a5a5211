//! The figures of needed against actual logits of trained heads.

use crate::experiments::heads::tables::heads::{HeadRow, TrainedHeads};
use crate::experiments::training::figures::variant::Variant;
use crate::experiments::training::tables::training::arm_name;
use crate::figure::ticks::tick_label;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape, Stroke};
use crate::table::groups;

/// Needed against actual logits at the last step, with one point per head and one panel per ε. A second figure has
/// those needed from the layer inputs. Heads that were `screened` and not fitted are drawn at their floor.
pub fn prediction(study: &TrainedHeads, screened: &[&HeadRow]) -> Vec<Figure> {
    let figure = |name: &str, label: &str, of: fn(&HeadRow) -> Option<f64>, caption: &str| {
        let last = study.last_step();
        let heads: Vec<&HeadRow> = study.heads.iter().filter(|head| head.step() == last).collect();
        let point = |h: &&HeadRow| Some((of(h).filter(|v| *v > 0.0)?, h.found.actual));
        let shown: Vec<(f64, f64)> = heads.iter().filter_map(point).collect();
        let at_floor = |h: &&HeadRow| Some((h.found.floor.filter(|v| *v > 0.0)?, h.found.actual));
        let mut notes = String::new();
        if shown.len() < heads.len() {
            notes = format!(
                " Not drawn: {} of {} points, without a needed logit.",
                heads.len() - shown.len(),
                heads.len()
            );
        }
        if !screened.is_empty() {
            notes.push_str(&format!(
                " Only the {} of {} heads with the largest logits were fitted.",
                heads.len(),
                heads.len() + screened.len()
            ));
        }
        let all = || shown.iter().copied().chain(screened.iter().filter_map(at_floor));
        let x = Axis::log(label, all().flat_map(|(needed, actual)| [needed, actual]));
        let y = x.named("max |logit| of the head");
        let panels = study.epsilons().into_iter().map(|epsilon| {
            let here: Vec<&HeadRow> =
                heads.iter().copied().filter(|h| h.found.epsilon == epsilon).collect();
            let mut series = vec![Series::diagonal("needed = actual", &x)];
            for (arm, kind, ink) in kinds_of(study) {
                let not_fitted =
                    screened.iter().filter(|h| h.of.model.arm == arm && h.found.epsilon == epsilon);
                let floors: Vec<_> = not_fitted.filter_map(at_floor).collect();
                if !floors.is_empty() {
                    series.push(Series::new(NOT_FITTED, ink, Shape::OpenPoints, floors));
                }
                let points = here
                    .iter()
                    .filter(|h| h.of.model.arm == arm && is_local(h) == (kind == "local"))
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
        if !screened.is_empty() {
            let ink = Ink::grey(Stroke::Solid);
            keys.push(Key::new(NOT_FITTED, ink, Shape::OpenPoints));
        }
        keys.push(Key::grey("needed = actual", Stroke::Dashed));
        Figure {
            name: name.to_owned(),
            caption: format!("{caption} Each point is one head, each panel one error ε.{notes}"),
            keys,
            panels: panels.collect(),
        }
    };
    vec![
        figure(
            "needed-against-actual",
            "max |logit| needed at rank d_head",
            |h| h.found.needed,
            "The max |logit| of each trained head against the smallest that reproduces its attention within ε at the same rank. \
             Points above the dashed line have larger logits than rank alone explains.",
        ),
        figure(
            "from-input-against-actual",
            "max |logit| needed from the layer inputs",
            |h| h.found.needed_from_input,
            "The max |logit| of each trained head against the smallest that reproduces its attention within ε from the head's own \
             layer inputs. Points above the dashed line have larger logits than rank and inputs explain.",
        ),
    ]
}

/// The label of heads of which only the floor is known.
const NOT_FITTED: &str = "head not fitted, at its floor (a lower bound)";

fn is_local(head: &HeadRow) -> bool {
    head.found.kind.window().is_some()
}

/// The label of a kind of heads: `LS-attention, local heads`, `multi-head` if all heads are global, `fitted head` if
/// all are of one kind.
fn name_of(study: &TrainedHeads, arm: &str, kind: &str) -> String {
    if kinds_of(study).len() == 1 {
        return "fitted head".to_owned();
    }
    match study.heads.iter().any(|head| head.of.model.arm == arm && is_local(head)) {
        true => format!("{}, {kind} heads", arm_name(arm)),
        false => arm_name(arm).to_owned(),
    }
}

/// The variants with the kinds of heads that they have, and their inks.
fn kinds_of(study: &TrainedHeads) -> Vec<(String, &'static str, Ink)> {
    let kinds = groups(&study.heads, |head| (&head.of.model.arm, is_local(head))).into_iter();
    let look = |heads: Vec<&HeadRow>| {
        let ink = Variant::plain(&heads[0].of.model.arm).ink();
        let (kind, ink) = match is_local(heads[0]) {
            true => ("local", ink.of_local_heads()),
            false => ("global", ink),
        };
        (heads[0].of.model.arm.clone(), kind, ink)
    };
    kinds.map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::heads::tables::heads::tests::{head, study};

    #[test]
    fn axes_are_equal_and_screened_heads_stand_at_their_floor() {
        let of = |floor: f64, seed| head(("mhsa", seed, 10, 0), [floor, 1.0, 2.0, 2.0, 1.0], 1.0);
        let mut screened = of(1.0, 2);
        screened.found.needed = None;
        let fitted = study([of(2.0, 0), of(10.0, 1)]);
        let [figure, _] = &prediction(&fitted, &[&screened])[..] else { panic!("two") };
        let panel = &figure.panels[0];
        assert!(panel.x.range.0 <= 1.0 && 40.0 <= panel.x.range.1, "1 to 40: {:?}", panel.x);
        assert_eq!(panel.x.range, panel.y.range);
        let [from, to] = panel.series[0].points[..] else { panic!("a diagonal") };
        assert_eq!((from.0, to.0, from.1, to.1), (from.1, to.1, panel.x.range.0, panel.x.range.1));
        assert_eq!(panel.series[1].points, [(1.0, 4.0)], "at its floor");
        assert!(figure.caption.contains("2 of 3 heads"), "{}", figure.caption);
    }
}
