//! `rank-study sweep`: runs a study, skipping the rows already there.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rank_study::lm::Device;
use rank_study::study::{Plan, Preset, Stages, StudyDefinition};

use super::cells::CellsProgress;
use super::device::DeviceName;
use super::measuring::{describe, fail_if_unfinished, measure};
use super::places::data;
use super::shards::{Asked, ShardFlags, show};
use super::stop::{AFTER_CELLS, stop_at_signal};
use super::streams::say;
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
    #[command(flatten)]
    shards: ShardFlags,
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
    let asked = args.shards.asked()?;
    if args.list {
        for (cell, done) in plan.cells() {
            say!("{}  {cell}", if done { "done" } else { "    " });
        }
        return Ok(());
    }
    // A GPU gains nothing from several models at a time.
    let default = (device == Device::Cuda).then_some(1);
    let threads = args.threads.count(default)?;
    let stages = |plan: Plan| {
        let needed = plan.needed(&data(args.preset), text, valid_text)?;
        Stages::of(needed.into_iter().chain([plan]).collect())
    };
    match asked {
        Asked::All => {}
        Asked::Part(part) => return part.run(stages(plan)?, threads, device, args.quiet),
        Asked::Plan(parts) => {
            show(&stages(plan)?, parts);
            return Ok(());
        }
    }
    let needed = plan.prerequisites(&data(args.preset), text, valid_text)?;
    let name = plan.name().to_owned();
    let rows = plan.rows();
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
    say!("{name}: {}; rows in {}", describe(&summary), rows.display());
    fail_if_unfinished(&[(name, summary)])
}
