//! `rank-study reproduce`: everything, from definitions to the report.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use rank_study::{Device, Plan, Preset, StudyDefinition, StudyWork};

use super::analysis::{fail_if_missing, write_report};
use super::places::{ANALYSIS, data, definitions, figures, measured_studies};
use super::progress::{Progress, duration};
use super::stop::{AFTER_CELLS, Stopped, stop_at_signal};
use super::sweep::{announce, describe, fail_if_unfinished, measure};
use super::threads::ThreadsFlag;

/// Measure every study of a preset, then write the tables, figures and report
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study reproduce --preset quick
  rank-study reproduce --only layouts
  rank-study reproduce --only lm-quick --text shakespeare.txt

Stop it at any time: the next run does only what is missing. N threads measure N cells at a time.")]
pub struct ReproduceArgs {
    /// Which studies: those whose definition names this preset
    #[arg(long, value_name = "NAME", default_value = "quick")]
    preset: Preset,
    /// Only these studies
    #[arg(long, value_name = "STUDY", num_args = 1..)]
    only: Vec<String>,
    /// A text for training runs to read in place of the synthetic corpus: a .txt, a .txt.zst, or a
    /// folder of them
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// A text to evaluate them on, in place of a part of --text
    #[arg(long, value_name = "FILE", requires = "text")]
    valid_text: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A preset or study that there is not, and whatever stops a sweep or a report.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let started = Instant::now();
    let threads = args.threads.count(None)?;
    let (text, valid_text) = (args.text.as_deref(), args.valid_text.as_deref());
    let data_root = data(args.preset);
    let plan =
        |definition: &StudyDefinition| Plan::new(definition, &data_root, None, text, valid_text);
    let needed = |plan: &Plan| plan.prerequisites(&data_root, text, valid_text);
    let definitions = chosen(args)?;
    let mut plans: Vec<Plan> = definitions.iter().map(plan).collect::<Result<_, _>>()?;
    // What is needed of studies that are not among those chosen takes its time too.
    let chosen_names: Vec<String> = plans.iter().map(|plan| plan.name().to_owned()).collect();
    let others: Vec<Vec<Plan>> = plans.iter().map(needed).collect::<Result<_, _>>()?;
    plans.extend(
        others
            .into_iter()
            .flatten()
            .filter(|other| !chosen_names.iter().any(|n| n == other.name())),
    );
    let progress = Progress::new(plans.iter().map(Plan::remaining_s).sum(), args.quiet);
    progress.say(&announce(&plans, threads));
    let stop = stop_at_signal(AFTER_CELLS)?;
    let (mut summaries, mut broken) = (Vec::new(), Vec::new());
    let studies = definitions.len();
    'studies: for (at, definition) in definitions.iter().enumerate() {
        progress.place(at + 1, studies);
        // Planned anew, since studies before it may have made what it needs.
        let plans = plan(definition).and_then(|own| {
            let mut all = needed(&own)?;
            all.push(own);
            Ok(all)
        });
        let plans = match plans {
            Ok(plans) => plans,
            Err(error) => {
                progress.say(&format!("{}: {error}", definition.study));
                broken.push((definition.study.clone(), error.to_string()));
                continue;
            }
        };
        for plan in plans {
            let name = plan.name().to_owned();
            // Rows that cannot be read or written stop their own study and no other.
            match measure(plan, threads, Device::Cpu, stop, &progress) {
                Ok(summary) => {
                    progress.say(&format!("{name}: {}", describe(&summary)));
                    summaries.push((name, summary));
                }
                Err(error) => {
                    progress.say(&format!("{name}: {error:#}"));
                    broken.push((name, format!("{error:#}")));
                }
            }
            if stop.load(Ordering::Relaxed) {
                break 'studies;
            }
        }
    }
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        let why = "stopped; every finished cell and every begun training is saved: run the same command to go on";
        return Err(Stopped(why.to_owned()).into());
    }
    // The page holds every study with rows, so that --only takes none of the others from it.
    let page = figures(args.preset).join("report.html");
    let written = write_report(&measured_studies(args.preset)?, &page, args.preset)?;
    let measured_now = |study: &str| summaries.iter().any(|(name, _)| name == study);
    println!("\nWhat was found\n");
    for (study, verdict) in written.verdicts.iter().filter(|(study, _)| measured_now(study)) {
        println!("  {:<17} {}", verdict.word.to_string(), verdict.claim);
        println!("  {:<17} {study}: {}\n", "", verdict.measured);
    }
    println!("tables   {}/STUDY/tables/", data(args.preset).display());
    println!("figures  {}/STUDY/", figures(args.preset).display());
    println!("report   {}", written.page.display());
    println!("time     {}", duration(started.elapsed().as_secs_f64()));
    broken.extend(written.missing);
    fail_if_unfinished(&summaries).and(fail_if_missing(&broken))
}

fn chosen(args: &ReproduceArgs) -> Result<Vec<StudyDefinition>> {
    let all = definitions(args.preset)?;
    let names =
        |of: &[StudyDefinition]| of.iter().map(|d| d.study.clone()).collect::<Vec<_>>().join(", ");
    if let Some(unknown) = args.only.iter().find(|only| all.iter().all(|d| d.study != **only)) {
        bail!("--only {unknown}: no such study in {ANALYSIS}/; there are {}", names(&all));
    }
    let presets = |d: &StudyDefinition| d.presets.contains(&args.preset);
    if args.only.is_empty() && !all.iter().any(presets) {
        bail!(
            "no study in {ANALYSIS}/ is in the preset {}; name it in its key presets",
            args.preset
        );
    }
    let mut chosen: Vec<StudyDefinition> = all
        .into_iter()
        .filter(|d| if args.only.is_empty() { presets(d) } else { args.only.contains(&d.study) })
        .collect();
    // What is trained comes before what is found in it.
    chosen.sort_by_key(|d| matches!(d.work, StudyWork::Predict(_)));
    Ok(chosen)
}
