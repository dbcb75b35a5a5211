//! `rank-study predict`: what trained heads' attention needed of their logits, against what they are.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rank_study::row::{HeadFound, Row};
use rank_study::study::Plan;
use rank_study::table::significant;

use super::measuring::{describe, fail_if_unfinished};
use super::predictions::{Asked, Predicted, print_json, rows_of};
use super::streams::say;
use super::threads::ThreadsFlag;
use super::trained::Part;

/// Hold the logits of trained heads against those that their attention needed
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study predict runs/book --text another.txt --out predicted/book
  rank-study predict runs/mhsa runs/ls --text book.txt --split valid --tolerance 0.1,0.01,0.001 \\
      --step 2000 --step 6000 --layer 2 --out predicted/both
  rank-study predict runs/book --text book.txt --filter 'step-6000/layer-0' --out predicted/book
  rank-study predict runs/book --text book.txt --above 20 --out predicted/large

Rows go to DIR/rows.csv and rows.parquet, a row a head and ε:
  actual = floor × inflation × tying × drift × gauge
floor is what logits of any rank need, inflation the price of the head's rank, tying that of one
W_q and W_k for all passages, drift what softmax sees and nothing needed, gauge row shifts, which
softmax does not see. With --rank, also what wider heads would have needed, and what no W_q and W_k
of any width can be without.
Stop it at any time: the next run does only what is missing. N threads measure N cells at a time.")]
pub struct PredictArgs {
    /// Folders of runs that train made or of models from elsewhere, .gguf files, files of exported heads
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The text that passages are of: a .txt, a .txt.zst, or a folder of them; none is needed for runs on the
    /// synthetic corpus, and exported heads have passages of their own
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
    tolerance: Vec<f64>,
    /// Ranks above a head's own d that its attention is fitted at too: what wider heads would have needed with the same
    /// inputs
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rank: Vec<usize>,
    /// Passages that a head is fitted to at once [default: 2, or all that a file of exported heads has]
    #[arg(long, value_name = "N")]
    passages: Option<usize>,
    /// How many times so many passages, at other places of the text, a row each
    #[arg(long, value_name = "N", default_value_t = 1)]
    groups: usize,
    /// Tokens of a passage [default: the model's context, or all of an exported one]
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Rows of a passage that are fitted at most, evenly apart: needed logits of some rows are no more than those of
    /// all [default: 1024]
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// A layer, from 0; may be given more than once, all where none is
    #[arg(long, value_name = "L")]
    layer: Vec<usize>,
    /// Fit only heads whose max |logit| is above so many nats; the others get rows of what they are, without what they
    /// needed [default: all are fitted]
    #[arg(long, value_name = "NATS", conflicts_with = "screen")]
    above: Option<f64>,
    /// Fit no head: what each is, and its floor, in seconds
    #[arg(long)]
    screen: bool,
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
    let asked = Asked {
        folders: &args.runs,
        steps: &args.step,
        epsilons: &args.tolerance,
        ranks: &args.rank,
        passages: args.passages,
        groups: args.groups,
        tokens: args.tokens,
        rows: args.rows,
        split: args.split,
        layers: &args.layer,
        above: args.above.or(args.screen.then_some(f64::INFINITY)),
        factors: args.factors,
    };
    let definition = asked.definition(&args.out)?;
    let data = args.out.parent().unwrap_or(Path::new(""));
    let plan = Plan::new(&definition, data, args.filter.as_deref(), args.text.as_deref(), None)?;
    if args.list {
        for (cell, done) in plan.cells() {
            say!("{}  {cell}", if done { "done" } else { "    " });
        }
        return Ok(());
    }
    let threads = args.threads.count(None)?;
    let Predicted { name, keys, summary } = Predicted::by(plan, threads, args.quiet)?;
    if args.json {
        print_json(&definition, &args.out, &keys)?;
    } else {
        print_largest(&rows_of(&args.out, &keys)?);
        say!("{}: {}; rows in {}", name, describe(&summary), args.out.join("rows.csv").display());
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
    say!(
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
        say!(
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
