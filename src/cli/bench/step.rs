//! `rank-study bench step`: times one training step.

use anyhow::{Result, bail};
use clap::Args;

use super::shared::{ModelArgs, at_least_one, held, median_seconds};
use crate::cli::flags::{DeviceFlag, JsonFlag, ThreadsFlag, dtypes};
use crate::cli::streams::{inform, say};
use crate::lm::{Alone, Corpus, Dtype, TrainDefinition, Trainer};
use crate::system::peak_rss_bytes;
use crate::table::plural;

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
    threads: ThreadsFlag,
    /// Time this many repetitions, after a warm-up
    #[arg(long, default_value_t = 10, value_name = "R")]
    repeats: usize,
    #[command(flatten)]
    json: JsonFlag,
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
    let (threads, pool) = args.threads.counted_pool()?;
    inform(&format!(
        "timing {} steps after {WARM_UP} of warm-up on {}",
        args.repeats,
        plural(threads, "thread")
    ));
    let mut loss_nats = f64::NAN;
    let step_s = pool.install(|| {
        let mut step = || {
            loss_nats = trainer.step()?.loss_nats;
            Ok(())
        };
        for _ in 0..WARM_UP {
            step()?;
        }
        median_seconds(args.repeats, step)
    })?;
    if !loss_nats.is_finite() {
        bail!(
            "the loss is {loss_nats} after the last step, so no step updated the model; lower --set \
             learning_rate=…"
        );
    }
    let tokens_per_s = (args.batch * args.context) as f64 / step_s;
    if args.json.is_set {
        let object = serde_json::json!({
            "step_s": step_s, "tokens_per_s": tokens_per_s, "peak_rss_bytes": peak_rss_bytes(),
            "loss_nats": loss_nats, "parameters": trainer.model().parameters(),
            "arm": args.model.variant, "batch": args.batch, "context": args.context,
            "layers": args.model.layers, "d_model": args.model.d_model, "heads": args.model.heads,
            "vocab": args.model.vocab, "window": args.model.window, "device": args.device.device.name(),
            "dtype": args.dtype.name(),
            "threads": threads, "repeats": args.repeats, "version": env!("CARGO_PKG_VERSION"),
        });
        say!("{object}");
    } else {
        let ms = 1e3 * step_s;
        say!("{ms:.1} ms per step, {tokens_per_s:.0} tokens per second{}", held());
    }
    Ok(())
}

fn definition(args: &StepBench) -> Result<TrainDefinition> {
    at_least_one("--repeats", args.repeats)?;
    Ok(TrainDefinition {
        batch: args.batch,
        dtype: args.dtype,
        ..args.model.definition(args.context)?
    })
}
