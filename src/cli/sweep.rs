//! `rank-study sweep`: runs a study, skipping the rows already there.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::flags::{DeviceFlag, PresetFlag, TextFlags, ThreadsFlag};
use super::measuring::{Session, describe, fail_if_unfinished, list_cells};
use super::places::{check_definition, data};
use super::shards::ShardFlags;
use super::streams::{inform, say};
use super::train::wide_window;
use crate::experiments::training::TrainStudy;
use crate::lm::Device;
use crate::study::{Plan, Stages, StudyDefinition};

/// Measure every missing configuration of a study
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study sweep analysis/logit-growth.toml
  rank-study sweep analysis/logit-growth.toml --filter 'landmark/n64' --list
  rank-study sweep analysis/lm-comparison.toml --preset quick --text shakespeare.txt

Writes data/STUDY/rows.csv and rows.parquet. Stop it at any time: the same command continues.
Guide: docs/own-study.md")]
pub struct SweepArgs {
    /// Definition of the study
    definition: PathBuf,
    #[command(flatten)]
    preset: PresetFlag,
    /// Use only configurations whose name matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// List the configurations and whether they are done; run nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    texts: TextFlags,
    #[command(flatten)]
    device: DeviceFlag,
    #[command(flatten)]
    shards: ShardFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// A definition or filter that is wrong, rows that cannot be read or written, cells that failed.
pub fn run(args: &SweepArgs) -> Result<()> {
    let device = args.device.device;
    device.check()?;
    check_definition(&args.definition, true)?;
    let definition = StudyDefinition::read(&args.definition, args.preset.get())?;
    let (text, valid_text) = args.texts.paths();
    let plan =
        Plan::new(&definition, &data(args.preset.get()), args.filter.as_deref(), text, valid_text)?;
    let shard = args.shards.shard();
    if args.list {
        list_cells(&plan);
        return Ok(());
    }
    if text.is_some() && !definition.work.can_read_text {
        let kind = definition.work.kind();
        inform(&format!("warning: a study of kind {kind} reads no text; --text has no effect"));
    }
    if let Some(study) = definition.work.get::<TrainStudy>() {
        let defaults = study.defaults(&definition.text).map_err(anyhow::Error::msg)?;
        if !defaults.is_empty() {
            inform(&format!("defaults: {}", defaults.join(", ")));
        }
        for run in &study.runs {
            if let Some(warning) = wide_window(&run.definition) {
                inform(&format!("warning: run {}: {warning}", run.name));
            }
        }
    }
    // A GPU gains nothing from several models at a time.
    let default = (device == Device::Cuda).then_some(1);
    let threads = args.threads.count(default)?;
    let needed = plan.needed(&data(args.preset.get()), text, valid_text)?;
    let stages = Stages::of(needed.into_iter().chain([plan]).collect())?;
    if let Some(shard) = shard {
        return args.shards.run(shard, stages, threads, device);
    }
    let mut plans = stages.into_plans();
    let session = Session::begin(&plans, threads, device)?;
    let Some(own) = plans.pop() else { return Ok(()) };
    for needed in plans {
        let name = needed.name().to_owned();
        fail_if_unfinished(&[(name, session.measure(needed)?)])?;
    }
    let (name, rows) = (own.name().to_owned(), own.rows());
    let summary = session.measure(own);
    session.progress.finish();
    let summary = summary?;
    say!("{name}: {}; rows in {}", describe(&summary, "configuration"), rows.display());
    fail_if_unfinished(&[(name, summary)])
}
