//! `rank-study bench decode`: times the prefill and the decoding of one token.

use anyhow::Result;
use clap::Args;

use super::shared::{ModelArgs, at_least_one};
use crate::cli::flags::{JsonFlag, ThreadsFlag};
use crate::cli::streams::{inform, say};
use crate::experiments::latency::LatencyMeasurement;
use crate::table::plural;

/// Time the decoding of one token after a prefill
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench decode --variant mhsa --cache 8192 --threads 2
  rank-study bench decode --variant ls --window 100 --cache 8192 --json")]
pub(super) struct DecodeBench {
    #[command(flatten)]
    model: ModelArgs,
    /// Read this many tokens before timing
    #[arg(long, default_value_t = 2048, value_name = "N")]
    cache: usize,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Time this many repetitions, after a warm-up
    #[arg(long, default_value_t = 50, value_name = "R")]
    repeats: usize,
    #[command(flatten)]
    json: JsonFlag,
}

/// Runs the subcommand.
///
/// # Errors
/// A size or a name is invalid.
pub(super) fn run(args: &DecodeBench) -> Result<()> {
    at_least_one("--cache", args.cache)?;
    at_least_one("--repeats", args.repeats)?;
    let definition = args.model.definition(args.cache)?;
    let (threads, pool) = args.threads.counted_pool()?;
    inform(&format!(
        "timing {} tokens after {} on {}",
        args.repeats,
        args.cache,
        plural(threads, "thread")
    ));
    let found = pool.install(|| {
        LatencyMeasurement::measure(&definition, args.model.vocab, args.cache, args.repeats)
    })?;
    if args.json.is_set {
        let object = serde_json::json!({
            "decode_s": found.decode_s, "prefill_s": found.prefill_s,
            "cache_bytes": found.cache_bytes,
            "parameters": found.parameters, "arm": args.model.variant, "cache": args.cache,
            "layers": args.model.layers, "d_model": args.model.d_model, "heads": args.model.heads,
            "vocab": args.model.vocab, "window": args.model.window, "threads": threads,
            "repeats": args.repeats, "version": env!("CARGO_PKG_VERSION"),
        });
        say!("{object}");
    } else {
        say!(
            "{:.2} ms per token after {} tokens (prefill {:.0} ms, {:.2} MiB of keys and values)",
            1e3 * found.decode_s,
            args.cache,
            1e3 * found.prefill_s,
            found.cache_bytes as f64 / f64::from(1 << 20),
        );
    }
    Ok(())
}
