//! `--shard`: measures one of several shards of the work of `sweep` and `reproduce`, each on its own machine.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use super::analysis::fail_if_missing;
use super::duration::duration;
use super::errors::UsageError;
use super::measuring::{Session, fail_if_unfinished};
use super::stop::end_after;
use super::streams::{say, tell};
use crate::lm::Device;
use crate::study::{Shard, Stages, SweepSummary};
use crate::table::plural;

/// Flags of commands whose cells can be divided between machines.
#[derive(Args, Debug)]
pub struct ShardFlags {
    /// Measure only shard I of N, such as 3/8 [default: all; in an array job, its task's]
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Measure only this stage, from 1, as --plan numbers them
    #[arg(long, value_name = "K")]
    stage: Option<usize>,
    /// Print the stages and their estimated time; run nothing
    #[arg(long)]
    plan: bool,
    /// End this many seconds after a stop signal
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
}

impl ShardFlags {
    /// Returns the request that the flags make.
    ///
    /// # Errors
    /// The scheduler's variables do not identify the shard, or --stage is given without a shard.
    pub fn asked(&self) -> Result<Asked> {
        if let Some(seconds) = self.grace {
            end_after(Duration::from_secs(seconds));
        }
        let of_task = || Shard::of_task(|name| std::env::var(name).ok());
        let shard = match self.shard {
            Some(shard) => shard,
            None => of_task().map_err(anyhow::Error::msg)?.unwrap_or(Shard::WHOLE),
        };
        if self.shard.is_none() && shard != Shard::WHOLE {
            tell(&format!("shard {shard}, from SLURM_ARRAY_TASK_ID"));
        }
        Ok(match (self.plan, shard) {
            (true, _) => Asked::Plan(shard.count()),
            (false, Shard::WHOLE) if self.stage.is_none() => Asked::All,
            // A job with a single task has stages too.
            _ if self.shard.is_none() && shard == Shard::WHOLE => bail!(UsageError(
                "--stage needs a shard; give --shard I/N, or --shard 1/1 for all".to_owned()
            )),
            _ => Asked::Part(Part { shard, stage: self.stage }),
        })
    }
}

/// Request of the flags.
pub enum Asked {
    /// Measure all cells here.
    All,
    /// Measure one shard.
    Part(Part),
    /// Print the plan for this number of shards.
    Plan(usize),
}

/// One shard of all cells, or of the cells of one stage.
#[derive(Clone, Copy)]
pub struct Part {
    shard: Shard,
    stage: Option<usize>,
}

impl Part {
    /// Measures the shard's cells, stage by stage.
    ///
    /// # Errors
    /// The stage does not exist, rows cannot be read or written, or cells failed, were left or wait for other shards.
    pub fn run(self, stages: Stages, threads: usize, device: Device) -> Result<()> {
        let Self { shard, stage } = self;
        let count = stages.count();
        if let Some(stage) = stage.filter(|stage| !(1..=count).contains(stage)) {
            bail!(UsageError(format!(
                "--stage {stage} does not exist ({} in total); see --plan",
                plural(count, "stage")
            )));
        }
        let mut plans = stages.into_part(shard)?;
        if let Some(stage) = stage {
            plans = vec![plans.swap_remove(stage - 1)];
        }
        let works = plans.iter().flatten().map(|plan| plan.work(threads)).collect();
        let mut session = Session::begin(works, threads, device)?;
        for plan in plans.into_iter().flatten() {
            match session.is_stopped() {
                true => {
                    let summary = SweepSummary { left: plan.left(), ..SweepSummary::default() };
                    session.summaries.push((plan.name().to_owned(), summary));
                }
                false => session.add(plan),
            }
        }
        session.progress.finish();
        let Session { summaries, broken, .. } = session;
        let cells: usize = summaries.iter().map(|(_, of)| of.measured + of.skipped).sum();
        say!(
            "shard {shard}: {} of {} done; merge the shards with `rank-study merge`",
            plural(cells, "configuration"),
            plural(summaries.len(), "study")
        );
        fail_if_unfinished(&summaries).and(fail_if_missing(&broken))
    }
}

/// Prints the stages, divided into `parts` shards, with a few lines each.
pub fn show(stages: &Stages, parts: usize) {
    for at in 0..stages.count() {
        let stage = stages.stage(at, parts);
        let left: usize = stage.left.iter().sum();
        say!("stage {}: {}, {left} left", at + 1, plural(stage.costs.len(), "configuration"));
        let loads = stage.loads(parts);
        let most = loads.iter().copied().fold(0.0, f64::max);
        let least = loads.iter().copied().fold(most, f64::min);
        let estimate = match parts {
            1 => format!("estimated {} of one core", duration(most)),
            _ => format!(
                "{parts} shards, estimated {} to {} of one core each",
                duration(least),
                duration(most)
            ),
        };
        say!("  {estimate}");
        let width = stage.studies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, cells) in &stage.studies {
            say!("  {name:<width$}  {}", plural(*cells, "configuration"));
        }
    }
}
