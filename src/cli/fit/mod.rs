//! `rank-study fit`: fits low-rank logits to one target.

mod job;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};

use self::job::Place;
use super::family::FamilyFlags;
use super::streams::{inform, say};
use crate::cli::errors::{FlagContext as _, UsageError};
use crate::cli::flags::{JsonFlag, ThreadsFlag};
use crate::experiments::fits::FrontierRow;
use crate::record::{Line, columns_of};
use crate::report::{fit_conclusion, is_at_cap};
use crate::solver::{Outcome, Problem, SearchOptions, check_cap, check_tolerance};
use crate::table::significant;
use crate::targets::Layout;

/// Fit low-rank logits to a target matrix
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("goal").required(true))]
#[command(after_help = "\
Examples:
  rank-study fit --family dirichlet-band --window 32 --n 128 --rank 8 --max-logit 4,8,16 \\
      --out fits/band
  rank-study fit --target attention.npy --rank 16 --tolerance 0.05 --out fits/mine
  rank-study fit --target attention.npy --rank 8 --layout local:24+global --max-logit 4,8 \\
      --out fits/split

Writes DIR/frontier.csv and the queries and keys of each row. Guide: docs/fit.md")]
pub struct FitArgs {
    /// Fit logits of this rank: the head dimension d
    #[arg(long, value_name = "D")]
    rank: NonZeroUsize,
    /// Find the least error within each of these logit bounds
    #[arg(long, value_name = "L,…", value_delimiter = ',', group = "goal")]
    max_logit: Vec<f64>,
    /// Find the least max |logit| within this error (KL, nats)
    #[arg(long, value_name = "EPS", group = "goal")]
    tolerance: Option<f64>,
    /// Heads joined by +: global or local:W, with Nx for repeats
    #[arg(long, default_value = "global")]
    layout: String,
    /// Search from this many starts [default: 12, up to 48 for small problems]
    #[arg(long, value_name = "N")]
    starts: Option<usize>,
    /// Stop each search after this many iterations
    #[arg(long, value_name = "N", default_value_t = SearchOptions::default().fine.iterations)]
    iterations: usize,
    /// Precision of the computation
    #[arg(long, default_value = "f64", value_name = "NAME", value_parser = ["f32", "f64"])]
    dtype: String,
    /// Stop once the error within one bound is this (KL, nats)
    #[arg(long, value_name = "KL", conflicts_with = "tolerance")]
    stop_at: Option<f64>,
    /// Write to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    threads: ThreadsFlag,
    #[command(flatten)]
    json: JsonFlag,
    // Last, because its help heading applies to all flags after it.
    #[command(flatten)]
    family: FamilyFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// An invalid target, rank, logit bound or layout; a folder that cannot be written; a signal that stops the fit, after
/// everything found is saved.
pub fn run(args: &FitArgs) -> Result<()> {
    args.threads.pool(None)?.install(|| fit(args))
}

fn fit(args: &FitArgs) -> Result<()> {
    let caps = &args.max_logit;
    caps.iter().try_for_each(|&cap| check_cap(cap)).flag("--max-logit")?;
    args.tolerance.map_or(Ok(()), check_tolerance).flag("--tolerance")?;
    if args.starts == Some(0) {
        bail!(UsageError("--starts must be at least 1".to_owned()));
    }
    if args.iterations == 0 {
        bail!(UsageError("--iterations must be at least 1".to_owned()));
    }
    if let Some(kl_nats) = args.stop_at {
        check_tolerance(kl_nats).flag("--stop-at")?;
        if caps.len() != 1 {
            bail!(UsageError(format!(
                "--stop-at needs one logit bound ({} found); give one --max-logit",
                caps.len()
            )));
        }
    }
    let layout: Layout = args.layout.parse().flag("--layout")?;
    let precision = args.dtype.parse().flag("--dtype")?;
    let problem = Problem::new(args.family.target()?, layout, args.rank.get()).flag("--rank")?;
    if args.rank.get() >= problem.n() {
        let (rank, n) = (args.rank, problem.n());
        inform(&format!(
            "warning: --rank {rank} is no restriction: a matrix of {n} columns has rank {n} at most"
        ));
    }
    // The settings of a search are kept as TOML, whose integers have 64 bits with a sign.
    let iterations = args.iterations.min(i64::MAX as usize);
    let options = SearchOptions {
        precision,
        enough: args.stop_at,
        ..SearchOptions::with_effort(&problem, args.starts, Some(iterations), args.family.seed())
    };
    let place = Place { out: &args.out, target: args.family.label()? };
    let rows = job::run(&problem, caps, args.tolerance, options, &place)?;
    print(&rows, args.json.is_set)?;
    if !args.json.is_set {
        say!("");
        conclusion(&rows, args.iterations, &args.out).iter().for_each(|line| say!("{line}"));
    }
    Ok(())
}

/// Prints the rows: the most important columns as a table, or all as JSON.
fn print(rows: &[FrontierRow], json: bool) -> Result<()> {
    let columns = columns_of::<FrontierRow>();
    let lines = rows.iter().map(Line::from);
    if json {
        let objects: Vec<_> = lines.map(|line| line.to_json(&columns)).collect();
        say!("{}", serde_json::to_string(&objects)?);
        return Ok(());
    }
    let shown = [
        ("logit bound", "cap"),
        ("KL (nats)", "kl_nats"),
        ("max |logit|", "max_abs_logit"),
        ("KL, unlimited", "floor_kl_nats"),
        ("floor", "floor_max_abs_logit"),
        ("rank penalty", "inflation"),
        ("outcome", "outcome"),
    ];
    say!("{}", shown.map(|(heading, _)| format!("{heading:>14}")).join(""));
    for (row, line) in rows.iter().zip(lines) {
        let cell = |(_, name): (&str, &str)| {
            let text = line.get(&columns, name);
            let bound = if name == "inflation" && is_at_cap(row) { "≤" } else { "" };
            let shown = match text.parse::<f64>() {
                Ok(value) => format!("{bound}{}", significant(value, 4)),
                Err(_) if text.is_empty() => "-".to_owned(),
                Err(_) => text.to_owned(),
            };
            format!("{shown:>14}")
        };
        say!("{}", shown.map(cell).join(""));
    }
    Ok(())
}

/// Sentences at the end of a fit: the rank penalty, searches that reached the iteration limit `most`, and the files.
fn conclusion(rows: &[FrontierRow], most: usize, out: &Path) -> Vec<String> {
    let mut told = fit_conclusion(rows);
    let cut: Vec<String> = rows
        .iter()
        .filter(|row| {
            row.found.outcome == Outcome::StepLimit && row.found.floor_max_abs_logit != Some(0.0)
        })
        .map(|row| row.found.cap.map_or_else(String::new, |cap| significant(cap, 3)))
        .collect();
    if !cut.is_empty() {
        told.push(format!(
            "Step limit at max |logit| {}: {most} iterations ended before the search settled. The result is an upper \
             bound. Try --iterations {} or more --starts, with another --out.",
            cut.join(", "),
            4 * most
        ));
    }
    let of_factors = rows.iter().any(|row| row.found.factors.is_some());
    let out = out.display();
    let factors = match of_factors {
        true => format!(", queries and keys in {out}/factors/"),
        false => String::new(),
    };
    told.push(format!(
        "Rows are in {out}/frontier.csv{factors}; `rank-study show {out}` draws them."
    ));
    told
}
