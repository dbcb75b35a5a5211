//! `rank-study reproduce`: measures all studies of a preset and writes the report.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use super::analysis::{fail_if_missing, write_report};
use super::errors::error_line;
use super::flags::{DeviceFlag, TextFlags, ThreadsFlag};
use super::measuring::{Session, fail_if_unfinished};
use super::places::{ANALYSIS, data, definitions, fail_if_broken, figures, measured_studies, near};
use super::shards::ShardFlags;
use super::stop::Stopped;
use super::streams::{inform, say};
use crate::claims::VerdictStatus;
use crate::experiments::claims::LEADING;
use crate::lm::Device;
use crate::report::{ClaimRow, Measured, Section, duration};
use crate::study::{Plan, Preset, Stages, StudyDefinition};
use crate::table::plural;

/// Measure every study of a preset and write the report
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study reproduce
  rank-study reproduce --only layouts
  rank-study reproduce --preset paper --only lm-length --text book.txt

Presets:
  quick  the four studies that carry the question, about 7 minutes on two cores
  smoke  every study as small as it goes, for tests
  paper  every study at full size, hours

Stop it at any time: the same command continues. Guide: docs/own-study.md")]
pub struct ReproduceArgs {
    /// Size of the studies: quick, smoke or paper
    #[arg(long, value_name = "NAME", default_value = "quick")]
    preset: Preset,
    /// Measure only these studies
    #[arg(long, value_name = "STUDY", num_args = 1..)]
    only: Vec<String>,
    #[command(flatten)]
    texts: TextFlags,
    #[command(flatten)]
    threads: ThreadsFlag,
    #[command(flatten)]
    device: DeviceFlag,
    #[command(flatten)]
    shards: ShardFlags,
}

/// Runs the subcommand.
///
/// # Errors
/// The preset or a study does not exist, or a sweep or the report fails.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let started = Instant::now();
    let device = args.device.device;
    device.check()?;
    // A GPU gains nothing from training several models at once.
    let threads = args.threads.count((device == Device::Cuda).then_some(1))?;
    let (text, valid_text) = args.texts.paths();
    let Staged { stages, chosen, mut missing, broken } =
        staged(&args.only, args.preset, text, valid_text)?;
    if let Some(shard) = args.shards.shard() {
        fail_if_broken(broken)?;
        let ran = args.shards.run(shard, stages, threads, device);
        return ran.and(fail_if_missing(&missing));
    }
    let mut plans = stages.into_plans();
    plans.retain(|plan| plan.left() > 0 || chosen.iter().any(|name| name == plan.name()));
    let session = Session::begin(&plans, threads, device)?;
    session.progress.say(&session.ahead);
    let (summaries, unusable) = session.measure_all(plans);
    if summaries.iter().any(|(_, summary)| summary.left > 0) {
        let why = "stopped; all finished work is saved. Run the same command to continue";
        return Err(Stopped(why.to_owned()).into());
    }
    missing.extend(unusable);
    let page = figures(args.preset).join("report.html");
    // The page shows every study with rows, so that --only does not remove the others.
    let reported = measured_studies(args.preset)?;
    inform(&format!(
        "all configurations are measured; writing tables and figures of {}, and the report",
        plural(reported.len(), "study")
    ));
    let written = write_report(&reported, &page, args.preset)?;
    let measured_now = |study: &str| summaries.iter().any(|(name, _)| name == study);
    print_found(
        written.sections.iter().filter(|section| measured_now(&section.study)),
        args.preset,
    );
    say!("report   {}", page.display());
    say!("tables   {}/STUDY/tables/", data(args.preset).display());
    say!("rows     {}/STUDY/rows.csv", data(args.preset).display());
    say!("time     {}", duration(started.elapsed().as_secs_f64()));
    missing.extend(written.missing);
    fail_if_unfinished(&summaries).and(fail_if_missing(&missing)).and(fail_if_broken(broken))
}

/// Maximum number of claims printed: with two lines each and the files, they fit on a screen.
const MOST_CLAIMS: usize = 8;

