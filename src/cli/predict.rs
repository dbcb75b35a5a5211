//! `rank-study predict`: compares the logits of trained heads with the logits that their attention needs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::errors::{FlagContext as _, UsageError};
use super::flags::{BitsFlag, JsonFlag, SPLITS, ThreadsFlag};
use super::measuring::{Session, describe, fail_if_unfinished, list_cells};
use super::streams::say;
use crate::experiment::check_study_name;
use crate::experiments::heads::HeadMeasurement;
use crate::lm::Device;
use crate::record::{Row, Rows};
use crate::solver::check_tolerance;
use crate::study::{Plan, Preset, StudyDefinition, SweepSummary, stored_lines};
use crate::table::Table;
use crate::table::groups::greatest_of_each;

/// Compare the logits of trained heads with what they need
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study predict runs/book --text another.txt --out predicted/book
  rank-study predict runs/mhsa runs/ls --text book.txt --split valid --tolerance 0.1,0.01,0.001 \\
      --step 2000 --step 6000 --layer 2 --out predicted/both
  rank-study predict runs/book --text book.txt --above 20 --out predicted/large

Writes DIR/rows.csv and rows.parquet, one row per head and error. Guide: docs/diagnose.md")]
pub struct PredictArgs {
    /// Folders of runs or models, .gguf files, or files of exported heads
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Read this text: a .txt, .bin, .zst or folder of them [default: the run's corpus]
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Use only this split of the text
    #[arg(long, value_name = "NAME", default_value = SPLITS[0], value_parser = SPLITS)]
    split: String,
    /// Use the weights kept at this step (repeatable) [default: all]
    #[arg(long, value_name = "N")]
    step: Vec<usize>,
    /// Find the least max |logit| within this error (KL, nats)
    #[arg(long, value_name = "EPS,…", value_delimiter = ',', default_values_t = [0.01])]
    tolerance: Vec<f64>,
    /// Fit each head to this many passages at once [default: 2]
    #[arg(long, value_name = "N")]
    passages: Option<usize>,
    /// Repeat with this many groups of other passages
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: usize,
    /// Use this many tokens per passage [default: the context]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Fit at most this many rows per passage [default: 1024]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    #[command(flatten)]
    bits: BitsFlag,
    /// Use only this layer, from 0 (repeatable) [default: all]
    #[arg(long, value_name = "L")]
    layer: Vec<usize>,
    /// Fit only heads whose max |logit| is above this [default: all]
    #[arg(long, value_name = "L", conflicts_with = "screen")]
    above: Option<f64>,
    /// Fit no head; write logits and floors only
    #[arg(long)]
    screen: bool,
    /// Write the queries and keys that the fits find
    #[arg(long)]
    factors: bool,
    /// Use only configurations whose name matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// List the configurations and whether they are done; run nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Write to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    json: JsonFlag,
}

/// Maximum number of lines printed, so that they and the files fit on a screen.
const MOST_LINES: usize = 24;

/// Runs the subcommand.
///
/// # Errors
/// A folder without a run, an invalid or too short text, rows that cannot be read or written, or failed heads.
pub fn run(args: &PredictArgs) -> Result<()> {
    let asked = HeadsAsked {
        folders: &args.runs,
        steps: &args.step,
        epsilon: &args.tolerance,
        passages: args.passages,
        groups: args.groups,
        tokens: args.tokens,
        rows: args.rows,
        bits: args.bits.bits(),
        split: &args.split,
        layers: &args.layer,
        above: args.above.or(args.screen.then_some(f64::INFINITY)),
        factors: args.factors,
    };
    let definition = asked.definition(&args.out)?;
    let data = args.out.parent().unwrap_or(Path::new(""));
    let plan = Plan::new(&definition, data, args.filter.as_deref(), args.text.as_deref(), None)?;
    if args.list {
        list_cells(&plan);
        return Ok(());
    }
    let threads = args.threads.count(None)?;
    let name = plan.name().to_owned();
    let (keys, summary) = measured(plan, threads)?;
    if args.json.is_set {
        print_json(&definition, &args.out, &keys)?;
    } else {
        print_largest(&rows_of(&args.out, &keys)?);
        let told = describe(&summary, "configuration");
        say!("{name}: {told}; rows in {}", args.out.join("rows.csv").display());
    }
    fail_if_unfinished(&[(name, summary)])
}

/// Prints the factors of the head with the largest logit for each run, step, rank and ε.
fn print_largest<'r>(rows: &'r [Row<HeadMeasurement>]) {
    let place = |row: &'r Row<HeadMeasurement>| {
        (&row.of.model.run, row.of.model.step, row.found.rank, row.found.epsilon)
    };
    let largest = greatest_of_each(rows, place, |row| row.found.actual);
    let more = largest.len().saturating_sub(MOST_LINES);
    let shown = largest.iter().copied().take(MOST_LINES);
    let title = "Largest max |logit| = floor × rank penalty × input × excess × shift";
    let table = Table::from_items("largest", title, shown)
        .words("run", "run", |row| &row.of.model.run)
        .numbers("step", "step", |row| row.of.model.step)
        .numbers("rank", "rank", |row| row.found.rank)
        .settings("epsilon", "ε", |row| row.found.epsilon)
        .numbers("layer", "layer", |row| row.of.layer)
        .numbers("head", "head", |row| row.found.head)
        .numbers("actual", "max |logit|", |row| row.found.actual)
        .numbers("floor", "floor", |row| row.found.floor)
        .numbers("inflation", "rank penalty", |row| row.found.inflation)
        .numbers("input_factor", "input", |row| row.found.input_factor)
        .numbers("excess_factor", "excess", |row| row.found.excess_factor)
        .numbers("shift_factor", "shift", |row| row.found.shift_factor)
        .build();
    say!("{}", table.to_markdown());
    if more > 0 {
        say!("{more} more lines are in the rows");
    }
}

