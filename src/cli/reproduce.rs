//! `rank-study reproduce`: measures all studies of a preset and writes the report.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use rank_study::claims::VerdictStatus;
use rank_study::experiments::claims::LEADING;
use rank_study::lm::Device;
use rank_study::report::{ClaimRow, Measured, Section};
use rank_study::study::{Plan, Preset, Stages, StudyDefinition, StudyError, Work};
use rank_study::table::plural;

use super::analysis::{fail_if_missing, report_work, write_report};
use super::cells::CellsProgress;
use super::duration::duration;
use super::error_line::error_line;
use super::flags::{DeviceFlag, QuietFlag, TextFlags, ThreadsFlag};
use super::measuring::{announce, describe, fail_if_unfinished, measure};
use super::places::{
    ANALYSIS, Definitions, data, definitions, fail_if_broken, figures, measured_studies, near,
};
use super::shards::{Asked, ShardFlags, show};
use super::stop::{AFTER_CELLS, Stopped, stop_at_signal};
use super::streams::say;

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
    #[command(flatten)]
    quiet: QuietFlag,
}

/// Runs the subcommand.
///
/// # Errors
/// The preset or a study does not exist, or a sweep or the report fails.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let started = Instant::now();
    let device = args.device.get();
    device.check()?;
    // A GPU gains nothing from training several models at once.
    let threads = args.threads.count((device == Device::Cuda).then_some(1))?;
    let (text, valid_text) = args.texts.paths();
    let data_root = data(args.preset);
    let stages = || staged(&args.only, args.preset, text, valid_text);
    match args.shards.asked()? {
        Asked::All => {}
        Asked::Part(part) => {
            let (stages, missing) = stages()?;
            let ran = part.run(stages, threads, device, args.quiet.is_set());
            return ran.and(fail_if_missing(&missing));
        }
        Asked::Plan(parts) => {
            let (stages, missing) = stages()?;
            show(&stages, parts);
            return fail_if_missing(&missing);
        }
    }
    let Chosen { definitions, broken: broken_definitions } = chosen(&args.only, args.preset)?;
    // The plans of other studies that a study needs, and its own plan.
    let plan = |definition: &StudyDefinition| {
        let own = Plan::new(definition, &data_root, None, text, valid_text)?;
        let needed = own.prerequisites(&data_root, text, valid_text)?;
        Ok((needed, own))
    };
    // A study that cannot be planned is reported when its turn comes, unless no study can be planned.
    let planned: Vec<Result<(Vec<Plan>, Plan), StudyError>> =
        definitions.iter().map(plan).collect();
    let none_planned = planned.iter().all(Result::is_err);
    let mut plans: Vec<Plan> = Vec::new();
    let mut others: Vec<Plan> = Vec::new();
    for planned in planned {
        match planned {
            Ok((needed, own)) => {
                others.extend(needed);
                plans.push(own);
            }
            Err(error) if none_planned => return Err(error.into()),
            Err(_) => {}
        }
    }
    // Cells needed from studies that are not chosen also take time.
    let chosen_names: Vec<String> = plans.iter().map(|plan| plan.name().to_owned()).collect();
    plans
        .extend(others.into_iter().filter(|other| !chosen_names.iter().any(|n| n == other.name())));
    let mut works: Vec<Work> = plans.iter().map(|plan| plan.work(threads)).collect();
    // The page shows every study with rows, so that --only does not remove the others.
    let mut reported = measured_studies(args.preset)?;
    reported.extend(plans.iter().map(|plan| plan.name().to_owned()));
    reported.sort_unstable();
    reported.dedup();
    works.push(report_work(&reported));
    let progress = CellsProgress::new(works, args.quiet.is_set());
    progress.say(&announce(&plans, &progress.left(), threads));
    let stop = stop_at_signal(AFTER_CELLS)?;
    let (mut summaries, mut broken) = (Vec::new(), Vec::new());
    let studies = definitions.len();
    'studies: for (at, definition) in definitions.iter().enumerate() {
        progress.place(at + 1, studies);
        // Planned again, because earlier studies may have produced what it needs.
        let plans = match plan(definition) {
            Ok((needed, own)) => needed.into_iter().chain([own]),
            Err(error) => {
                progress.say(&format!("{}: {error}", definition.study));
                broken.push((definition.study.clone(), error.to_string()));
                continue;
            }
        };
        for plan in plans {
            let name = plan.name().to_owned();
            // Rows that cannot be read or written stop only their own study.
            match measure(plan, threads, device, stop, &progress) {
                Ok(summary) => {
                    progress.say(&format!("{name}: {}", describe(&summary)));
                    summaries.push((name, summary));
                }
                Err(error) => {
                    let error = error_line(error.as_ref());
                    progress.say(&format!("{name}: {error}"));
                    broken.push((name, error));
                }
            }
            if stop.load(Ordering::Relaxed) {
                break 'studies;
            }
        }
    }
    if stop.load(Ordering::Relaxed) {
        progress.finish();
        let why = "stopped; all finished work is saved. Run the same command to continue";
        return Err(Stopped(why.to_owned()).into());
    }
    let page = figures(args.preset).join("report.html");
    let reported = measured_studies(args.preset)?;
    progress.begin_report(report_work(&reported));
    let written = write_report(&reported, &page, args.preset, &progress);
    progress.finish();
    let written = written?;
    let measured_now = |study: &str| summaries.iter().any(|(name, _)| name == study);
    print_found(
        written.sections.iter().filter(|section| measured_now(&section.study)),
        args.preset,
    );
    say!("report   {}", written.page.display());
    say!("tables   {}/STUDY/tables/", data(args.preset).display());
    say!("rows     {}/STUDY/rows.csv", data(args.preset).display());
    say!("time     {}", duration(started.elapsed().as_secs_f64()));
    broken.extend(written.missing);
    fail_if_unfinished(&summaries)
        .and(fail_if_missing(&broken))
        .and(fail_if_broken(broken_definitions))
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

