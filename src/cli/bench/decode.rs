//! `rank-study bench decode`: times the prefill and the decoding of one token.

use anyhow::Result;
use clap::Args;

use super::shared::{ModelArgs, TimingFlags, at_least_one};
use crate::experiments::latency::LatencyMeasurement;
use crate::system::peak_rss_bytes;

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
    timing: TimingFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// A size or a name is invalid.
pub(super) fn run(args: &DecodeBench) -> Result<()> {
    at_least_one("--cache", args.cache)?;
    let definition = args.model.definition(args.cache)?;
    let (vocab, repeats) = (args.model.vocab, args.timing.repeats);
    let found = args.timing.run(&format!("tokens after {}", args.cache), || {
        Ok(LatencyMeasurement::measure(&definition, vocab, args.cache, repeats)?)
    })?;
    let sentence = format!(
        "{:.2} ms per token after {} tokens (prefill {:.0} ms, {:.2} MiB of keys and values)",
        1e3 * found.decode_s,
        args.cache,
        1e3 * found.prefill_s,
        found.cache_bytes as f64 / f64::from(1 << 20),
    );
    let found = serde_json::json!({
        "decode_s": found.decode_s, "prefill_s": found.prefill_s, "cache_bytes": found.cache_bytes,
        "parameters": found.parameters, "cache": args.cache,
    });
    args.timing.print(&sentence, args.model.describe(found), peak_rss_bytes())
}
