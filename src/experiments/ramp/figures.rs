//! The figure of a study of ramps: the largest logit of each model, by training step and by the time since a head
//! became local.

use crate::experiments::ramp::tables::{RampHead, RampModel, Ramps};
use crate::experiments::training::figures::variant::Variant;
use crate::figure::ticks::length;
use crate::figure::{Axis, Figure, Ink, Key, Panel, Series, Shape};
use crate::table::{distinct, groups};

/// The largest |logit| of QKᵀ of each model at its kept steps, a line per seed. Each variant has two panels: against the
/// step, and against the steps since its first local head.
pub fn ramp(study: &Ramps) -> Vec<Figure> {
    let models = study.models();
    let lengths = distinct(models.iter().map(|model| model.any().found.n));
    let ink =
        |n: usize| Ink::of_rank(2 << lengths.iter().position(|other| *other == n).unwrap_or(0));
    let all = || models.iter().flat_map(|model| &model.course);
    let y = Axis::log("max |logit| of the model", all().map(|point| point.1));
    let by_step = Axis::from_zero("training step", all().map(|point| point.0 as f64));
    let since = by_step.named("steps since the first local head");
    let panels = groups(&models, |model| title(model.any())).into_iter().flat_map(|here| {
        let line = |model: &RampModel<'_>, from: usize| {
            let later = model.course.iter().filter(|(step, _)| *step >= from);
            let points = later.map(|(step, logit)| ((step - from) as f64, *logit)).collect();
            let n = model.any().found.n;
            Series::new(&length(n), ink(n), Shape::LineMarkers, points)
        };
        let name = title(here[0].any());
        let local = here.iter().filter_map(|model| Some(line(model, model.local_from?)));
        let once_local =
            Panel::new(&format!("{name}, once local"), since.clone(), y.clone(), local.collect());
        let whole = here.iter().map(|model| line(model, 0)).collect();
        [Panel::new(&name, by_step.clone(), y.clone(), whole), once_local]
    });
    let keys = lengths.iter().map(|&n| Key::new(&length(n), ink(n), Shape::LineMarkers)).collect();
    vec![Figure {
        name: "ramp".to_owned(),
        caption: "The largest |QKᵀ/√d| of a model at its kept steps, one line per seed: against the training step, and against \
                  the steps since its first local head. Where lines lie apart in the first panel and together in the second, \
                  the growth comes later and is no larger."
            .to_owned(),
        keys,
        panels: panels.filter(|panel| !panel.series.is_empty()).collect(),
    }]
}

/// The variant of a head's model.
pub(super) fn variant_of(head: &RampHead) -> Variant<'_> {
    Variant::new(&head.of.model.arm, head.of.positions.as_deref(), head.of.slopes.as_deref())
}

/// The title of a variant's panels.
fn title(head: &RampHead) -> String {
    let name = variant_of(head).name();
    match head.buys_its_locality() {
        true => format!("{name}, learned positions"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::ramp::tables::tests::heads;

    #[test]
    fn panels_stand_by_variant_and_start_at_the_first_local_head() {
        let before = heads(&[256, 512], 2).all;
        let mut all = before.clone();
        for mut head in before.iter().cloned() {
            head.of.model.step = Some(300);
            all.push(head.clone());
            (head.of.model.step, head.found.mass_within_16) = (Some(50), 0.1);
            all.push(head);
        }
        let mut rotary = before[0].clone();
        rotary.of.positions = Some("rope".to_owned());
        rotary.of.model.run = "rope".to_owned();
        all.push(rotary);
        let figure = ramp(&Ramps::of_heads(all, 0)).remove(0);
        assert_eq!(figure.panels.len(), 4);
        let x = |panel: usize| -> Vec<f64> {
            let line = figure.panels[panel].series.iter().find(|s| s.shape == Shape::LineMarkers);
            line.unwrap().points.iter().map(|point| point.0).collect()
        };
        assert_eq!((x(0), x(1)), (vec![50.0, 100.0, 300.0], vec![0.0, 200.0]));
        assert_ne!(figure.panels[0].series[0].ink.colour, figure.panels[0].series[2].ink.colour);
        assert!(figure.svg().unwrap().contains("<svg"));
    }
}
