//! The heads of one layer, each held against what its attention needed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Actual, Parts, PredictError, TrainedHead};
use crate::fit::{AnyRank, SearchOptions, write_factors};
use crate::lm::{HeadProbe, Probed};

/// What is asked of the heads of a layer.
pub struct LayerFit<'a> {
    /// The layer, from 0.
    pub layer: usize,
    /// The errors ε, in nats.
    pub epsilons: &'a [f64],
    /// Larger ranks at which each head is fitted, beside its own.
    pub ranks: &'a [usize],
    /// Rows of a passage that are fitted at most.
    pub rows: usize,
    /// How the fits search.
    pub search: SearchOptions,
}

/// One head on one group of passages, at one rank and one ε.
pub struct FittedHead<'a> {
    /// The group's place.
    pub group: usize,
    /// The head, at its own rank or a larger one.
    pub head: &'a TrainedHead,
    /// What it is, at its own rank.
    pub actual: &'a Actual,
    /// What its attention needed.
    pub parts: Parts,
    /// The same at any rank, where larger ranks were asked for and it is defined.
    pub any_rank: Option<&'a AnyRank>,
    /// Seconds that the parts took.
    pub wall_time_s: f64,
}

impl LayerFit<'_> {
    /// The fits of each head on each group of passages.
    pub fn fits_of_a_head(&self) -> usize {
        self.epsilons.len() * (1 + self.ranks.len())
    }

    /// Fits the heads on groups of passages and hands each fit to `found`. Returns whether it came to the end,
    /// rather than being stopped between two fits.
    ///
    /// # Errors
    /// A passage that the model cannot read, heads that no fit can be held against, and those of `found`.
    pub fn run(
        &self,
        model: &dyn Probed,
        groups: &[Vec<Vec<u32>>],
        stop: &AtomicBool,
        mut found: impl FnMut(FittedHead<'_>) -> Result<(), PredictError>,
    ) -> Result<bool, PredictError> {
        let Self { layer, epsilons, ranks, rows, search } = *self;
        for (group, passages) in groups.iter().enumerate() {
            let probes: Vec<Vec<HeadProbe>> =
                passages.iter().map(|passage| model.probe(passage)).collect::<Result<_, _>>()?;
            for head in 0..model.heads() {
                let is_of_head = |probe: &&HeadProbe| (probe.layer, probe.head) == (layer, head);
                let of_head: Vec<_> = probes.iter().flatten().filter(is_of_head).collect();
                let trained = TrainedHead::new(&of_head, Some(rows))?;
                let actual = trained.actual()?;
                let mut any_rank = Vec::new();
                if !ranks.is_empty() {
                    for &epsilon in epsilons {
                        any_rank.push(trained.at_any_rank(epsilon, search)?);
                    }
                }
                let wider: Vec<TrainedHead> =
                    ranks.iter().map(|&rank| trained.at_rank(rank)).collect::<Result<_, _>>()?;
                for head in [&trained].into_iter().chain(&wider) {
                    for (at, &epsilon) in epsilons.iter().enumerate() {
                        if stop.load(Ordering::Relaxed) {
                            return Ok(false);
                        }
                        let started = Instant::now();
                        let parts = head.parts(&actual, epsilon, search)?;
                        let wall_time_s = started.elapsed().as_secs_f64();
                        let any_rank = any_rank.get(at).and_then(Option::as_ref);
                        let actual = &actual;
                        found(FittedHead { group, head, actual, parts, any_rank, wall_time_s })?;
                    }
                }
            }
        }
        Ok(true)
    }
}

impl FittedHead<'_> {
    /// Writes the factors that were found, where there are any, into folders named for head, passage, rank, ε and
    /// kind.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn keep_factors(&self, folder: &Path) -> Result<(), PredictError> {
        let Self { group, head, parts, .. } = self;
        for (kind, found) in [("free", &parts.needed), ("tied", &parts.needed_tied)] {
            if let Some(factors) = &found.factors {
                let (at, rank, epsilon) = (head.head, head.rank(), parts.epsilon);
                let name = format!("head-{at}-passage-{group}-rank-{rank}-e{epsilon}-{kind}");
                write_factors(&folder.join(name), factors)?;
            }
        }
        Ok(())
    }
}
