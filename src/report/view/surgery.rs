//! Views of trained models whose heads attend otherwise.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::interventions;
use crate::experiments::interventions::tables::Surgeries;

pub(super) const SURGERY: ViewOf<Surgeries> = ViewOf {
    rows: rows::surgeries,
    tables: Surgeries::tables,
    figures: |surgeries, _| {
        interventions::figures::loss_against_epsilon(surgeries).into_iter().collect()
    },
    verdicts: |surgeries, _| interventions::claims::surgery(surgeries),
};

pub(super) const GLOBAL_HEADS: ViewOf<Surgeries> = ViewOf {
    rows: rows::surgeries,
    tables: Surgeries::tables,
    figures: |surgeries, _| {
        interventions::figures::loss_against_size(surgeries).into_iter().collect()
    },
    verdicts: |surgeries, _| interventions::claims::global_heads(surgeries),
};
