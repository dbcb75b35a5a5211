//! What each process has of a step's windows.

use std::ops::Range;

use crate::collective::Collective;
use crate::lm::error::require;
use crate::lm::{LmError, TrainDefinition};

/// One rank's share of the windows of a step: as many as every other's, next to each other, and in as few equal parts
/// as hold no more than a batch. A rank alone has all, a batch at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    first: usize,
    parts: usize,
    part: usize,
    world: usize,
}

impl Share {
    /// # Errors
    /// Windows that the ranks cannot share evenly.
    pub fn of(definition: &TrainDefinition, ranks: &dyn Collective) -> Result<Self, LmError> {
        let world = ranks.world();
        let windows = definition.batch * definition.accumulation;
        require(
            windows.is_multiple_of(world),
            "batch",
            definition.batch,
            &format!(
                "batch × accumulation is {windows} sequences per step, which {world} processes cannot \
                 share evenly; change either number"
            ),
        )?;
        let mine = windows / world;
        let mut parts = mine.div_ceil(definition.batch);
        while !mine.is_multiple_of(parts) {
            parts += 1;
        }
        Ok(Self { first: ranks.rank() * mine, parts, part: mine / parts, world })
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

    /// The parts of all ranks together.
    pub fn all_parts(self) -> usize {
        self.parts * self.world
    }
}
