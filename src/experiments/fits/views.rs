//! Views of fits.

use super::figures::{frontiers, growth, layouts, phase};
use super::tables::growth::Growth;
use super::tables::layouts::Layouts;
use super::{FitMeasurement, claims};
use crate::claims::Group::SyntheticTargets;
use crate::experiment::{Analysed, MeasuredStudy, View, ViewError, rows_of};

pub(super) const VIEWS: &[View] = &[
    View::new(
        "frontiers",
        SyntheticTargets,
        "Error against the logit bound, one line per target. Needs `caps`.",
        |studies| {
            let rows = layouts(studies)?;
            let figures = vec![frontiers::frontiers(&rows)];
            Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![] })
        },
    ),
    View::new(
        "logit-growth",
        SyntheticTargets,
        "Needed max |logit| and rank penalty against n/d. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: vec![growth::inflation(&rows), growth::logits_needed(&rows)],
                verdicts: claims::growth::growth(&rows),
            })
        },
    ),
    View::new(
        "phase",
        SyntheticTargets,
        "Rank penalty by w/d and n/d. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            let figures = vec![phase::phase(&rows)];
            Ok(Analysed { tables: rows.tables(), figures, verdicts: vec![] })
        },
    ),
    View::new(
        "controls",
        SyntheticTargets,
        "Rank penalty of a target and of its controls. Needs `tolerance`.",
        |studies| {
            let rows = growth(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: vec![growth::inflation(&rows)],
                verdicts: vec![claims::controls::controls(&rows)],
            })
        },
    ),
    View::new(
        "layouts",
        SyntheticTargets,
        "Error against the logit bound, one line per layout. Needs `caps`.",
        |studies| {
            let rows = layouts(studies)?;
            Ok(Analysed {
                tables: rows.tables(),
                figures: vec![layouts::layouts(&rows)],
                verdicts: vec![claims::layouts::layouts(&rows)],
            })
        },
    ),
];

fn growth(studies: &[MeasuredStudy]) -> Result<Growth, ViewError> {
    Ok(Growth::of(&rows_of::<FitMeasurement>(studies)?)?)
}

fn layouts(studies: &[MeasuredStudy]) -> Result<Layouts, ViewError> {
    Ok(Layouts::of(&rows_of::<FitMeasurement>(studies)?)?)
}
