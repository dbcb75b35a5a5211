//! `--shard`: measures one of several shards of the work of `sweep` and `reproduce`, each on its own machine.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use super::analysis::fail_if_missing;
use super::errors::UsageError;
use super::measuring::{Session, fail_if_unfinished};
use super::stop::end_after;
use super::streams::say;
use crate::lm::Device;
use crate::study::{Shard, Stages};
use crate::table::plural;

/// Flags of commands whose cells can be divided between machines.
#[derive(Args, Debug)]
pub struct ShardFlags {
    /// Measure only shard I of N, such as 3/8 [default: all]
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Measure only this stage of the shard, from 1
    #[arg(long, value_name = "K", requires = "shard")]
    stage: Option<usize>,
    /// End this many seconds after a stop signal
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
}

impl ShardFlags {
    /// The shard to measure; `None` if all cells are measured here.
    pub fn shard(&self) -> Option<Shard> {
        if let Some(seconds) = self.grace {
            end_after(Duration::from_secs(seconds));
        }
        // A job with a single task has stages too.
        self.shard.filter(|&shard| shard != Shard::WHOLE || self.stage.is_some())
    }

    /// Measures the shard's cells, stage by stage.
    ///
    /// # Errors
    /// The stage does not exist, rows cannot be read or written, or cells failed, were left or wait for other shards.
    pub fn run(&self, shard: Shard, stages: Stages, threads: usize, device: Device) -> Result<()> {
        let count = stages.count();
        if let Some(stage) = self.stage.filter(|stage| !(1..=count).contains(stage)) {
            bail!(UsageError(format!(
                "--stage {stage} does not exist ({} in total)",
                plural(count, "stage")
            )));
        }
        let mut plans = stages.into_part(shard)?;
        if let Some(stage) = self.stage {
            plans = vec![plans.swap_remove(stage - 1)];
        }
        let session = Session::begin(plans.iter().flatten(), threads, device)?;
        let (summaries, broken) = session.measure_all(plans.into_iter().flatten());
        let cells: usize = summaries.iter().map(|(_, of)| of.measured + of.skipped).sum();
        say!(
            "shard {shard}: {} of {} done; merge the shards with `rank-study merge`",
            plural(cells, "configuration"),
            plural(summaries.len(), "study")
        );
        fail_if_unfinished(&summaries).and(fail_if_missing(&broken))
    }
}
