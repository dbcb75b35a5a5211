//! A folder of `predict`, or a study of the same rows.

use super::head_grid::HeadGrid;
use super::shown::Shown;
use crate::figure::{by_layer, parts};
use crate::table::{HeadParts, TrainedHeads, significant};

/// What predictions add to the figures and tables that any study of trained heads has.
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
    // At a head's own rank; that of a wider one is told by the figures.
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

/// What the largest logit of a model is made of.
fn of_head(head: &HeadParts) -> String {
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "logits that were not found".to_owned(), |v| significant(v, 3))
    };
    format!(
        "{}, seed {}, step {}: the largest logit is {} nats, in layer {}, head {} ({}). Within ε = {} nats its attention needs {} at \
         its rank of {}, {} made of its own inputs, and {} at any rank.",
        head.run,
        head.seed,
        head.step,
        significant(head.actual, 3),
        head.layer,
        head.head,
        head.kind,
        head.epsilon,
        shown(head.needed),
        head.rank,
        shown(head.needed_tied),
        shown(head.floor),
    )
}
