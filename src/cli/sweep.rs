//! `rank-study sweep`: runs a study, skipping the rows already there.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};
use clap::Args;
use rank_study::lm::Device;
use rank_study::study::{Plan, Preset, Span, StudyDefinition, Sweep, SweepSummary};
use rank_study::table::plural;

use super::analysis::plural_studies;
use super::cells::CellsProgress;
use super::device::DeviceName;
use super::duration::span;
use super::places::data;
use super::slow_blas;
use super::stop::{AFTER_CELLS, Stopped, stop_at_signal, tell};
use super::threads::ThreadsFlag;

/// Run a study: every cell that has no row yet, each saved as it ends
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study sweep analysis/logit-growth.toml
  rank-study sweep analysis/logit-growth.toml --filter 'landmark/n64' --list
  rank-study sweep analysis/lm-logits.toml --preset quick --text shakespeare.txt

Rows go to data/STUDY/rows.csv and rows.parquet. Stop it at any time: the next run does only what
is missing. N threads measure N cells at a time. With --text, STUDY carries the text's name, and the
text's hash where another text of that name was there first. Rows that an edited definition measures
again are kept in data/STUDY/rows-set-aside.csv.")]
pub struct SweepArgs {
    /// The study's definition
    definition: PathBuf,
    /// The size: the definition as it stands, or what its table [quick] makes of it
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Only the cells whose name matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// List the cells and whether they are done; run nothing
    #[arg(long)]
    list: bool,
    /// A text, or records, for training runs to read in place of the synthetic corpus: a .txt or .bin, packed as
    /// .zst or not, or a folder of them
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// A text to evaluate them on, in place of a part of --text
    #[arg(long, value_name = "FILE", requires = "text")]
    valid_text: Option<PathBuf>,
    /// Where models are trained; cuda in a build with that feature
    #[arg(long, value_enum, default_value_t)]
    device: DeviceName,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A definition or filter that is wrong, rows that cannot be read or written, cells that failed.
pub fn run(args: &SweepArgs) -> Result<()> {
    let device = Device::from(args.device);
    device.check()?;
    let definition = StudyDefinition::read(&args.definition, args.preset)?;
    let (text, valid_text) = (args.text.as_deref(), args.valid_text.as_deref());
    let plan =
        Plan::new(&definition, &data(args.preset), args.filter.as_deref(), text, valid_text)?;
    if args.list {
        for (cell, done) in plan.cells() {
            println!("{}  {cell}", if done { "done" } else { "    " });
        }
        return Ok(());
    }
    let needed = plan.prerequisites(&data(args.preset), text, valid_text)?;
    let name = plan.name().to_owned();
    let rows = plan.folder().join("rows.csv");
    // A GPU gains nothing from several models at a time.
    let default = (device == Device::Cuda).then_some(1);
    let threads = args.threads.count(default)?;
    let works = needed.iter().chain([&plan]).map(|plan| plan.work(threads)).collect();
    let progress = CellsProgress::new(works, args.quiet);
    let stop = stop_at_signal(AFTER_CELLS)?;
    for plan in needed {
        let name = plan.name().to_owned();
        let summary = measure(plan, threads, device, stop, &progress)?;
        fail_if_unfinished(&[(name, summary)])?;
    }
    let summary = measure(plan, threads, device, stop, &progress);
    progress.finish();
    let summary = summary?;
    println!("{name}: {}; rows in {}", describe(&summary), rows.display());
    fail_if_unfinished(&[(name, summary)])
}

/// Runs a plan under a progress bar, after a warning for every damaged line, and for rows that are set aside.
pub fn measure(
    plan: Plan,
    threads: usize,
    device: Device,
    stop: &AtomicBool,
    progress: &CellsProgress,
) -> Result<SweepSummary> {
    let rows = plan.folder().join("rows.csv");
    for line in plan.damaged() {
        let shown: String = line.chars().take(50).collect();
        progress.say(&format!(
            "warning: {}: a line is cut off or has the wrong number of fields ({shown}…); every whole \
             row is kept, the line goes to rows-set-aside.csv, and its cell is measured again",
            rows.display()
        ));
    }
    for (count, why) in plan.to_set_aside() {
        progress.say(&format!(
            "warning: {} has {} {why}; what is there goes to {}",
            rows.display(),
            plural(count, "row"),
            rows.with_file_name("rows-set-aside.csv").display()
        ));
    }
    if plan.decomposes() {
        slow_blas::warn(|line| progress.say(line));
    }
    progress.begin(plan.work(threads));
    Ok(plan.run(&Sweep { threads, stop, device, observer: progress })?)
}

/// A summary in words: `3 cells measured, 105 there before`.
pub fn describe(summary: &SweepSummary) -> String {
    let mut parts = vec![format!("{} cells measured", summary.measured)];
    if summary.skipped > 0 {
        parts.push(format!("{} there before", summary.skipped));
    }
    if !summary.failed.is_empty() {
        parts.push(format!("{} failed", summary.failed.len()));
    }
    if summary.left > 0 {
        parts.push(format!("{} left", summary.left));
    }
    parts.join(", ")
}

/// An error that names what failed, or how to go on after a stop.
pub fn fail_if_unfinished(summaries: &[(String, SweepSummary)]) -> Result<()> {
    for (name, summary) in summaries {
        for (cell, why) in &summary.failed {
            tell(&format!("failed: {name}/{cell}: {why}"));
        }
    }
    let failed: usize = summaries.iter().map(|(_, summary)| summary.failed.len()).sum();
    let left: usize = summaries.iter().map(|(_, summary)| summary.left).sum();
    match (failed, left) {
        (0, 0) => Ok(()),
        (failed, 0) => {
            bail!("{failed} cells failed; their rows say why, and the next run tries them again")
        }
        (failed, left) => {
            let failed = if failed > 0 { format!(" and {failed} failed") } else { String::new() };
            let why =
                format!("stopped with {left} cells left{failed}; run the same command to go on");
            Err(Stopped(why).into())
        }
    }
}

/// What plans are about to do, in one line.
pub fn announce(plans: &[Plan], left: Span, threads: usize) -> String {
    let total: usize = plans.iter().map(|plan| plan.cells().count()).sum();
    let done: usize = plans.iter().flat_map(Plan::cells).filter(|(_, done)| *done).count();
    format!(
        "{}, {total} cells, {done} already there; {} to go on {threads} threads",
        plural_studies(plans.len()),
        span(left)
    )
}
