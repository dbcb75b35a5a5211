//! `rank-study train`: trains one language model.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::errors::{FlagContext as _, UsageError};
use super::flags::{DeviceFlag, JsonFlag, TextFlags, ThreadsFlag};
use super::places::{check_definition, near};
use super::progress::Progress;
use super::stop::{Stopped, stop_at_signal};
use super::streams::{be_quiet, inform, say};
use super::workers;
use crate::experiments::training::TrainStudy;
use crate::lm::{
    Corpus, LmError, Outcome as TrainOutcome, StepRow, Texts, TrainDefinition, TrainSummary,
    Workers,
};
use crate::run::series::RunSeries;
use crate::run::{Begin, Extension, RunError, RunObserver, Training};
use crate::study::{Preset, StudyDefinition};

/// Train a language model and log every head's logits
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study train analysis/nanogpt-small.toml --text shakespeare.txt --out runs/small
  rank-study train analysis/nanogpt-small.toml --set arm=ls --set window=16 --out runs/ls
  rank-study train analysis/paper-size.toml --run ls --text books/ --out runs/ls-2048
  mpirun -n 2 rank-study train analysis/nanogpt-small.toml --text books/ --out runs/two

Writes DIR/steps.csv, eval.csv, heads.parquet and checkpoint/. Guide: docs/train.md")]
pub struct TrainArgs {
    /// Definition of the run, or a study of training runs
    definition: PathBuf,
    /// Train this run of a study
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    #[command(flatten)]
    texts: TextFlags,
    /// Keep the tokens of long texts in this folder
    #[arg(long, value_name = "DIR", default_value = "data/tokens")]
    token_cache: PathBuf,
    /// Set a key of the definition, such as arm=ls (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    threads: ThreadsFlag,
    #[command(flatten)]
    device: DeviceFlag,
    /// Write to this folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Continue from the last checkpoint in --out
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    json: JsonFlag,
}

/// Runs the subcommand.
///
/// # Errors
/// An invalid definition, key or text; a folder that has another run or cannot be written; [`Stopped`] by a signal,
/// after a checkpoint.
pub fn run(args: &TrainArgs) -> Result<()> {
    workers::run(|workers| args.threads.pool(workers::threads())?.install(|| train(args, workers)))
}

fn train(args: &TrainArgs, workers: &dyn Workers) -> Result<()> {
    let is_first = workers.rank() == 0;
    let definition = definition(args)?;
    // The first worker speaks for all.
    if !is_first {
        be_quiet();
    }
    if let Some(warning) = wide_window(&definition) {
        inform(&format!("warning: {warning}"));
    }
    let (corpus, source) = match &args.texts.text {
        None => (Corpus::synthetic(&definition)?, "synthetic".to_owned()),
        Some(path) => {
            let corpus = Texts::find(path, args.texts.valid_text.as_deref())
                .and_then(|texts| Corpus::from_texts(&definition, &texts, &args.token_cache))
                .with_context(|| format!("--text {}", path.display()))?;
            (corpus, path.display().to_string())
        }
    };
    let begin = if args.resume { Begin::Resume } else { Begin::Anew };
    if is_first && begin == Begin::Anew && args.out.join("steps.csv").exists() {
        bail!(
            "--out {} already has a run; name another folder, or continue it with --resume",
            args.out.display()
        );
    }
    let progress = Progress::new(definition.steps);
    progress.name(&args.out.display().to_string());
    let stop = stop_at_signal(if is_first { "stopping after this step" } else { "" })?;
    let device = args.device.device;
    let training =
        Training { definition: &definition, corpus: &corpus, source: &source, device, workers };
    let result = crate::run::train(&training, &args.out, begin, stop, &progress);
    progress.finish();
    let result = result.map_err(of_folder)?;
    if is_first {
        print(&result, definition.steps, args);
    }
    let TrainSummary { outcome, steps, .. } = result;
    if outcome == TrainOutcome::Stopped {
        let again = if args.resume { "" } else { " with --resume" };
        let of = definition.steps;
        let why =
            format!("stopped at step {steps} of {of}; run the same command{again} to continue");
        return Err(Stopped(why).into());
    }
    Ok(())
}

/// Adds the flag --out to errors of a training run, except for a missing device.
fn of_folder(error: RunError) -> anyhow::Error {
    match error {
        RunError::Model(LmError::NoDevice { .. }) => error.into(),
        error => anyhow::Error::new(error).context("--out"),
    }
}

