//! `rank-study bench attention`: the attention operator alone.

use std::time::Instant;

use anyhow::Result;
use clap::Args;

use super::shared::{TimingFlags, at_least_one, held, median};
use crate::cli::errors::FlagContext as _;
use crate::cli::flags::{DeviceFlag, dtypes};
use crate::lm::{AttentionEvaluator, Dtype};
use crate::system::peak_rss_bytes;
use crate::targets::Layout;

/// Time the attention operator, forward and backward
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench attention --layout 6xglobal --context 2048 --threads 2
  rank-study bench attention --layout global+5xlocal:50 --context 8192 --json")]
pub(super) struct AttentionBench {
    /// Heads joined by +: global or local:W, with Nx for repeats
    #[arg(long, default_value = "6xglobal")]
    layout: String,
    /// Sequences per step
    #[arg(long, default_value_t = 1, value_name = "B")]
    batch: usize,
    /// Tokens per sequence
    #[arg(long, default_value_t = 2048, value_name = "T")]
    context: usize,
    /// Head dimension d
    #[arg(long, default_value_t = 32, value_name = "D")]
    d_head: usize,
    /// Bound logits z by c·tanh(z/c) [default: no bound]
    #[arg(long, value_name = "C")]
    softcap: Option<f32>,
    #[command(flatten)]
    device: DeviceFlag,
    /// Precision of the computation
    #[arg(long, value_name = "NAME", default_value = "f32", value_parser = dtypes())]
    dtype: Dtype,
    #[command(flatten)]
    timing: TimingFlags,
}

/// Repetitions before timing starts.
const WARM_UP: usize = 2;

/// Runs the subcommand.
///
/// # Errors
/// The layout or a size is invalid.
pub(super) fn run(args: &AttentionBench) -> Result<()> {
    for (flag, found) in
        [("--batch", args.batch), ("--context", args.context), ("--d-head", args.d_head)]
    {
        at_least_one(flag, found)?;
    }
    let layout: Layout = args.layout.parse().flag("--layout")?;
    let sizes = (args.batch, args.context, args.d_head);
    let evaluator =
        AttentionEvaluator::new(&layout, sizes, args.softcap, 0).flag("--softcap, --batch")?;
    let evaluator = evaluator.on(args.device.device, args.dtype)?;
    let what = format!("repetitions after {WARM_UP} of warm-up");
    let (forward_s, backward_s) =
        args.timing.run(&what, || time(&evaluator, args.timing.repeats))?;
    let [forward, backward] = [forward_s, backward_s].map(|s| 1e3 * s);
    let found = serde_json::json!({
        "attention_s": forward_s + backward_s, "forward_s": forward_s, "backward_s": backward_s,
        "layout": args.layout, "batch": args.batch, "context": args.context, "d_head": args.d_head,
        "softcap": args.softcap, "device": args.device.device.name(), "dtype": args.dtype.name(),
    });
    let peak = peak_rss_bytes();
    let sentence = format!("forward {forward:.2} ms, backward {backward:.2} ms{}", held(peak));
    args.timing.print(&sentence, found, peak)
}

/// Returns the median times of forward and backward, in seconds.
fn time(evaluator: &AttentionEvaluator, repeats: usize) -> Result<(f64, f64)> {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    for repeat in 0..WARM_UP + repeats {
        let started = Instant::now();
        let backward_pass = evaluator.forward()?;
        let between = Instant::now();
        backward_pass()?;
        if repeat >= WARM_UP {
            forward.push((between - started).as_secs_f64());
            backward.push(between.elapsed().as_secs_f64());
        }
    }
    Ok((median(forward), median(backward)))
}
