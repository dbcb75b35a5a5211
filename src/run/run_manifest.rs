//! The manifest of a training run: entries beside those of every manifest.

use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::RunError;
use super::kept_files;
use super::manifest::Manifest;
use super::training::{Extension, Training};
use crate::lm::{Corpus, Outcome, Split, Symbols, TrainDefinition, TrainSummary};
use crate::numerics::Machine;
use crate::record::STOPPED;

pub(crate) const DEFINITION: &str = "definition";
pub(crate) const CORPUS: &str = "corpus";
// Keys of the corpus.
pub(crate) const CHARACTERS: &str = "characters";
pub(crate) const END_OF_DOCUMENT: &str = "end_of_document";
pub(crate) const VOCABULARY_SIZE: &str = "vocabulary_size";
const SOURCE: &str = "source";
const DEVICE: &str = "device";
/// Key of the number of workers, now or at the last start.
const WORKERS: &str = "workers";
const OUTCOME: &str = "outcome";
const MEASUREMENT: &str = "measurement_version";
/// Version of the measurements of a run; runs of earlier versions are measured again.
pub(crate) const VERSION: u32 = 4;
const PARAMETERS: &str = "parameters";
const RESULT: &str = "result";
/// Key in the definition.
const STEPS: &str = "steps";
/// Key of the steps of the checkpoints from which the run was resumed.
const RESUMED: &str = "resumed_at_steps";
/// Key of the run's extensions: the step at that time, and the number of steps before and after.
const EXTENDED: &str = "extended";

/// The table `result` of a run that has ended or was stopped.
#[derive(Serialize, Deserialize)]
struct RunResult {
    steps: usize,
    train_loss_nats: Option<f64>,
    valid_loss_nats: Option<f64>,
    upstream_loss_nats: Option<f64>,
    max_abs_logit: Option<f64>,
}

/// Creates the manifest of a run that begins.
pub(crate) fn begin(training: &Training<'_>, parameters: usize) -> Result<Manifest, RunError> {
    let dtype = training.definition.dtype.name();
    let mut manifest = Manifest::begin(rayon::current_num_threads(), dtype);
    manifest.more = what_is_trained(training)?;
    by_workers(&mut manifest, training.workers.size());
    manifest.insert(PARAMETERS, parameters as i64);
    manifest.insert(OUTCOME, "running");
    manifest.insert(MEASUREMENT, i64::from(VERSION));
    Ok(manifest)
}

