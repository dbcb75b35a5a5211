//! Distribution of a step's windows over the workers.

use std::ops::Range;

use crate::lm::error::require;
use crate::lm::workers::Workers;
use crate::lm::{LmError, TrainDefinition};

/// One worker's share of the windows of a step: contiguous, of the same size for all workers, and split into as few equal
/// parts as fit into a batch each. A single worker has all windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    first: usize,
    parts: usize,
    part: usize,
    world: usize,
}

impl Share {
    /// The share of this worker.
    ///
    /// # Errors
    /// A number of windows that is not a multiple of the number of workers.
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

    /// The windows of each part, as ranges of the step's windows.
    pub fn parts(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.parts).map(move |part| {
            let first = self.first + part * self.part;
            first..first + self.part
        })
    }

    /// Number of windows per part.
    pub fn at_once(self) -> usize {
        self.part
    }

    /// Number of parts of all workers together.
    pub fn all_parts(self) -> usize {
        self.parts * self.world
    }
}
