//! Measures a trained model head by head.

use std::sync::atomic::Ordering;

use super::trained_model::TrainedModel;
use crate::experiment::{CellContext, StudyError};
use crate::heads::PredictError;
use crate::lm::{HeadProbe, Probed};

/// A head on one group of passages.
pub(crate) struct HeadOfGroup<'p> {
    /// The head on each passage of the group.
    pub probes: Vec<&'p HeadProbe>,
    pub group: usize,
}

/// Applies `find` to every head of the selected layers, group by group. Returns `None` if it was stopped.
///
/// # Errors
/// A text that cannot be read, a passage that the model cannot process, or an error of `find`.
pub(crate) fn of_each_head<F>(
    looked_at: &TrainedModel,
    model: &dyn Probed,
    context: &CellContext<'_>,
    find: impl Fn(&HeadOfGroup<'_>) -> Result<F, PredictError>,
) -> Result<Option<Vec<F>>, StudyError> {
    let groups = looked_at.read_passages(model, context)?;
    let layers = looked_at.layers();
    let share = 1.0 / (groups.len() * layers.len() * model.heads()) as f64;
    let mut found = Vec::new();
    for (group, passages) in groups.iter().enumerate() {
        let ended = model.each_layer(passages, &layers, |of_layer| {
            for head in 0..model.heads() {
                if context.stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let probes: Vec<&HeadProbe> = of_layer.iter().map(|of| &of[head]).collect();
                found.push(find(&HeadOfGroup { probes, group })?);
                (context.advanced)(share);
            }
            Ok::<_, StudyError>(true)
        })?;
        if !ended {
            return Ok(None);
        }
    }
    Ok(Some(found))
}