/// The table `[predict]` that the flags make; keys that are `None` are left out.
#[derive(Serialize)]
pub struct HeadsAsked<'a> {
    pub folders: &'a [PathBuf],
    pub steps: &'a [usize],
    pub epsilon: &'a [f64],
    pub passages: Option<usize>,
    pub groups: usize,
    pub tokens: Option<usize>,
    pub rows: Option<usize>,
    pub bits: Option<usize>,
    pub split: &'a str,
    pub layers: &'a [usize],
    /// Only heads whose max |logit| is above this are fitted; all if `None`.
    pub above: Option<f64>,
    pub factors: bool,
}

impl HeadsAsked<'_> {
    /// Builds a study definition with the name of the folder `out`.
    pub fn definition(&self, out: &Path) -> Result<StudyDefinition> {
        self.epsilon.iter().try_for_each(|&e| check_tolerance(e)).flag("--tolerance")?;
        let Some(name) = out.file_name().map(|name| name.to_string_lossy()) else {
            bail!("--out {} has no folder name; name a folder for the rows", out.display());
        };
        check_study_name("the last part of --out", &name).map_err(UsageError)?;
        let asked = toml::to_string(self).context("cannot write the definition of the flags")?;
        // The search runs in float32; reported values are computed in float64.
        let text = format!(
            "study = {name:?}\nkind = \"predict\"\n\n[predict]\n{asked}\n[search]\ndtype = \"f32\"\n"
        );
        Ok(StudyDefinition::parse(Path::new("the flags"), text, Preset::Paper)?)
    }
}

/// Measures the missing cells of a plan, with an estimate of the time and a progress bar. Returns all its cells,
/// including those measured before.
pub fn measured(plan: Plan, threads: usize) -> Result<(Vec<String>, SweepSummary)> {
    let session = Session::begin([&plan], threads, Device::Cpu)?;
    session.progress.say(&session.ahead);
    let keys = plan.cells().map(|(cell, _)| cell.to_owned()).collect();
    let summary = session.measure(plan);
    session.progress.finish();
    Ok((keys, summary?))
}

/// Reads the rows of the cells `keys` from a folder, without failed ones; empty if there is no file yet.
pub fn rows_of(folder: &Path, keys: &[String]) -> Result<Vec<Row<HeadMeasurement>>> {
    if !folder.join("rows.csv").is_file() {
        return Ok(Vec::new());
    }
    let mut rows = Rows::<HeadMeasurement>::read(&[folder.to_owned()])?.rows;
    rows.retain(|row| keys.contains(&row.cell));
    Ok(rows)
}

/// Prints the rows of the cells `keys` as one JSON array.
pub fn print_json(definition: &StudyDefinition, folder: &Path, keys: &[String]) -> Result<()> {
    let (columns, lines) = stored_lines(definition.work.kind(), folder)?;
    let asked = lines.iter().filter(|line| keys.iter().any(|key| key == line.cell()));
    let all: Vec<serde_json::Value> = asked.map(|line| line.to_json(&columns)).collect();
    say!("{}", serde_json::Value::from(all));
    Ok(())
}
