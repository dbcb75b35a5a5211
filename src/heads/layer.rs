//! Fits of the heads of one layer: the logits that their attention needs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::screen::floors;
use super::{HeadMeasurement, Parts, PredictError, TrainedHead};
use crate::lm::{HeadProbe, Probed};
use crate::solver::{SearchOptions, Solution, write_factors};

/// The settings of the fits of a layer's heads.
pub struct LayerFit<'a> {
    /// The layer, from 0.
    pub layer: usize,
    /// The errors ε, in nats.
    pub epsilons: &'a [f64],
    /// The most rows per passage that are fitted.
    pub rows: usize,
    /// Only heads whose max |logit| is above this are fitted; `None` fits all.
    pub above: Option<f64>,
    /// The search options of the fits.
    pub search: SearchOptions,
}

impl LayerFit<'_> {
    /// Screens the heads on groups of passages and fits those whose logits are large enough. Passes the row of each fit, with
    /// its parts, or of each ε of a head that is not fitted, to `found`. Returns `false` if `stop` was set before the end.
    ///
    /// # Errors
    /// The model cannot read a passage, a head cannot be fitted, or `found` returns an error.
    pub fn run(
        &self,
        model: &dyn Probed,
        groups: &[Vec<Vec<u32>>],
        stop: &AtomicBool,
        mut found: impl FnMut(HeadMeasurement, Option<&Parts>) -> Result<(), PredictError>,
    ) -> Result<bool, PredictError> {
        let Self { layer, epsilons, rows, above, search } = *self;
        for (group, passages) in groups.iter().enumerate() {
            let probes = model.probe_layer(passages, layer)?;
            let mut inputs = None;
            for head in 0..model.heads() {
                let of_head: Vec<&HeadProbe> = probes.iter().map(|of| &of[head]).collect();
                let began = Instant::now();
                let mut screened = HeadMeasurement::screened(&of_head, Some(rows))?;
                screened.passage = group;
                // Beside a position bias no queries and keys are fitted.
                let is_biased = screened.bias_range.is_some();
                if is_biased || above.is_some_and(|above| screened.actual <= above) {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(false);
                    }
                    let floors = floors(&of_head, Some(rows), epsilons)?;
                    let wall_time_s = began.elapsed().as_secs_f64() / epsilons.len() as f64;
                    for (&epsilon, floor) in epsilons.iter().zip(floors) {
                        found(screened.at(epsilon, floor, wall_time_s), None)?;
                    }
                    continue;
                }
                let head = TrainedHead::of_layer(&of_head, Some(rows), &mut inputs)?;
                screened.effective_rank_attention = head.effective_rank_attention()?;
                for &epsilon in epsilons {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(false);
                    }
                    let began = Instant::now();
                    let parts = head.parts(epsilon, search)?;
                    let row = screened.fitted(&parts, began.elapsed().as_secs_f64());
                    found(row, Some(&parts))?;
                }
            }
        }
        Ok(true)
    }
}

impl Parts {
    /// Writes the factors, if any, of the fits of `row` into folders whose names give head, passage, rank, ε and kind.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep_factors(&self, row: &HeadMeasurement, folder: &Path) -> Result<(), PredictError> {
        let HeadMeasurement { head, passage, rank, epsilon, .. } = row;
        for (kind, found) in [("free", &self.needed), ("tied", &self.needed_from_input)] {
            if let Some(Solution { factors, .. }) = found.solution() {
                let name = format!("head-{head}-passage-{passage}-rank-{rank}-e{epsilon}-{kind}");
                write_factors(&folder.join(name), factors)?;
            }
        }
        Ok(())
    }
}
