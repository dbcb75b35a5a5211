//! `rank-study diagnose`: shows a model's heads on one page.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::errors::UsageError;
use super::flags::{JsonFlag, SPLITS, ThreadsFlag};
use super::measuring::{describe, fail_if_unfinished};
use super::predict::{self, HeadsAsked, print_json, rows_of};
use super::streams::say;
use crate::experiments::PASSAGES_OF_A_GROUP;
use crate::heads::{Passages, fitted_above, largest_logits};
use crate::lm::{Probed, Texts};
use crate::report::{DiagnosedModel, Diagnosis, MOST_TOKENS, READING};
use crate::run::{Manifest, ModelSource};
use crate::study::Plan;
use crate::system::{printable, write_whole};
use crate::table::significant;

/// Largest default number of tokens per passage.
const TOKENS: usize = 1024;

/// Show a model's heads on a page and list suspicious ones
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study diagnose models/all-MiniLM-L6-v2 --text book.txt --tokens 128 --out looked/minilm
  rank-study diagnose runs/book --text book.txt --step 500 --step 6000 --out looked/book
  rank-study diagnose runs/mhsa --compare runs/ls --text book.txt --out looked/both

Writes DIR/index.html (works offline) and DIR/rows.csv. Guide: docs/diagnose.md")]
pub struct DiagnoseArgs {
    /// Model or run, a .gguf file, exported heads or their folder
    model: PathBuf,
    /// Read this text: a .txt, .bin, .zst or folder of them [default: the run's corpus]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Show this model too (repeatable)
    #[arg(long, value_name = "OTHER")]
    compare: Vec<PathBuf>,
    /// Use the weights kept at this step (repeatable) [default: all]
    #[arg(long, value_name = "N")]
    step: Vec<usize>,
    /// Find the least max |logit| within this error (KL, nats)
    #[arg(long, value_name = "EPS", default_value_t = 0.01)]
    tolerance: f64,
    /// Fit each head to this many passages at once [default: 2]
    #[arg(long, value_name = "N")]
    passages: Option<usize>,
    /// Use this many tokens per passage [default: the shortest context, at most 1024]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Use only this layer, from 0 (repeatable) [default: all]
    #[arg(long, value_name = "L")]
    layer: Vec<usize>,
    /// Fit only heads whose max |logit| is above this
    #[arg(long, value_name = "L", default_value_t = 20.0, conflicts_with = "all")]
    above: f64,
    /// Fit at most this many heads, those with the largest logits
    #[arg(long, value_name = "N", default_value_t = 16, conflicts_with = "all")]
    most: usize,
    /// Fit every head
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Write to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    json: JsonFlag,
}

/// Maximum number of sentences printed, so that they and the files fit on a screen.
const MOST_LINES: usize = 27;

/// Runs the subcommand.
///
/// # Errors
/// A folder without a model, an invalid or too short text, rows that cannot be read or written, or failed heads.
pub fn run(args: &DiagnoseArgs) -> Result<()> {
    let paths = [&args.model].into_iter().chain(&args.compare);
    let folders: Vec<PathBuf> = paths.flat_map(|path| models_at(path)).collect();
    let sources = sources(&folders)?;
    let tokens = tokens(args.tokens, &sources)?;
    let texts = (args.text.as_deref())
        .map(|text| Texts::find(text, None).with_context(|| format!("--text {}", text.display())))
        .transpose()?;
    let read = |model: &dyn Probed| {
        let passages = args
            .passages
            .unwrap_or_else(|| model.own_passages().map_or(PASSAGES_OF_A_GROUP, <[_]>::len));
        Ok(Passages { groups: 1, passages, tokens, split: None }
            .of(model, texts.as_ref())?
            .remove(0))
    };
    let pool = args.threads.pool(None)?;
    let above = match args.all {
        true => None,
        false => Some(pool.install(|| above(args, &sources, &read))?),
    };
    let asked = HeadsAsked {
        folders: &folders,
        steps: &args.step,
        epsilon: &[args.tolerance],
        passages: args.passages,
        groups: 1,
        tokens: Some(tokens),
        rows: None,
        bits: None,
        split: SPLITS[0],
        layers: &args.layer,
        above,
        factors: false,
    };
    let definition = asked.definition(&args.out)?;
    let data = args.out.parent().unwrap_or(Path::new(""));
    let plan = Plan::new(&definition, data, None, args.text.as_deref(), None)?;
    let threads = args.threads.count(None)?;
    let name = plan.name().to_owned();
    let (keys, summary) = predict::measured(plan, threads)?;
    let described = describe(&summary, "layer");
    fail_if_unfinished(&[(name, summary)])?;

    let mut models = DiagnosedModel::of(&rows_of(&args.out, &keys)?);
    pool.install(|| look(&mut models, &sources, &read))?;
    let fitted = models.iter().flat_map(|model| &model.heads).map(|head| head.found.passages).max();
    let diagnosis = Diagnosis {
        models,
        measured: measured(args, fitted.unwrap_or(0), tokens, above)?,
        files: vec!["rows.csv", "rows.parquet", "manifest.toml"],
    };
    let page = args.out.join("index.html");
    let text = diagnosis
        .page(&format!("rank-study {}", env!("CARGO_PKG_VERSION")))
        .and_then(|text| write_whole(&page, text.as_bytes()));
    text.with_context(|| format!("--out: cannot write {}", page.display()))?;
    if args.json.is_set {
        print_json(&definition, &args.out, &keys)?;
    } else {
        let heads = || diagnosis.models.iter().flat_map(|model| &model.heads);
        let has_factors = heads().any(|head| head.found.needed.is_some());
        let reading = READING.iter().filter(|_| has_factors).map(|&line| line.to_owned()).collect();
        let lines = [diagnosis.conclusion(), reading, diagnosis.worries()].concat();
        lines.iter().take(MOST_LINES).for_each(|line| say!("{}", printable(line)));
        if lines.len() > MOST_LINES {
            say!("{} more sentences are on the page.", lines.len() - MOST_LINES);
        }
        say!("");
        say!("page  {}", page.display());
        say!("rows  {} ({described})", args.out.join("rows.csv").display());
    }
    Ok(())
}

