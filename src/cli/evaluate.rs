//! `rank-study evaluate`: prints the loss of a trained model on a text.

use anyhow::{Context, Result};
use clap::Args;

use super::flags::{JsonFlag, ThreadsFlag, TrainedArgs};
use super::progress::Progress;
use super::streams::say;

/// Print loss and perplexity of a trained model
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study evaluate runs/book --text another.txt
  rank-study evaluate runs/book --text book.txt --split valid --json

Guide: docs/train.md")]
pub struct EvaluateArgs {
    #[command(flatten)]
    of: TrainedArgs,
    #[command(flatten)]
    threads: ThreadsFlag,
    #[command(flatten)]
    json: JsonFlag,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without a run, or an invalid text.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    args.threads.pool(None)?.install(|| evaluate(args))
}

fn evaluate(args: &EvaluateArgs) -> Result<()> {
    let (run, texts) = args.of.read()?;
    let progress = Progress::new(100);
    progress.name(&args.of.run.display().to_string());
    let before = std::cell::Cell::new(0);
    let found = run.evaluate(&texts, args.of.split(), &|done, all| {
        let percent = (100 * done / all.max(1)) as usize;
        progress.advanced(percent - before.replace(percent));
    });
    progress.finish();
    let found = found.with_context(|| args.of.flag())?;
    if args.json.is_set {
        let object = serde_json::json!({
            "tokens": found.tokens,
            "bytes": found.bytes,
            "loss_nats": found.loss_nats,
            "perplexity": found.perplexity(),
            "loss_nats_per_byte": found.loss_nats_per_byte(),
            "perplexity_per_byte": found.perplexity_per_byte(),
            "bits_per_byte": found.bits_per_byte(),
            "text_sha256": texts.sha256(),
        });
        say!("{object}");
        return Ok(());
    }
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    say!("tokens               {}", found.tokens);
    say!("bytes                {}", found.bytes);
    say!("loss_nats            {:.4}", found.loss_nats);
    say!("perplexity           {:.4}", found.perplexity());
    say!("loss_nats_per_byte   {}", shown(found.loss_nats_per_byte()));
    say!("perplexity_per_byte  {}", shown(found.perplexity_per_byte()));
    say!("bits_per_byte        {}", shown(found.bits_per_byte()));
    Ok(())
}