/// Returns the stages of the studies of a preset (or of those in `only`) and of their prerequisites. Also returns the
/// studies that cannot be planned, each with the reason.
///
/// # Errors
/// A study does not exist, a definition cannot be read, or no study can be planned.
pub fn staged(
    only: &[String],
    preset: Preset,
    text: Option<&Path>,
    valid_text: Option<&Path>,
) -> Result<(Stages, Vec<(String, String)>)> {
    let Chosen { definitions, broken } = chosen(only, preset)?;
    fail_if_broken(broken)?;
    let data = data(preset);
    let (mut plans, mut missing) = (Vec::new(), Vec::new());
    for definition in &definitions {
        let planned = Plan::new(definition, &data, None, text, valid_text)
            .and_then(|plan| Ok((plan.needed(&data, text, valid_text)?, plan)));
        match planned {
            Ok((needed, own)) => plans.extend(needed.into_iter().chain([own])),
            Err(error) => missing.push((definition.study.clone(), error.to_string())),
        }
    }
    if plans.is_empty() {
        fail_if_missing(&missing)?;
    }
    Ok((Stages::of(plans)?, missing))
}

/// Studies to measure.
struct Chosen {
    definitions: Vec<StudyDefinition>,
    /// Number of requested definitions that cannot be read.
    broken: usize,
}

fn chosen(names: &[String], preset: Preset) -> Result<Chosen> {
    let all = definitions(preset)?;
    for only in names {
        let Definitions { studies, without_size, broken } = &all;
        let is_there = studies.iter().any(|definition| definition.study == *only)
            || broken.iter().any(|definition| definition.is_of(only));
        match without_size.iter().find(|(study, _)| study == only) {
            _ if is_there => {}
            Some((_, error)) => bail!("study {only:?}: {}", error_line(error)),
            None => {
                bail!(
                    "no study {only:?} in {ANALYSIS}/; {}",
                    near(only, all.names(), "see rank-study list")
                )
            }
        }
    }
    all.tell_broken();
    let broken = match names.is_empty() {
        true => all.broken.len(),
        // Broken definitions that were not requested only cost a line of output.
        false => all.broken.iter().filter(|b| names.iter().any(|only| b.is_of(only))).count(),
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
    definitions.sort_by_key(|definition| definition.work.measures_models());
    Ok(Chosen { definitions, broken })
}