/// A model, the name of its folder and the steps whose weights are available.
struct Source {
    name: String,
    model: ModelSource,
    steps: Vec<Option<usize>>,
}

/// The files of exported heads in a folder that holds neither a model nor a run, in the order of their names; else the
/// path itself.
fn models_at(path: &Path) -> Vec<PathBuf> {
    let is_model = ["config.json", "manifest.toml"].iter().any(|name| path.join(name).exists());
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_some_and(|ending| ending == "safetensors"))
        .collect();
    files.sort();
    if is_model || files.is_empty() { vec![path.to_owned()] } else { files }
}

/// Opens the models. Their folder names must differ, because rows identify models by these names.
fn sources(folders: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for folder in folders {
        let (model, steps) =
            ModelSource::in_folder(folder).with_context(|| folder.display().to_string())?;
        let name = folder.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy());
        if sources.iter().any(|other| other.name == name) {
            bail!(
                "--compare {}: another model has the folder name {name} too; rename one",
                folder.display()
            );
        }
        sources.push(Source { name: name.into_owned(), model, steps });
    }
    Ok(sources)
}

/// Number of tokens per passage: the value of --tokens, or the shortest context but at most [`TOKENS`].
fn tokens(asked: Option<usize>, sources: &[Source]) -> Result<usize> {
    let context = sources.iter().map(|source| source.model.context()).min().unwrap_or(TOKENS);
    match asked {
        None => Ok(context.min(TOKENS)),
        Some(tokens) if (1..=context.min(MOST_TOKENS)).contains(&tokens) => Ok(tokens),
        Some(tokens) => {
            bail!(UsageError(format!(
                "--tokens must be 1 to {}, the shortest context of the models ({tokens} found)",
                context.min(MOST_TOKENS)
            )))
        }
    }
}

/// Reads the passages of a model.
type Read<'r> = dyn Fn(&dyn Probed) -> Result<Vec<Vec<u32>>> + Sync + 'r;

/// Logit above which heads are fitted: `--above`, or a larger value that leaves at most `--most` heads.
fn above(args: &DiagnoseArgs, sources: &[Source], read: &Read<'_>) -> Result<f64> {
    let mut largest = Vec::new();
    for Source { model, steps, .. } in sources {
        let asked = |step: &&Option<usize>| {
            args.step.is_empty() || step.is_none_or(|step| args.step.contains(&step))
        };
        for &step in steps.iter().filter(asked) {
            let layers: Vec<usize> = match &args.layer[..] {
                [] => (0..model.layers()).collect(),
                // Layers that the model does not have are reported when the cells are built.
                some => some.iter().copied().filter(|&layer| layer < model.layers()).collect(),
            };
            let weights = model.weights(step, None)?;
            let passages = read(&*weights)?;
            largest.extend(largest_logits(&*weights, &passages, &layers)?);
        }
    }
    Ok(fitted_above(largest, args.above, args.most))
}

/// Computes the details of each model's heads on its first passage.
fn look(models: &mut [DiagnosedModel], sources: &[Source], read: &Read<'_>) -> Result<()> {
    let heads = models.iter().map(|model| model.heads.len()).sum();
    for one in models {
        let source = sources.iter().find(|source| source.name == one.name);
        let Some(Source { model, .. }) = source else { continue };
        let weights = model.weights(one.step, None)?;
        let passages = read(&*weights)?;
        one.look(&*weights, &passages[0], heads)?;
    }
    Ok(())
}

/// Describes the measurement, from the flags and the manifest of the rows.
fn measured(
    args: &DiagnoseArgs,
    passages: usize,
    tokens: usize,
    above: Option<f64>,
) -> Result<Vec<(&'static str, String)>> {
    let manifest = Manifest::read(&args.out.join("manifest.toml"))?;
    let folders: Vec<String> = [&args.model]
        .into_iter()
        .chain(&args.compare)
        .map(|path| path.display().to_string())
        .collect();
    let mut told = vec![("Models", folders.join(", "))];
    if args.text.is_some() {
        let (text, hash) = (manifest.text("text"), manifest.text("text_sha256"));
        told.push(("Text", format!("{text}, SHA-256 {hash}")));
    }
    told.extend([
        (
            "Passages",
            format!("{passages} of {tokens} tokens; pictures, keys and text show the first"),
        ),
        (
            "Error ε",
            format!(
                "{} nats: the mean KL divergence per row between attention and fit",
                args.tolerance
            ),
        ),
        (
            "Fitted",
            match above {
                None => "every head".to_owned(),
                Some(above) => format!(
                    "heads whose max |logit| is above {}, at most {}; other heads have logits and floor \
                     only",
                    significant(above, 3),
                    args.most
                ),
            },
        ),
        ("Command", manifest.command.clone()),
    ]);
    Ok(told)
}
