//! The lattices of a model's heads, of all or of those whose logits are largest.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Corner, Corners, PredictError, Screened, Streams, TrainedHead};
use crate::lm::{HeadProbe, Probed};

/// What is asked of a model's heads.
pub struct ModelLattice<'a> {
    /// The corners, and how they are searched.
    pub corners: Corners<'a>,
    /// The layers whose heads are looked at.
    pub layers: &'a [usize],
    /// Only so many heads, those of the largest max |logit| on the group's passages; all where there is no number.
    pub largest: Option<usize>,
    /// Rows of a passage that are fitted at most.
    pub rows: usize,
}

/// The lattice of one head on one group of passages.
pub struct HeadLattice<'a> {
    /// The group's place.
    pub group: usize,
    /// The head.
    pub head: &'a TrainedHead,
    /// What it is.
    pub screened: &'a Screened,
    /// What its attention needed.
    pub corners: Vec<Corner>,
}

impl ModelLattice<'_> {
    /// The heads of a model of so many a layer that are fitted.
    pub fn heads_of(&self, heads_of_a_layer: usize) -> usize {
        let all = self.layers.len() * heads_of_a_layer;
        self.largest.map_or(all, |largest| largest.min(all))
    }

    /// Fits the heads on groups of passages and hands each lattice to `found`. Returns whether it came to the end,
    /// rather than being stopped between two fits.
    ///
    /// # Errors
    /// A passage that the model cannot read, heads that no fit can be held against, and those of `found`.
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
