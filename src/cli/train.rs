//! `rank-study train`: trains one language model.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::{Corpus, StepRecord, TrainDefinition};

use super::progress::Progress;
use super::sweep::stop_at_interrupt;

/// Train one language model, with every head's logits watched
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study train analysis/nanogpt-small.toml --text shakespeare.txt --out runs/small
  rank-study train analysis/nanogpt-small.toml --set arm=ls --set window=16 --out runs/ls

Without --text, the model reads a seeded synthetic corpus of known entropy. DIR gets steps.csv,
heads.parquet, eval.csv, manifest.toml and checkpoint/training.safetensors.")]
pub struct TrainArgs {
    /// The run's definition
    definition: PathBuf,
    /// The text to learn
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// A key of the definition with another value; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Folder for the run's files
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A definition, key or text that is wrong; a folder that holds another run or cannot be written.
pub fn run(args: &TrainArgs) -> Result<()> {
    let definition = definition(args)?;
    let (corpus, source) = match &args.text {
        None => (Corpus::synthetic(&definition)?, "synthetic".to_owned()),
        Some(path) => {
            let bytes = std::fs::read(path)
                .with_context(|| format!("--text: cannot read {}", path.display()))?;
            let corpus = Corpus::from_text(&definition, &bytes)
                .with_context(|| format!("--text {}", path.display()))?;
            (corpus, path.display().to_string())
        }
    };
    if args.out.join("steps.csv").exists() {
        bail!("--out {} already holds a run; name another folder", args.out.display());
    }
    let progress = Progress::new(definition.steps as f64, args.quiet);
    progress.study(&args.out.display().to_string());
    let stop = stop_at_interrupt("stopping after this step")?;
    let on_step = |record: &StepRecord| progress.step(record);
    let result = rank_study::train(&definition, &corpus, &source, &args.out, stop, &on_step);
    progress.finish();
    let result = result.context("--out")?;
    let summary = &result.summary;
    if args.json {
        let object = serde_json::json!({
            "outcome": result.outcome(),
            "steps": summary.steps,
            "parameters": summary.parameters,
            "train_loss_nats": result.train_loss_nats,
            "valid_loss_nats": summary.valid_loss_nats,
            "max_abs_logit": summary.max_abs_logit,
            "wall_time_s": summary.wall_time_s,
        });
        println!("{object}");
        return Ok(());
    }
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    println!("outcome           {}", result.outcome());
    println!("steps             {} of {}", summary.steps, definition.steps);
    println!("parameters        {}", summary.parameters);
    println!("train_loss_nats   {}", shown(result.train_loss_nats));
    println!("valid_loss_nats   {}", shown(summary.valid_loss_nats));
    println!("max_abs_logit     {}", shown(summary.max_abs_logit));
    println!("wall_time_s       {:.1}", summary.wall_time_s);
    println!("files             {}", args.out.display());
    Ok(())
}

fn definition(args: &TrainArgs) -> Result<TrainDefinition> {
    let path = args.definition.display();
    let text =
        std::fs::read_to_string(&args.definition).with_context(|| format!("cannot read {path}"))?;
    let mut definition = TrainDefinition::from_toml(&text).with_context(|| path.to_string())?;
    for set in &args.sets {
        let (key, value) =
            set.split_once('=').with_context(|| format!("--set {set}: write KEY=VALUE"))?;
        definition.set(key.trim(), value.trim()).with_context(|| format!("--set {set}"))?;
    }
    Ok(definition)
}
