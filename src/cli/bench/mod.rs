//! `rank-study bench`: times one evaluation, training step, attention operation or decoded token.

mod attention;
mod decode;
mod fit;
mod shared;
mod step;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Time the parts of the program
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench fit --n 2048 --rank 64 --dtype f32 --threads 2
  rank-study bench step --variant ls --batch 1 --context 2048 --threads 2
  rank-study bench attention --layout 5xlocal:50+global --context 4096
  rank-study bench decode --variant ls --cache 8192")]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
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
/// A size or a name is invalid.
pub fn run(args: &BenchArgs) -> Result<()> {
    match &args.what {
        What::Fit(what) => fit::run(what),
        What::Step(what) => step::run(what),
        What::Attention(what) => attention::run(what),
        What::Decode(what) => decode::run(what),
    }
}
