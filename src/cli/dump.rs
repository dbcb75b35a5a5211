//! `rank-study dump`: writes the attention of a trained model's heads as matrices.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use super::errors::UsageError;
use super::flags::{ThreadsFlag, TrainedArgs};
use super::streams::inform;
use crate::lm::{HeadProbe, LmError, Probed as _};
use crate::run::TrainedRun;
use crate::system::disk::make_folders;
use crate::system::{check_disk, check_memory};
use crate::targets::write_matrix;

/// Write the attention matrices of a trained model
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study dump runs/book --text another.txt --tokens 256 --out matrices
  rank-study dump runs/book --text book.txt --split valid --layer 0 --head 3 --what logits \\
      --format safetensors --out matrices
  rank-study fit --target matrices/layer-0-head-3.npy --rank 16 --tolerance 0.01 --out fits/0-3

Writes one n × n float64 matrix per head. Guide: docs/train.md")]
pub struct DumpArgs {
    #[command(flatten)]
    of: TrainedArgs,
    /// Use this many tokens per passage [default: the context]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Start the passage at this token
    #[arg(long, default_value_t = 0, value_name = "N")]
    first: usize,
    /// Use only this layer, from 0 (repeatable) [default: all]
    #[arg(long, value_name = "L")]
    layer: Vec<usize>,
    /// Use only this head, from 0 (repeatable) [default: all]
    #[arg(long, value_name = "H")]
    head: Vec<usize>,
    /// Write attention P or logits QKᵀ/√d
    #[arg(long, value_name = "WHAT", default_value = "attention")]
    what: What,
    /// Write files of this format
    #[arg(long, value_name = "NAME", default_value = "npy", value_parser = ["npy", "csv", "parquet", "safetensors"])]
    format: String,
    /// Write to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    threads: ThreadsFlag,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Attention,
    Logits,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without a run, an invalid or too short text, or heads that the model does not have.
pub fn run(args: &DumpArgs) -> Result<()> {
    args.threads.pool(None)?.install(|| dump(args))
}

fn dump(args: &DumpArgs) -> Result<()> {
    let (run, texts) = args.of.read()?;
    let tokens = args.tokens.unwrap_or_else(|| run.context());
    if tokens == 0 || tokens > run.context() {
        bail!(UsageError(format!(
            "--tokens must be 1 to {}, the model's context ({tokens} found)",
            run.context()
        )));
    }
    let (first, needed) = (args.first, args.first.saturating_add(tokens));
    let read = run.tokens(Some(&texts), args.of.split(), needed).with_context(|| args.of.flag())?;
    let Some(passage) = read.get(first..needed) else {
        return Err(LmError::too_few("the text", read.len(), needed, "tokens"))
            .with_context(|| args.of.flag());
    };
    check_room(args, &run, tokens)?;
    let probes = run.probe(passage).with_context(|| args.of.flag())?;
    for (flag, chosen, most) in [
        ("--layer", &args.layer, probes.iter().map(|p| p.layer).max()),
        ("--head", &args.head, probes.iter().map(|p| p.head).max()),
    ] {
        if let (Some(&wrong), Some(most)) = (chosen.iter().find(|&&i| Some(i) > most), most) {
            bail!(UsageError(format!("{flag} must be 0 to {most} ({wrong} found)")));
        }
    }
    let is_chosen = |chosen: &[usize], index| chosen.is_empty() || chosen.contains(&index);
    make_folders(&args.out)
        .with_context(|| format!("--out {}: cannot create the folder", args.out.display()))?;
    for probe in probes {
        if is_chosen(&args.layer, probe.layer) && is_chosen(&args.head, probe.head) {
            let path = write(&probe, args)?;
            inform(&format!("{}: {}", path.display(), probe.kind));
        }
    }
    Ok(())
}

/// Checks that one matrix fits in memory, and that all fit on the disk if the format stores every number in full.
fn check_room(args: &DumpArgs, run: &TrainedRun, tokens: usize) -> Result<()> {
    let chosen = |some: &[usize], all: usize| match some {
        [] => all,
        some => some.iter().filter(|&&index| index < all).count(),
    };
    let heads = chosen(&args.layer, run.layers()) * chosen(&args.head, run.heads());
    let of_one = (tokens as f64).powi(2) * size_of::<f64>() as f64;
    check_memory(of_one).map_err(|room| {
        UsageError(format!("--tokens {tokens}: one matrix needs {room}; give fewer"))
    })?;
    let is_packed = ["csv", "parquet"].contains(&args.format.as_str());
    let all = if is_packed { 0.0 } else { heads as f64 * of_one };
    check_disk(&args.out, all).map_err(|room| {
        anyhow!("--out: the matrices of {heads} heads need {room}; choose some with --layer and --head, or \
                 lower --tokens")
    })
}

fn write(probe: &HeadProbe, args: &DumpArgs) -> Result<PathBuf> {
    let matrix = match args.what {
        What::Attention => probe.attention(),
        What::Logits => probe.logits(),
    };
    let name = format!("layer-{}-head-{}.{}", probe.layer, probe.head, args.format);
    let path = args.out.join(name);
    write_matrix(&matrix, &path)?;
    Ok(path)
}
