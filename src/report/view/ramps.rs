//! The view of trained heads against ramps.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::ramp;
use crate::experiments::ramp::tables::Ramps;

pub(super) const RAMP: ViewOf<Ramps> = ViewOf {
    rows: rows::ramps,
    tables: Ramps::tables,
    figures: |ramps, _| vec![ramp::figures::ramp(ramps)],
    verdicts: |ramps, _| vec![ramp::claims::law(ramps)],
};