/// Prints the verdict and the main number of each measured claim, the leading claims first.
fn print_found<'s>(sections: impl Iterator<Item = &'s Section> + Clone, preset: Preset) {
    let mut rows = ClaimRow::all(sections);
    rows.retain(|row| !row.studies.is_empty());
    let leads = |claim| LEADING.iter().position(|leading| *leading == claim);
    rows.sort_by_key(|row| leads(row.claim).unwrap_or(usize::MAX));
    let (measured, not): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.status() != VerdictStatus::NotMeasured);
    say!("\nWhat was found (preset {preset})\n");
    for row in measured.iter().take(MOST_CLAIMS) {
        let Measured { section, verdict } = row.studies[0];
        say!("{:<12} {}", row.status().to_string(), row.claim);
        say!("{:<12} {} ({})", "", verdict.headline, section.study);
    }
    let more = measured.len().saturating_sub(MOST_CLAIMS);
    if more > 0 {
        say!("{more} more measured claims are in the report.");
    }
    if !not.is_empty() {
        say!("{} not decided by these sizes; the report says why.", plural(not.len(), "claim"));
    }
    say!("");
}

/// The work of a preset, or of some of its studies.
pub struct Staged {
    /// The studies and the training runs that they need.
    pub stages: Stages,
    /// Names of the studies, without those that are only needed.
    chosen: Vec<String>,
    /// Studies that cannot be planned, each with its error.
    pub missing: Vec<(String, String)>,
    /// Number of definitions of these studies that cannot be read.
    pub broken: usize,
}

/// Plans the studies of a preset (or those in `only`).
///
/// # Errors
/// A study does not exist, or no study can be planned.
pub fn staged(
    only: &[String],
    preset: Preset,
    text: Option<&Path>,
    valid_text: Option<&Path>,
) -> Result<Staged> {
    let (definitions, broken) = chosen(only, preset)?;
    let data = data(preset);
    let (mut plans, mut chosen, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for definition in &definitions {
        let planned = Plan::new(definition, &data, None, text, valid_text)
            .and_then(|plan| Ok((plan.needed(&data, text, valid_text)?, plan)));
        match planned {
            Ok((needed, own)) => {
                chosen.push(own.name().to_owned());
                plans.extend(needed.into_iter().chain([own]));
            }
            Err(error) => failed.push((definition.study.clone(), error)),
        }
    }
    if plans.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1.into());
    }
    let missing = failed.into_iter().map(|(study, error)| (study, error.to_string())).collect();
    Ok(Staged { stages: Stages::of(plans)?, chosen, missing, broken })
}

/// Returns the definitions to measure, and the number of requested ones that cannot be read.
fn chosen(names: &[String], preset: Preset) -> Result<(Vec<StudyDefinition>, usize)> {
    let all = definitions(preset)?;
    for only in names {
        if all.studies.iter().any(|definition| definition.study == *only) {
            continue;
        }
        match all.unusable.iter().find(|other| other.is_of(only)) {
            Some(other) if other.is_broken() => {}
            Some(other) => bail!("study {only:?}: {}", error_line(&other.error)),
            None => {
                let near = near(only, all.names(), "see rank-study list");
                bail!("no study {only:?} in {ANALYSIS}/; {near}")
            }
        }
    }
    let broken = match all.tell_broken() {
        all if names.is_empty() => all,
        // Broken definitions that were not requested only cost a line of output.
        _ => {
            let broken = all.unusable.iter().filter(|other| other.is_broken());
            broken.filter(|other| names.iter().any(|only| other.is_of(only))).count()
        }
    };
    let is_chosen = |definition: &StudyDefinition| match names.is_empty() {
        true => definition.presets.contains(&preset),
        false => names.contains(&definition.study),
    };
    let mut definitions = all.studies;
    definitions.retain(is_chosen);
    if definitions.is_empty() {
        fail_if_broken(broken)?;
        bail!("no study in {ANALYSIS}/ is in the preset {}; name it in its key presets", preset);
    }
    // Training runs come before studies that measure the trained models.
    definitions.sort_by_key(|definition| definition.work.measures_models);
    Ok((definitions, broken))
}