/// Entries that define the run; all of its workers must have the same.
fn what_is_trained(training: &Training<'_>) -> Result<Table, RunError> {
    let Training { definition, corpus, source, device, .. } = *training;
    let entries: [(&str, Value); 3] = [
        (DEVICE, device.name().into()),
        (DEFINITION, definition.to_table()?.into()),
        (CORPUS, about(corpus, source).into()),
    ];
    Ok(entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
}

/// Checks that all workers are about to train the same run as worker 0.
///
/// # Errors
/// [`RunError::OtherWorker`], if a worker has another definition, text, device or program.
pub(crate) fn check_same_of_all(training: &Training<'_>) -> Result<(), RunError> {
    let workers = training.workers;
    let mut mine = what_is_trained(training)?;
    // Other vector instructions or another version would sum in another order.
    let instructions = Machine::here().instructions;
    let program = format!("rank-study {} with {instructions}", env!("CARGO_PKG_VERSION"));
    mine.insert("program".to_owned(), program.into());
    let mine = mine.to_string();
    let all = workers.gather(mine.as_bytes());
    let read = |text: &Vec<u8>| {
        let mut table: Table = String::from_utf8_lossy(text).parse().unwrap_or_default();
        // The same text may have another path on another machine.
        if let Some(Value::Table(corpus)) = table.get_mut(CORPUS) {
            corpus.remove(SOURCE);
        }
        table
    };
    let first = read(&all[0]);
    for (rank, text) in all.iter().enumerate().skip(1) {
        if let Some((key, of_first, of_rank)) = difference(&first, &read(text), "") {
            return Err(RunError::OtherWorker(format!(
                "worker {rank} has {key} = {of_rank}, but worker 0 has {of_first}; start all workers with the \
                 same command and text"
            )));
        }
    }
    Ok(())
}

/// Records the number of workers, unless it is and always was one.
fn by_workers(manifest: &mut Manifest, world: usize) {
    if world > 1 || manifest.more.contains_key(WORKERS) {
        manifest.insert(WORKERS, world as i64);
    }
}

/// Returns `true` if the run began with this version of the measurements.
pub(crate) fn is_of_this_version(manifest: &Manifest) -> bool {
    let version = manifest.more.get(MEASUREMENT).and_then(Value::as_integer);
    version == Some(i64::from(VERSION))
}

/// Returns `true` if the run has this version and definition, and was not extended.
pub(crate) fn is_run_of(manifest: &Manifest, definition: &TrainDefinition) -> bool {
    let there = manifest.table(DEFINITION);
    is_of_this_version(manifest)
        && is_as_begun(manifest)
        && there.is_some_and(|t| TrainDefinition::from_manifest(t).is_ok_and(|t| t == *definition))
}

/// Returns `true` if the run has the number of steps that it began with. An extended run differs from a run planned
/// with the larger number.
pub(crate) fn is_as_begun(manifest: &Manifest) -> bool {
    !manifest.more.contains_key(EXTENDED)
}

/// Returns the definition with the number of steps of the manifest's run.
pub(crate) fn with_steps_of(manifest: &Manifest, definition: &TrainDefinition) -> TrainDefinition {
    let steps = manifest.table(DEFINITION).and_then(|there| whole(there.get(STEPS)?));
    TrainDefinition { steps: steps.unwrap_or(definition.steps), ..definition.clone() }
}

/// Changes the number of steps of the manifest's run, which is at step `at`, to `to`.
///
/// # Errors
/// The run diverged, or is at step `to` or beyond.
pub(crate) fn extend(
    manifest: &mut Manifest,
    path: &Path,
    to: usize,
    at: usize,
) -> Result<Extension, RunError> {
    let refuse = |why| Err(RunError::unusable(path, format!("the run {why}")));
    if let Some(Outcome::Diverged { step }) = so_far(manifest).map(|so_far| so_far.outcome) {
        return refuse(format!("diverged at step {step}, so more steps cannot help"));
    }
    if to <= at {
        return refuse(format!("is at step {at}; steps = {to} must be above that"));
    }
    let mut from = to;
    if let Some(Value::Table(definition)) = manifest.more.get_mut(DEFINITION) {
        let before = definition.insert(STEPS.to_owned(), (to as i64).into());
        from = before.as_ref().and_then(whole).unwrap_or(to);
    }
    let numbers = [("at_step", at), ("from_steps", from), ("to_steps", to)];
    let extension = numbers.map(|(key, value)| (key.to_owned(), Value::from(value as i64)));
    manifest.push(EXTENDED, Table::from_iter(extension));
    // The result belonged to the old number of steps.
    manifest.more.remove(RESULT);
    Ok(Extension { at, from, to })
}

fn whole(value: &Value) -> Option<usize> {
    usize::try_from(value.as_integer()?).ok()
}

fn about(corpus: &Corpus, source: &str) -> Table {
    let mut about = Table::new();
    let mut insert = |key: &str, value: Value| about.insert(key.to_owned(), value);
    insert(SOURCE, source.into());
    insert("sha256", corpus.sha256.clone().into());
    if let Some(sha256) = &corpus.valid_sha256 {
        insert("valid_sha256", sha256.clone().into());
    }
    insert(VOCABULARY_SIZE, (corpus.vocabulary.size() as i64).into());
    insert(END_OF_DOCUMENT, corpus.vocabulary.has_end.into());
    if let Symbols::Characters(characters) = &corpus.vocabulary.symbols {
        insert(CHARACTERS, characters.iter().collect::<String>().into());
    }
    for split in Split::ALL {
        let tokens = corpus.split(split).len();
        if tokens > 0 || !matches!(split, Split::Upstream | Split::UpstreamValid) {
            insert(&format!("{}_tokens", split.name()), (tokens as i64).into());
        }
    }
    if let Some(entropy) = corpus.entropy_nats {
        insert("entropy_nats", entropy.into());
    }
    about
}

/// Records that the run is resumed from the checkpoint of `step`, by `world` workers.
pub(crate) fn resumed(manifest: &mut Manifest, step: usize, world: usize) {
    by_workers(manifest, world);
    manifest.push(RESUMED, step as i64);
    manifest.insert(OUTCOME, "running");
    kept_files::forget(manifest);
    manifest.ended.clear();
    manifest.go_on(rayon::current_num_threads());
}

/// Records the result of the run.
pub(crate) fn end(manifest: &mut Manifest, summary: &TrainSummary) {
    let &TrainSummary {
        steps,
        train_loss_nats,
        valid_loss_nats,
        upstream_loss_nats,
        max_abs_logit,
        ..
    } = summary;
    // The run's time includes the time before a resumption.
    manifest.wall_time_s = 0.0;
    manifest.end(summary.wall_time_s);
    let found =
        RunResult { steps, train_loss_nats, valid_loss_nats, upstream_loss_nats, max_abs_logit };
    manifest.insert(RESULT, Table::try_from(found).expect("numbers can be written as TOML"));
    manifest.insert(OUTCOME, summary.outcome.name());
}

/// Smallest loss that can be expected on the run's corpus, in nats per token, if it is known.
pub(crate) fn corpus_entropy_nats(manifest: &Manifest) -> Option<f64> {
    manifest.table(CORPUS)?.get("entropy_nats")?.as_float()
}

/// Returns the result of a run that has ended; `None` if it can continue.
pub(crate) fn result(manifest: &Manifest) -> Option<TrainSummary> {
    so_far(manifest).filter(|so_far| so_far.outcome != Outcome::Stopped)
}

/// Returns the result of a run that has ended or was stopped; `None` if it is running or was killed.
pub(crate) fn so_far(manifest: &Manifest) -> Option<TrainSummary> {
    let found: RunResult = manifest.table(RESULT)?.clone().try_into().ok()?;
    let RunResult { steps, train_loss_nats, valid_loss_nats, upstream_loss_nats, max_abs_logit } =
        found;
    let outcome = match manifest.text(OUTCOME) {
        "completed" => Outcome::Completed,
        "diverged" => Outcome::Diverged { step: steps },
        STOPPED => Outcome::Stopped,
        _ => return None,
    };
    Some(TrainSummary {
        outcome,
        steps,
        parameters: whole(manifest.more.get(PARAMETERS)?)?,
        train_loss_nats,
        valid_loss_nats,
        upstream_loss_nats,
        max_abs_logit,
        wall_time_s: manifest.wall_time_s,
    })
}

/// Checks that the manifest's run is the one to be resumed.
///
/// # Errors
/// Definition, corpus or device differ; the error names the first key that differs.
pub(crate) fn check_same(
    manifest: &Manifest,
    path: &Path,
    training: &Training<'_>,
) -> Result<(), RunError> {
    let Training { definition, corpus, device, .. } = *training;
    let there =
        manifest.table(DEFINITION).map(TrainDefinition::without_removed).unwrap_or_default();
    // Keys that did not exist when the run began had their defaults.
    let there = TrainDefinition::from_table(&there).and_then(|d| d.to_table()).unwrap_or(there);
    let here = definition.to_table()?;
    let corpus_there = |key| manifest.table(CORPUS)?.get(key)?.as_str();
    let texts = [
        (DEVICE, Some(manifest.text(DEVICE)), Some(device.name())),
        ("corpus.sha256", corpus_there("sha256"), Some(corpus.sha256.as_str())),
        ("corpus.valid_sha256", corpus_there("valid_sha256"), corpus.valid_sha256.as_deref()),
    ];
    let shown = |text: Option<&str>| text.map_or_else(|| "none".to_owned(), str::to_owned);
    let differs = difference(&there, &here, "").or_else(|| {
        let (key, there, here) = texts.into_iter().find(|(_, there, here)| there != here)?;
        Some((key.to_owned(), shown(there), shown(here)))
    });
    match differs {
        None => Ok(()),
        Some((key, there, here)) => Err(RunError::unusable(
            path,
            format!(
                "{key} is {there} in this run, but {here} was asked for; resume it unchanged, or name another \
                 folder"
            ),
        )),
    }
}

/// Returns the first key whose values differ, as a path with dots, and both values.
fn difference(there: &Table, here: &Table, prefix: &str) -> Option<(String, String, String)> {
    let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
    let mut keys: Vec<&String> = there.keys().chain(here.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter().find_map(|key| match (there.get(key), here.get(key)) {
        (Some(Value::Table(there)), Some(Value::Table(here))) => {
            difference(there, here, &format!("{prefix}{key}."))
        }
        (there, here) if there == here => None,
        (there, here) => Some((format!("{prefix}{key}"), shown(there), shown(here))),
    })
}
