//! The lattices of a model's heads: of all heads or of those with the largest logits.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Corner, Corners, PredictError, Screened, Streams, TrainedHead};
use crate::lm::{HeadProbe, Probed};

/// The settings of the lattices of a model's heads.
pub struct ModelLattice<'a> {
    /// The corners and the search options.
    pub corners: Corners<'a>,
    /// The layers whose heads are fitted.
    pub layers: &'a [usize],
    /// Limit on the number of heads, those of the largest max |logit| on the group's passages; `None` for all heads.
    pub largest: Option<usize>,
    /// The most rows per passage that are fitted.
    pub rows: usize,
}

/// The lattice of one head on one group of passages.
pub struct HeadLattice<'a> {
    /// The index of the group.
    pub group: usize,
    /// The head.
    pub head: &'a TrainedHead,
    /// The head's measurements.
    pub screened: &'a Screened,
    /// The results at its corners.
    pub corners: Vec<Corner>,
}

impl ModelLattice<'_> {
    /// The number of heads that are fitted, in a model with this number of heads per layer.
    pub fn heads_of(&self, heads_of_a_layer: usize) -> usize {
        let all = self.layers.len() * heads_of_a_layer;
        self.largest.map_or(all, |largest| largest.min(all))
    }

    /// Fits the heads on groups of passages and passes each lattice to `found`. Returns `false` if `stop` was set before the
    /// end.
    ///
    /// # Errors
    /// The model cannot read a passage, a head cannot be fitted, or `found` returns an error.
    pub fn run(
        &self,
        model: &dyn Probed,
        groups: &[Vec<Vec<u32>>],
        stop: &AtomicBool,
        mut found: impl FnMut(HeadLattice<'_>) -> Result<(), PredictError>,
    ) -> Result<bool, PredictError> {
        for (group, passages) in groups.iter().enumerate() {
            let mut heads: Vec<(TrainedHead, Screened)> = Vec::new();
            model.each_layer(passages, self.layers, |of_layer| {
                let mut streams = Streams::default();
                for head in 0..model.heads() {
                    let of_head: Vec<&HeadProbe> = of_layer.iter().map(|of| &of[head]).collect();
                    let head = TrainedHead::of_layer(&of_head, Some(self.rows), &mut streams)?;
                    heads.push((head, Screened::of(&of_head, Some(self.rows))?));
                }
                Ok::<_, PredictError>(true)
            })?;
            heads.sort_by(|(_, a), (_, b)| b.max_abs_logit.total_cmp(&a.max_abs_logit));
            heads.truncate(self.heads_of(model.heads()));
            for (head, screened) in &heads {
                let mut goes_on = || !stop.load(Ordering::Relaxed);
                let Some(corners) = head.lattice(&self.corners, &mut goes_on)? else {
                    return Ok(false);
                };
                found(HeadLattice { group, head, screened, corners })?;
            }
        }
        Ok(true)
    }
}
