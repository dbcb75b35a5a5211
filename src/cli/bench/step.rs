//! `rank-study bench step`: times one training step.

use anyhow::{Result, bail};
use clap::Args;
use ndarray::{Array2, Axis};
use rayon::prelude::*;

use super::shared::{ModelArgs, TimingFlags, held, median_seconds};
use crate::cli::flags::{DeviceFlag, dtypes};
use crate::lm::{Alone, Arm, Corpus, Device, Dtype, TrainDefinition, Trainer};
use crate::numerics::multiply;
use crate::system::peak_rss_bytes;
use crate::targets::Visibility;

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
    let (step_s, peak, product_rate) =
        args.timing.run(&format!("steps after {WARM_UP} of warm-up"), || {
            let mut step = || {
                loss_nats = trainer.step()?.loss_nats;
                Ok(())
            };
            for _ in 0..WARM_UP {
                step()?;
            }
            let seconds = median_seconds(args.timing.repeats, step)?;
            // Before the product, whose matrices are no part of a step.
            let peak = peak_rss_bytes();
            let has_limit =
                matches!(args.device.device, Device::Cpu) && args.dtype == Dtype::Float32;
            Ok((seconds, peak, has_limit.then(rate_of_a_large_product).transpose()?))
        })?;
    if !loss_nats.is_finite() {
        bail!(
            "the loss is {loss_nats} after the last step, so no step updated the model; lower --set \
             learning_rate=…"
        );
    }
    let tokens_per_s = (args.batch * args.context) as f64 / step_s;
    let ms = 1e3 * step_s;
    let flop = flops(&definition);
    let rate = flop.map(|flop| flop / step_s);
    let share = rate.zip(product_rate).map(|(rate, product)| rate / product);
    let of_product = match (rate, share) {
        (Some(rate), Some(share)) => {
            format!(
                ", {:.0} GFLOP/s, {:.0} % of a large product's rate",
                1e-9 * rate,
                100.0 * share
            )
        }
        _ => String::new(),
    };
    let sentence = format!(
        "{ms:.1} ms per step, {tokens_per_s:.0} tokens per second{of_product}{}",
        held(peak)
    );
    let found = serde_json::json!({
        "step_s": step_s, "tokens_per_s": tokens_per_s, "loss_nats": loss_nats,
        "parameters": trainer.model().parameters(), "batch": args.batch, "context": args.context,
        "device": args.device.device.name(), "dtype": args.dtype.name(),
        "flop": flop, "flop_per_s": rate, "product_flop_per_s": product_rate, "share_of_product": share,
    });
    args.timing.print(&sentence, args.model.describe(found), peak)
}

fn definition(args: &StepBench) -> Result<TrainDefinition> {
    Ok(TrainDefinition {
        batch: args.batch,
        dtype: args.dtype,
        ..args.model.definition(args.context)?
    })
}

/// Floating-point operations of the products of one step, forward and backward, for a model of plain blocks: a
/// multiplication and an addition each, at every weight 3 times per token, and 6 products at every pair of query and key that a head
/// sees. What the program computes twice to save memory counts once. `None` for other blocks.
fn flops(definition: &TrainDefinition) -> Option<f64> {
    if definition.arm == Arm::Gam || definition.recursions > 1 {
        return None;
    }
    let (width, n, d) = (definition.d_model, definition.context, definition.head_dimension());
    // Queries, keys, values and the output projection; the two layers of four times the width.
    let of_block = 4 * width * definition.heads * d + 8 * width * width;
    let weights = definition.layers * of_block + width * definition.corpus.vocabulary_size();
    let tokens = definition.tokens_per_step();
    let pairs: usize = definition
        .head_kinds()
        .iter()
        .flatten()
        .flat_map(|kind| (0..n).map(|row| kind.columns(row, n, Visibility::Causal).len()))
        .sum();
    let of_weights = 3.0 * tokens as f64 * weights as f64;
    let of_pairs = 6.0 * (tokens / n) as f64 * pairs as f64 * d as f64;
    Some(2.0 * (of_weights + of_pairs))
}

/// Floating-point operations per second of this program's own product of square float32 matrices of this order, its rows shared
/// among the threads; the median of seven.
fn rate_of_a_large_product() -> Result<f64> {
    const ORDER: usize = 2048;
    let filled = |by: usize| {
        Array2::from_shape_fn((ORDER, ORDER), |(i, j)| ((by * i + j) as f32 * 0.37).sin())
    };
    let (a, b) = (filled(31), filled(17));
    let mut c = Array2::<f32>::zeros((ORDER, ORDER));
    let rows = ORDER.div_ceil(rayon::current_num_threads());
    let seconds = median_seconds(7, || {
        let parts: Vec<_> =
            c.axis_chunks_iter_mut(Axis(0), rows).zip(a.axis_chunks_iter(Axis(0), rows)).collect();
        parts.into_par_iter().for_each(|(c, a)| multiply(a, b.view(), c));
        Ok(())
    })?;
    Ok(2.0 * (ORDER as f64).powi(3) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_weights_and_of_visible_pairs() {
        let mut definition = TrainDefinition {
            layers: 2,
            d_model: 8,
            heads: 2,
            context: 4,
            batch: 3,
            ..TrainDefinition::default()
        };
        definition.corpus.alphabet = 2;
        let vocabulary = definition.corpus.vocabulary_size();
        // 12 d_model² weights a block; ten pairs in each of four heads of dimension 4.
        let weights = 2 * 12 * 64 + 8 * vocabulary;
        let expected = 6 * 12 * weights + 12 * 3 * 2 * 2 * 10 * 4;
        assert_eq!(flops(&definition), Some(expected as f64));
        definition.set("arm", "local-only").unwrap();
        definition.window = 1;
        let local = 6 * 12 * weights + 12 * 3 * 2 * 2 * 4 * 4;
        assert_eq!(flops(&definition), Some(local as f64), "each token sees itself");
        definition.recursions = 2;
        assert_eq!(flops(&definition), None);
    }
}