fn print(summary: &TrainSummary, steps: usize, args: &TrainArgs) {
    // Over all steps, those before a resumption too.
    let course = RunSeries::read(&args.out).map(|series| series.course()).ok();
    let peak = course.and_then(|course| course.peak_max_abs_logit);
    if args.json.is_set {
        let object = serde_json::json!({
            "outcome": summary.outcome.name(),
            "steps": summary.steps,
            "parameters": summary.parameters,
            "train_loss_nats": summary.train_loss_nats,
            "valid_loss_nats": summary.valid_loss_nats,
            "upstream_loss_nats": summary.upstream_loss_nats,
            "max_abs_logit": summary.max_abs_logit,
            "peak_max_abs_logit": peak,
            "wall_time_s": summary.wall_time_s,
        });
        say!("{object}");
        return;
    }
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    say!("outcome             {}", summary.outcome.name());
    say!("steps               {} of {steps}", summary.steps);
    say!("parameters          {}", summary.parameters);
    say!("train_loss_nats     {}", shown(summary.train_loss_nats));
    say!("valid_loss_nats     {}", shown(summary.valid_loss_nats));
    if summary.upstream_loss_nats.is_some() {
        say!("upstream_loss_nats  {}", shown(summary.upstream_loss_nats));
    }
    say!("max_abs_logit       {}", shown(summary.max_abs_logit));
    say!("peak_max_abs_logit  {}", shown(peak));
    say!("wall_time_s         {:.1}", summary.wall_time_s);
    say!("files               {}", args.out.display());
}

impl RunObserver for Progress {
    fn step(&self, record: &StepRow) {
        if self.is_at_start() {
            self.done_before(record.step - 1);
        }
        self.name(&format!("step {}, loss {:.4}", record.step, record.loss_nats));
        self.advanced(1);
    }

    fn extended(&self, Extension { at, from, to }: Extension) {
        self.say(&format!(
            "step {at} of {from}: extended to {to}; the learning rate now follows the schedule of {to} \
             steps, and manifest.toml records both numbers"
        ));
    }
}

fn definition(args: &TrainArgs) -> Result<TrainDefinition> {
    check_definition(&args.definition, args.run.is_some())?;
    let path = args.definition.display();
    let mut definition = match &args.run {
        Some(name) => of_study(&StudyDefinition::read(&args.definition, Preset::Paper)?, name)?,
        None => {
            let text = std::fs::read_to_string(&args.definition)
                .with_context(|| format!("cannot read {path}"))?;
            TrainDefinition::from_toml(&text).with_context(|| path.to_string())?
        }
    };
    set_keys(&mut definition, &args.sets)?;
    Ok(definition)
}

/// Sets the keys of all `--set KEY=VALUE`. One that is refused is tried again after the others, since it may need them.
pub fn set_keys(definition: &mut TrainDefinition, sets: &[String]) -> Result<()> {
    let pair = |set| -> Result<(&String, &str, &str)> {
        let set: &String = set;
        let (key, value) = set
            .split_once('=')
            .ok_or_else(|| UsageError(format!("--set must be KEY=VALUE ({set:?} found)")))?;
        Ok((set, key.trim(), value.trim()))
    };
    let mut left = sets.iter().map(pair).collect::<Result<Vec<_>>>()?;
    loop {
        let (before, mut first) = (left.len(), None);
        left.retain(|&(set, key, value)| match definition.set(key, value) {
            Ok(()) => false,
            Err(error) => {
                first.get_or_insert((set, error));
                true
            }
        });
        match first {
            None => return Ok(()),
            Some((set, error)) if left.len() == before => {
                return Err(error).flag(format!("--set {set}"));
            }
            Some(_) => {}
        }
    }
}

/// Returns a message if the window covers the whole context, else `None`.
pub fn wide_window(definition: &TrainDefinition) -> Option<String> {
    definition.has_window_of_context().then(|| {
        format!(
            "window = {} covers the context of {} tokens, so local heads attend to all of them",
            definition.window, definition.context
        )
    })
}

/// Returns the definition of a study's run, with its first seed.
fn of_study(study: &StudyDefinition, name: &str) -> Result<TrainDefinition> {
    let Some(work) = study.work.get::<TrainStudy>() else {
        bail!(UsageError(format!(
            "--run {name}: study {} has no training runs; name another study",
            study.study
        )));
    };
    match work.runs.iter().find(|run| run.name == name) {
        Some(run) => Ok(TrainDefinition { seed: run.seeds[0], ..run.definition.clone() }),
        None => {
            let names: Vec<_> = work.runs.iter().map(|run| run.name.as_str()).collect();
            let near = near(name, names.iter().copied(), "name another");
            bail!(UsageError(format!(
                "--run {name}: the study {} has {}; {near}",
                study.study,
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_need_each_other_are_set_in_any_order() {
        let set = |sets: &[&str]| {
            let mut definition = TrainDefinition::default();
            let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
            set_keys(&mut definition, &sets).map(|()| definition)
        };
        for sets in [["arm=gam", "heads=1"], ["heads=1", "arm=gam"]] {
            assert_eq!(set(&sets).unwrap().arm.name(), "gam");
        }
        let error = format!("{:#}", set(&["steps=7", "arm=gam", "window=9"]).unwrap_err());
        assert!(error.starts_with("--set arm=gam: heads must be 1"), "{error}");
        assert_eq!(set(&["window=9", "window=7"]).unwrap().window, 7);
    }
}
