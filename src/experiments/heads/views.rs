//! Views of trained heads: needed against actual logits.

use super::claims;
use super::figures::{heads, prediction};
use super::tables::heads::TrainedHeads;
use super::tables::published::PublishedHeads;
use crate::claims::Group::{PublishedModels, TrainedHeads as InTraining};
use crate::experiment::{Analysed, MeasuredStudy, View, ViewError, rows_of};

/// The view of the rows that the command `predict` measures without a study.
pub(crate) const PREDICTION: View = View::new(
    "prediction",
    InTraining,
    "Needed against actual logits, one point per head.",
    |studies| {
        let rows = trained(studies)?;
        Ok(Analysed {
            tables: rows.tables(),
            figures: prediction::prediction(&rows, &[]),
            verdicts: vec![claims::heads::ordering(&rows)],
        })
    },
);

pub(super) const VIEWS: &[View] = &[
    View::new(
        "decomposition",
        InTraining,
        "Factors of the logits of trained heads, by step.",
        |studies| {
            let rows = trained(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: heads::decomposition(&rows),
                verdicts: vec![claims::heads::growth(&rows), claims::heads::ordering(&rows)],
            })
        },
    ),
    PREDICTION,
    View::new(
        "published",
        PublishedModels,
        "The heads of published models: which have large logits, and which of these need them.",
        |studies| {
            let rows = PublishedHeads::of(&rows_of(studies)?)?;
            let figures = match &rows.fitted {
                Some(fitted) => prediction::prediction(fitted, &rows.screened()),
                None => Vec::new(),
            };
            let verdicts = vec![claims::published::needed(&rows), claims::published::ramp(&rows)];
            Ok(Analysed { tables: rows.tables(), figures, verdicts })
        },
    ),
];

fn trained(studies: &[MeasuredStudy]) -> Result<TrainedHeads, ViewError> {
    Ok(TrainedHeads::of(&rows_of(studies)?)?)
}
