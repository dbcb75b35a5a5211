//! `rank-study bench fit`: times one evaluation of the fit's objective and gradient.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::shared::{TimingFlags, held, median_seconds};
use crate::cli::errors::{FlagContext as _, UsageError};
use crate::solver::{Evaluator, Factors, Precision, Problem, read_factors};
use crate::system::peak_rss_bytes;
use crate::targets::{Family, Layout, Parameters, Target, Visibility};

/// Logit bound, and weight of the penalty on logits beyond it.
const PENALTY: (f64, f64) = (4.0, 0.1);

/// Time one evaluation of the fit's objective and gradient
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study bench fit --n 2048 --rank 64 --dtype f32 --threads 2
  rank-study bench fit --n 65536 --rank 64 --layout local:50 --json")]
pub(super) struct FitBench {
    /// Number of rows and columns
    #[arg(long)]
    n: usize,
    /// Fit logits of this rank: the head dimension d
    #[arg(long, value_name = "D")]
    rank: NonZeroUsize,
    /// Width of a band or a local head, in tokens
    #[arg(long, default_value_t = 50, value_name = "W")]
    window: usize,
    /// Heads joined by +: global or local:W, with Nx for repeats
    #[arg(long, default_value = "global")]
    layout: String,
    /// Precision of the computation
    #[arg(long, default_value = "f64", value_name = "NAME", value_parser = ["f32", "f64"])]
    dtype: String,
    /// Read the matrix from this file
    #[arg(long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// Start from q.npy and k.npy in this folder
    #[arg(long, value_name = "DIR")]
    factors: Option<PathBuf>,
    #[command(flatten)]
    timing: TimingFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// A size, layout, dtype or file is invalid.
pub(super) fn run(args: &FitBench) -> Result<()> {
    let precision: Precision = args.dtype.parse().flag("--dtype")?;
    let target = match &args.target {
        Some(path) => Target::read(path, Visibility::Causal).context("--target")?,
        None => {
            let band = Parameters { window: Some(args.window), ..Parameters::default() };
            let family = Family::from_parameters("dirichlet-band", &band).flag("--window")?;
            family.build(args.n, 0, Visibility::Causal).flag("--n")?
        }
    };
    if target.n() != args.n {
        bail!(UsageError(format!(
            "--n must be the size of --target ({} rows, --n is {}); give --n {0}",
            target.n(),
            args.n
        )));
    }
    let layout: Layout = args.layout.parse().flag("--layout")?;
    let problem = Problem::new(target, layout, args.rank.get()).flag("--rank")?;
    let factors: Option<Factors> =
        args.factors.as_deref().map(read_factors).transpose().context("--factors")?;
    let (eval_s, value, gradient) = args.timing.run("repetitions after one of warm-up", || {
        time(&problem, precision, factors.as_ref(), args.timing.repeats)
    })?;
    let side = args.n * args.rank.get();
    let norm = |half: usize| {
        gradient
            .chunks_exact(2 * side)
            .flat_map(|pair| &pair[half * side..(half + 1) * side])
            .map(|g| g * g)
            .sum::<f64>()
            .sqrt()
    };
    let found = serde_json::json!({
        "eval_s": eval_s, "value": value, "gradient_q_norm": norm(0), "gradient_k_norm": norm(1),
        "n": args.n, "rank": args.rank, "window": args.window, "layout": args.layout, "dtype": args.dtype,
    });
    let peak = peak_rss_bytes();
    args.timing.print(&format!("{:.3} ms per evaluation{}", 1e3 * eval_s, held(peak)), found, peak)
}

/// Returns the median time in seconds, the objective and its gradient.
fn time(
    problem: &Problem,
    precision: Precision,
    factors: Option<&Factors>,
    repeats: usize,
) -> Result<(f64, f64, Vec<f64>)> {
    let mut evaluator =
        Evaluator::new(problem, precision, factors, PENALTY).context("--factors")?;
    let value = evaluator.evaluate();
    let median = median_seconds(repeats, || {
        evaluator.evaluate();
        Ok(())
    })?;
    Ok((median, value, evaluator.gradient().to_vec()))
}
