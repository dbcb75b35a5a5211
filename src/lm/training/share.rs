//! The share of a step's windows that each worker has.

use std::ops::Range;

use crate::lm::error::require;
use crate::lm::workers::Workers;
use crate::lm::{LmError, TrainDefinition};

/// One worker's share of the windows of a step: as many as every other's, next to each other, and in as few equal parts
/// as hold no more than a batch. A worker alone has all, a batch at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    first: usize,
    parts: usize,
    part: usize,
    world: usize,
}

impl Share {
    /// # Errors
    /// Windows that the workers cannot share evenly.
    pub fn of(definition: &TrainDefinition, workers: &dyn Workers) -> Result<Self, LmError> {
        let world = workers.size();
        let windows = definition.batch * definition.accumulation;
        require(
            windows.is_multiple_of(world),
            "batch",
            definition.batch,
            &format!(
                "must give {world} workers equal shares of the batch × accumulation = {windows} sequences per step; \
                 change either number"
            ),
        )?;
        let mine = windows / world;
        let mut parts = mine.div_ceil(definition.batch);
        while !mine.is_multiple_of(parts) {
            parts += 1;
        }
        Ok(Self { first: workers.rank() * mine, parts, part: mine / parts, world })
    }

    /// The windows of each part, among those of the step.
    pub fn parts(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.parts).map(move |part| {
            let first = self.first + part * self.part;
            first..first + self.part
        })
    }

    /// The windows of one part.
    pub fn at_once(self) -> usize {
        self.part
    }

    /// The parts of all workers together.
    pub fn all_parts(self) -> usize {
        self.parts * self.world
    }
}
