//! The view of trained heads against ramps.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::Ramps;

pub(super) const RAMP: ViewOf<Ramps> = ViewOf {
    rows: rows::ramps,
    tables: Ramps::tables,
    figures: |ramps, _| vec![figure::ramp(ramps)],
    verdicts: |ramps, _| vec![claims::ramp::law(ramps)],
};
