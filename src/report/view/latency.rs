//! The view of times of inference.

use super::rows;
use super::view_of::ViewOf;
use crate::experiments::latency;
use crate::experiments::latency::tables::Latencies;

pub(super) const LATENCY: ViewOf<Latencies> = ViewOf {
    rows: rows::latencies,
    tables: Latencies::tables,
    figures: |latencies, _| vec![latency::figures::latency(latencies)],
    verdicts: |latencies, _| vec![latency::claims::latency(latencies)],
};
