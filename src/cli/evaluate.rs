//! `rank-study evaluate`: a trained model on a text.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use rank_study::{Observer as _, Split, Texts, TrainedRun};

use super::progress::Progress;

/// Loss and perplexity of a trained model on a text, per token and per byte
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study evaluate runs/book --text another.txt
  rank-study evaluate runs/book --text book.txt --split valid --json

Every token but a document's first is predicted once, in windows of a context without overlap.")]
pub struct EvaluateArgs {
    /// The folder of a run that `train` made
    run: PathBuf,
    /// The text: a .txt, a .txt.zst, or a folder of them, each a document
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Only this part of the text, divided as the run's definition says
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: Part,
    /// The weights that keep_checkpoints kept of this step, in place of the last ones
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Part {
    All,
    Train,
    Valid,
    Test,
}

impl Part {
    /// The split, or none for the whole text.
    pub fn split(self) -> Option<Split> {
        match self {
            Self::All => None,
            Self::Train => Some(Split::Train),
            Self::Valid => Some(Split::Valid),
            Self::Test => Some(Split::Test),
        }
    }
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without a run, or a text that is wrong.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    let run = TrainedRun::read(&args.run, args.step)?;
    let texts =
        Texts::find(&args.text, None).with_context(|| format!("--text {}", args.text.display()))?;
    let split = args.split.split();
    let progress = Progress::new(1.0, args.quiet);
    progress.study(&args.run.display().to_string());
    let before = std::cell::Cell::new(0.0);
    let found = run.evaluate(&texts, split, &|done, all| {
        let share = done as f64 / all.max(1) as f64;
        progress.advanced(share - before.replace(share));
    });
    progress.finish();
    let found = found.with_context(|| format!("--text {}", args.text.display()))?;
    if args.json {
        let object = serde_json::json!({
            "tokens": found.tokens,
            "bytes": found.bytes,
            "loss_nats": found.loss_nats,
            "perplexity": found.perplexity(),
            "loss_nats_per_byte": found.loss_nats_per_byte(),
            "perplexity_per_byte": found.perplexity_per_byte(),
            "text_sha256": texts.sha256(),
        });
        println!("{object}");
        return Ok(());
    }
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    println!("tokens               {}", found.tokens);
    println!("bytes                {}", found.bytes);
    println!("loss_nats            {:.4}", found.loss_nats);
    println!("perplexity           {:.4}", found.perplexity());
    println!("loss_nats_per_byte   {}", shown(found.loss_nats_per_byte()));
    println!("perplexity_per_byte  {}", shown(found.perplexity_per_byte()));
    Ok(())
}
