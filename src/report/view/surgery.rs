//! Views of trained models whose heads attend otherwise.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::Surgeries;

pub(super) const SURGERY: ViewOf<Surgeries> = ViewOf {
    rows: rows::surgeries,
    tables: Surgeries::tables,
    figures: |surgeries, _| figure::loss_against_epsilon(surgeries).into_iter().collect(),
    verdicts: |surgeries, _| claims::surgery::surgery(surgeries),
};

pub(super) const GLOBAL_HEADS: ViewOf<Surgeries> = ViewOf {
    rows: rows::surgeries,
    tables: Surgeries::tables,
    figures: |surgeries, _| figure::loss_against_size(surgeries).into_iter().collect(),
    verdicts: |surgeries, _| claims::surgery::global_heads(surgeries),
};
