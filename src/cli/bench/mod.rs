//! `rank-study bench`: how long one evaluation, training step, attention or decoded token takes.

mod attention;
mod decode;
mod fit;
mod model;
mod step;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use rank_study::system::peak_rss_bytes;

use super::threads::pool;

/// Time what the program spends its time on
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench fit --n 2048 --rank 64 --dtype f32 --threads 2
  rank-study bench step --arm ls --batch 1 --context 2048 --threads 2
  rank-study bench attention --layout 5xlocal:50+global --context 4096
  rank-study bench decode --arm ls --cache 8192")]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
    /// Nothing on standard error but errors
    #[arg(long, global = true)]
    quiet: bool,
}

#[derive(Subcommand, Debug)]
enum What {
    Fit(fit::FitBench),
    Step(step::StepBench),
    Attention(attention::AttentionBench),
    Decode(decode::DecodeBench),
}

/// Runs the subcommand.
///
/// # Errors
/// Sizes or names that are wrong, as each kind of work says.
pub fn run(args: &BenchArgs) -> Result<()> {
    match &args.what {
        What::Fit(what) => fit::run(what, args.quiet),
        What::Step(what) => step::run(what, args.quiet),
        What::Attention(what) => attention::run(what, args.quiet),
        What::Decode(what) => decode::run(what, args.quiet),
    }
}

/// Refuses a flag's 0.
fn at_least_one(flag: &str, found: usize) -> Result<()> {
    if found == 0 {
        bail!("{flag} is 0; give at least 1");
    }
    Ok(())
}

/// The median of the seconds that each of `repeats` runs of `work` takes.
fn median_seconds(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let time = |_| {
        let started = Instant::now();
        work()?;
        Ok(started.elapsed().as_secs_f64())
    };
    Ok(median((0..repeats).map(time).collect::<Result<_>>()?))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    0.5 * (times[(times.len() - 1) / 2] + times[times.len() / 2])
}

/// The most memory that the process has held, for the end of a line.
fn held() -> String {
    peak_rss_bytes().map_or_else(String::new, |bytes| {
        format!(", at most {:.0} MiB held", bytes as f64 / f64::from(1 << 20))
    })
}
