//! `rank-study bench step`: times one training step.

use anyhow::{Result, bail};
use clap::Args;

use super::shared::{ModelArgs, TimingFlags, held, median_seconds};
use crate::cli::flags::{DeviceFlag, dtypes};
use crate::lm::{Alone, Corpus, Dtype, TrainDefinition, Trainer};

/// Time one training step
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench step --variant mhsa --batch 4 --context 512 --threads 2
  rank-study bench step --variant ls --batch 1 --context 4096 --set positions=rope --json")]
pub(super) struct StepBench {
    #[command(flatten)]
    model: ModelArgs,
    /// Sequences per step
    #[arg(long, default_value_t = 1, value_name = "B")]
    batch: usize,
    /// Tokens per sequence
    #[arg(long, default_value_t = 2048, value_name = "T")]
    context: usize,
    #[command(flatten)]
    device: DeviceFlag,
    /// Precision of the computation
    #[arg(long, value_name = "NAME", default_value = "f32", value_parser = dtypes())]
    dtype: Dtype,
    #[command(flatten)]
    timing: TimingFlags,
}

/// Steps before timing starts, for allocation, page faults and the thread pool.
const WARM_UP: usize = 2;

/// Runs the subcommand.
///
/// # Errors
/// A size or name is invalid, or this build does not support the device.
pub(super) fn run(args: &StepBench) -> Result<()> {
    let definition = definition(args)?;
    let corpus = Corpus::synthetic(&definition)?;
    Trainer::check_room(&definition, &corpus, args.device.device, &Alone)?;
    let mut trainer = Trainer::new(&definition, &corpus, args.device.device)?;
    let mut loss_nats = f64::NAN;
    let step_s = args.timing.run(&format!("steps after {WARM_UP} of warm-up"), || {
        let mut step = || {
            loss_nats = trainer.step()?.loss_nats;
            Ok(())
        };
        for _ in 0..WARM_UP {
            step()?;
        }
        median_seconds(args.timing.repeats, step)
    })?;
    if !loss_nats.is_finite() {
        bail!(
            "the loss is {loss_nats} after the last step, so no step updated the model; lower --set \
             learning_rate=…"
        );
    }
    let tokens_per_s = (args.batch * args.context) as f64 / step_s;
    let ms = 1e3 * step_s;
    let sentence = format!("{ms:.1} ms per step, {tokens_per_s:.0} tokens per second{}", held());
    let found = serde_json::json!({
        "step_s": step_s, "tokens_per_s": tokens_per_s, "loss_nats": loss_nats,
        "parameters": trainer.model().parameters(), "batch": args.batch, "context": args.context,
        "device": args.device.device.name(), "dtype": args.dtype.name(),
    });
    args.timing.print(&sentence, args.model.describe(found))
}

fn definition(args: &StepBench) -> Result<TrainDefinition> {
    Ok(TrainDefinition {
        batch: args.batch,
        dtype: args.dtype,
        ..args.model.definition(args.context)?
    })
}
