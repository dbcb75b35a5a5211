//! Shows a folder of `predict`, or a study with such rows.

use super::head_grid::HeadGrid;
use super::shown::Shown;
use crate::experiments::heads::figures::heads_of_model::{by_layer, parts};
use crate::experiments::heads::tables::head_parts::HeadParts;
use crate::experiments::heads::tables::heads::TrainedHeads;
use crate::table::significant;

/// Adds the figures, grids and sentences that predictions have beyond a study of trained heads.
pub(super) fn add(shown: &mut Shown, study: &TrainedHeads) {
    let mut figures: Vec<_> = parts(study).into_iter().collect();
    if figures.is_empty() {
        shown.notes.push(format!(
            "No head has all of its parts at ε = {} nats, as where attention is uniform within it and needs no logits: \
             predict again with a smaller --tolerance.",
            study.epsilon_told()
        ));
    }
    figures.push(by_layer(study));
    figures.append(&mut shown.figures);
    shown.figures = figures;
    shown.grids = HeadGrid::of_predictions(study);
    let (epsilon, last) = (study.epsilon_told(), study.last_step());
    let largest = study.largest().into_iter();
    let told = largest.filter(|head| head.epsilon == epsilon && head.step == last);
    // One sentence per model, at the heads' own rank; the figures show larger ranks.
    let mut models: Vec<&HeadParts> = Vec::new();
    for head in told {
        let same = |other: &&HeadParts| (&other.run, other.seed) == (&head.run, head.seed);
        match models.iter_mut().find(|other| same(other)) {
            Some(other) if head.rank < other.rank => *other = head,
            Some(_) => {}
            None => models.push(head),
        }
    }
    shown.conclusion.extend(models.into_iter().map(of_head));
}

/// Compares the largest logit of a model with what that head's attention needs.
fn of_head(head: &HeadParts) -> String {
    let needs = [
        (head.needed, format!(" at its rank of {}", head.rank)),
        (head.needed_tied, " with its inputs".to_owned()),
        (head.floor, " at any rank (the floor)".to_owned()),
    ];
    let needs: Vec<String> = needs
        .into_iter()
        .filter_map(|(value, how)| Some(format!("{}{how}", significant(value?, 3))))
        .collect();
    let needs = match &needs[..] {
        [] => "What its attention needs was not found.".to_owned(),
        needs => format!(
            "For an error of {} nats its attention needs {}.",
            head.epsilon,
            needs.join(", ")
        ),
    };
    // A published model has neither a seed nor a step.
    let model = match (head.seed, head.step) {
        (0, 0) => head.run.clone(),
        (seed, step) => format!("{}, seed {seed}, step {step}", head.run),
    };
    format!(
        "{model}: max |logit| is {}, in layer {}, head {} ({}). {needs}",
        significant(head.actual, 3),
        head.layer,
        head.head,
        head.kind,
    )
}
