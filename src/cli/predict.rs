//! `rank-study predict`: what trained heads' attention needed of their logits, against what they are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::lm::Device;
use rank_study::row::{HeadFound, Row, Rows};
use rank_study::study::{Plan, Preset, StudyDefinition, stored_lines};
use rank_study::table::significant;
use toml::{Table, Value};

use super::cells::CellsProgress;
use super::duration::span;
use super::stop::{AFTER_CELLS, stop_at_signal};
use super::sweep::{describe, fail_if_unfinished, measure};
use super::threads::ThreadsFlag;
use super::trained::Part;

/// Hold the logits of trained heads against those that their attention needed
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study predict runs/book --text another.txt --out predicted/book
  rank-study predict runs/mhsa runs/ls --text book.txt --split valid --epsilon 0.1,0.01,0.001 \\
      --step 2000 --step 6000 --layer 2 --out predicted/both
  rank-study predict runs/book --text book.txt --filter 'step-6000/layer-0' --out predicted/book

Rows go to DIR/rows.csv and rows.parquet, a row a head and ε:
  actual = floor × inflation × tying × drift × gauge
floor is what logits of any rank need, inflation the price of the head's rank, tying that of one
W_q and W_k for all passages, drift what softmax sees and nothing needed, gauge row shifts, which
softmax does not see. With --rank, also what wider heads would have needed, and what no W_q and W_k
of any width can be without.
Stop it at any time: the next run does only what is missing. N threads measure N cells at a time.")]
pub struct PredictArgs {
    /// Folders of runs that train made
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The text that passages are of: a .txt, a .txt.zst, or a folder of them; none is needed for runs on the
    /// synthetic corpus
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Only this part of the text, divided as a run's definition says
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: Part,
    /// A step whose weights keep_checkpoints kept; may be given more than once, all that are there where none is
    #[arg(long, value_name = "N")]
    step: Vec<usize>,
    /// Errors ε in nats
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [0.01])]
    epsilon: Vec<f64>,
    /// Ranks above a head's own d that its attention is fitted at too: what wider heads would have needed with the same
    /// inputs
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rank: Vec<usize>,
    /// Passages that a head is fitted to at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    passages: usize,
    /// How many times so many passages, at other places of the text, a row each
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: usize,
    /// Tokens of a passage [default: the model's context]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Rows of a passage that are fitted at most, evenly apart: needed logits of some rows are no more than those of
    /// all [default: 1024]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// A layer, from 0; may be given more than once, all where none is
    #[arg(long, value_name = "L")]
    layer: Vec<usize>,
    /// Keep the queries and keys found, as certificates: DIR/CELL/head-H-…/q.npy and k.npy
    #[arg(long)]
    factors: bool,
    /// Only the cells whose name matches: RUN/step-N/layer-L
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// List the cells and whether they are done; fit nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Folder for the rows
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print all rows as one JSON array
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A folder without a run, a text that is wrong or too short, rows that cannot be read or written, heads that
/// failed.
pub fn run(args: &PredictArgs) -> Result<()> {
    let definition = definition(args)?;
    let data = args.out.parent().unwrap_or(Path::new(""));
    let plan = Plan::new(&definition, data, args.filter.as_deref(), args.text.as_deref(), None)?;
    if args.list {
        for (cell, done) in plan.cells() {
            println!("{}  {cell}", if done { "done" } else { "    " });
        }
        return Ok(());
    }
    let threads = args.threads.count(None)?;
    let progress = CellsProgress::new(vec![plan.work(threads)], args.quiet);
    progress.say(&format!(
        "{} cells; {} to go on {threads} threads",
        plan.cells().count(),
        span(progress.left())
    ));
    let stop = stop_at_signal(AFTER_CELLS)?;
    let name = plan.name().to_owned();
    let keys: Vec<String> = plan.cells().map(|(cell, _)| cell.to_owned()).collect();
    let summary = measure(plan, threads, Device::Cpu, stop, &progress);
    progress.finish();
    let summary = summary?;
    if args.json {
        let (columns, lines) = stored_lines(definition.work.kind(), &args.out)?;
        let asked = lines.iter().filter(|line| keys.iter().any(|key| key == line.cell()));
        let all: Vec<serde_json::Value> = asked.map(|line| line.to_json(&columns)).collect();
        println!("{}", serde_json::Value::from(all));
    } else {
        let mut rows = match args.out.join("rows.csv").is_file() {
            true => Rows::<HeadFound>::read(std::slice::from_ref(&args.out))?.rows,
            false => Vec::new(),
        };
        rows.retain(|row| keys.contains(&row.cell));
        print_largest(&rows);
        println!(
            "{}: {}; rows in {}",
            name,
            describe(&summary),
            args.out.join("rows.csv").display()
        );
    }
    fail_if_unfinished(&[(name, summary)])
}

