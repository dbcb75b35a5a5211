//! The view of times of inference.

use super::rows;
use super::view_of::ViewOf;
use crate::claims;
use crate::figure;
use crate::table::Latencies;

pub(super) const LATENCY: ViewOf<Latencies> = ViewOf {
    rows: rows::latencies,
    tables: Latencies::tables,
    figures: |latencies, _| vec![figure::latency(latencies)],
    verdicts: |latencies, _| vec![claims::latency::latency(latencies)],
};