/// The head of the largest logit of each run, step, rank and ε, with its parts.
fn print_largest(rows: &[Row<HeadFound>]) {
    let place = |row: &Row<HeadFound>| {
        (row.of.model.run.clone(), row.of.model.step, row.found.rank, row.found.epsilon)
    };
    let mut largest: Vec<&Row<HeadFound>> = Vec::new();
    for row in rows {
        match largest.iter_mut().find(|other| place(other) == place(row)) {
            Some(other) if row.found.actual > other.found.actual => *other = row,
            Some(_) => {}
            None => largest.push(row),
        }
    }
    println!(
        "{:<16} {:>6} {:>4} {:>7} {:>5} {:>8} {:>7} {:>9} {:>6} {:>6} {:>6}",
        "run",
        "step",
        "rank",
        "ε",
        "head",
        "actual",
        "floor",
        "inflation",
        "tying",
        "drift",
        "gauge"
    );
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| significant(v, 3));
    for Row { of, found, .. } in largest {
        println!(
            "{:<16} {:>6} {:>4} {:>7} {:>5} {:>8} {:>7} {:>9} {:>6} {:>6} {:>6}",
            of.model.run,
            of.model.step.map_or_else(String::new, |step| step.to_string()),
            found.rank,
            found.epsilon,
            format!("{}.{}", of.layer, found.head),
            shown(Some(found.actual)),
            shown(found.floor),
            shown(found.inflation),
            shown(found.tying),
            shown(found.drift),
            shown(found.gauge),
        );
    }
}

/// The study that the flags ask for.
fn definition(args: &PredictArgs) -> Result<StudyDefinition> {
    let name = args.out.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name else {
        bail!("--out {}: name a folder for the rows", args.out.display());
    };
    let mut predict = Table::new();
    let mut set = |key: &str, value: Value| predict.insert(key.to_owned(), value);
    let whole =
        |values: &[usize]| -> Vec<Value> { values.iter().map(|&v| (v as i64).into()).collect() };
    let folders: Vec<Value> =
        args.runs.iter().map(|run| run.display().to_string().into()).collect();
    set("folders", folders.into());
    set("steps", whole(&args.step).into());
    set("epsilon", args.epsilon.clone().into());
    set("ranks", whole(&args.rank).into());
    set("passages", (args.passages as i64).into());
    set("groups", (args.groups as i64).into());
    set("split", args.split.name().into());
    set("layers", whole(&args.layer).into());
    set("factors", args.factors.into());
    for (key, value) in [("tokens", args.tokens), ("rows", args.rows)] {
        if let Some(value) = value {
            set(key, (value as i64).into());
        }
    }
    let mut top = Table::new();
    top.insert("study".to_owned(), name.into());
    top.insert("kind".to_owned(), "predict".into());
    top.insert("predict".to_owned(), predict.into());
    let text = toml::to_string(&top).context("the definition of the flags")?;
    Ok(StudyDefinition::parse(Path::new("the flags"), text, Preset::Paper)?)
}
