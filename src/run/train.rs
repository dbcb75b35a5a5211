//! One training run in its folder: begun, gone on with, ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::error::RunError;
use super::files::{
    CHECKPOINT, EVALUATIONS, RunFiles, TOKENIZER, kept_steps, remove_heads_log, restore_heads_log,
};
use super::kept_files;
use super::manifest::{MANIFEST, Manifest};
use super::run_manifest;
use super::training::{RunObserver, TrainResult, Training};
use crate::lm::{LmError, Outcome, StepRecord, Symbols, Trainer};
use crate::system::{FileError, check_disk, disk, lock, write_whole};

/// What to do with what a run's folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Start, and replace what is there.
    Anew,
    /// Go on from the last checkpoint of the same run, to more steps than it was begun with where the definition has
    /// more; start where there is none.
    Resume,
    /// Go on where the last checkpoint is of the same run; start, and replace what is there, where it
    /// is of another, or of a version that measured otherwise.
    Continue,
}

// What worker 0 tells the others of the run in the folder.
const STARTS: u8 = b'S';
const GOES_ON: u8 = b'G';
const HAS_ENDED: u8 = b'E';

/// Trains one model and keeps its files in `folder`: steps, evaluations and heads as they come, the
/// last checkpoint, the weights of the steps of `keep_checkpoints`, an event file for TensorBoard,
/// the manifest at the start and at the end.
///
/// With [`Begin::Resume`], a run that was stopped or killed at any moment goes on from its last
/// checkpoint, and in the end its files are those of a run left alone, but for the times in them:
/// what was written after the checkpoint is cut off and made again. A run that has ended is left as
/// it is, and its result is told again. Where the definition's number of steps alone is another, above the step that
/// the run is at, the run is extended to it, and the manifest says so.
///
/// Each worker calls this; worker 0 alone decides how to begin, tells the observer and writes, the others
/// read the folder. They may be more or fewer than before a stop.
///
/// # Errors
/// A device that is not there, a run that the machine's memory or the folder's disk cannot hold, a file that cannot be written, another process at work in the folder, a
/// run there of another definition, corpus or device to be resumed, workers with other settings, or an error of the tensor library. Divergence is an outcome.
pub fn train(
    training: &Training<'_>,
    folder: &Path,
    begin: Begin,
    stop: &AtomicBool,
    observer: &dyn RunObserver,
) -> Result<TrainResult, RunError> {
    let Training { definition, corpus, device, workers, .. } = *training;
    device.check()?;
    run_manifest::check_same_of_all(training)?;
    Trainer::check_room(definition, corpus, device, workers)?;
    if workers.rank() > 0 {
        return follow(training, folder, stop);
    }
    check_room_of_files(training, folder)?;
    let _lock = lock(folder)?;
    let path = folder.join(MANIFEST);
    let on_step = |record: &StepRecord| observer.step(record);
    let (mut trainer, mut files, mut manifest);
    let begin = match begin {
        Begin::Continue if goes_on(training, &path) => Begin::Resume,
        Begin::Continue => Begin::Anew,
        asked => asked,
    };
    if begin == Begin::Resume && folder.join(CHECKPOINT).exists() {
        manifest = Manifest::read(&path)?;
        let begun = run_manifest::with_steps_of(&manifest, definition);
        run_manifest::check_same(&manifest, &path, &Training { definition: &begun, ..*training })?;
        if begun.steps == definition.steps
            && let Some(result) = run_manifest::result(&manifest)
        {
            remove_heads_log(folder)?;
            tell(training, &[HAS_ENDED]);
            return Ok(result);
        }
        // What is gone on with is told of as the run's own again.
        kept_files::check(&manifest, folder)?;
        trainer = gone_on(training, folder)?;
        if begun.steps != definition.steps {
            let at = trainer.steps();
            let extension = run_manifest::extend(&mut manifest, &path, definition.steps, at)?;
            restore_heads_log(folder)?;
            observer.extended(extension);
        }
        files = RunFiles::go_on(folder, definition, trainer.steps(), &on_step)?;
        run_manifest::resumed(&mut manifest, trainer.steps(), training.workers.size());
        manifest.write(&path)?;
        tell(training, &[GOES_ON]);
    } else {
        trainer = begun(training)?;
        files = RunFiles::create(folder, definition, &on_step)?;
        let parameters = trainer.model().parameters();
        manifest = run_manifest::begin(training, parameters)?;
        manifest.write(&path)?;
        if let Symbols::BytePairs(bpe) = &corpus.vocabulary.symbols {
            let path = folder.join(TOKENIZER);
            write_whole(&path, bpe.json().as_bytes()).map_err(|e| FileError::write(&path, e))?;
        }
        tell(training, &[STARTS]);
    }
    let mut summary = trainer.run(&mut files, stop)?;
    files.save(&trainer)?;
    files.write_heads()?;
    // A run that took no step now had its last ones before.
    if !matches!(summary.outcome, Outcome::Diverged { .. }) {
        summary.valid_loss_nats = summary.valid_loss_nats.or(files.valid_loss_nats());
    }
    summary.max_abs_logit = summary.max_abs_logit.or(files.max_abs_logit());
    let result = TrainResult {
        summary,
        train_loss_nats: files.train_loss_nats(),
        pattern_kl_nats: trainer.pattern_kl_nats(),
    };
    run_manifest::end(&mut manifest, &result);
    kept_files::note(&mut manifest, folder, EVALUATIONS)?;
    manifest.write(&path)?;
    if summary.outcome != Outcome::Stopped {
        remove_heads_log(folder)?;
    }
    tell(training, &[]);
    Ok(result)
}

/// Refuses a run whose checkpoints the disk of its folder cannot hold, beside those that are there.
fn check_room_of_files(training: &Training<'_>, folder: &Path) -> Result<(), RunError> {
    let Training { definition, corpus, .. } = *training;
    if folder.join(CHECKPOINT).exists() {
        return Ok(());
    }
    let steps: BTreeSet<usize> = definition.keep_checkpoints.iter().copied().collect();
    let kept = steps.range(..=definition.steps).count();
    check_disk(folder, Trainer::bytes_on_disk(definition, corpus, kept))
        .map_err(|room| RunError::NoDisk { folder: folder.to_owned(), room })
}

/// A worker that helps worker 0 to train: it takes every step with it and writes nothing. What it returns is what the
/// steps came to, without what only the files tell.
fn follow(
    training: &Training<'_>,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<TrainResult, RunError> {
    let mut trainer = match tell(training, &[])[..] {
        [HAS_ENDED] => {
            let path = folder.join(MANIFEST);
            let why = "worker 0 reports that the run ended, but the manifest does not; name a folder that \
                       all workers share";
            let ended = run_manifest::result(&Manifest::read(&path)?);
            return ended.ok_or(RunError::Unusable { path, why: why.to_owned() });
        }
        [GOES_ON] => gone_on(training, folder)?,
        _ => begun(training)?,
    };
    let summary = trainer.run(&mut (), stop)?;
    // Worker 0 keeps what was found; until it has, the run has not ended well.
    tell(training, &[]);
    Ok(TrainResult { summary, train_loss_nats: None, pattern_kl_nats: trainer.pattern_kl_nats() })
}

/// Tells all workers something, and returns what worker 0 tells.
fn tell(training: &Training<'_>, message: &[u8]) -> Vec<u8> {
    training.workers.gather(message).swap_remove(0)
}

/// A trainer at its run's start.
fn begun<'a>(training: &Training<'a>) -> Result<Trainer<'a>, LmError> {
    let Training { definition, corpus, device, start, .. } = *training;
    let trainer = complete(Trainer::new(definition, corpus, device)?, training)?;
    match start {
        Some((start, _)) => trainer.started_from(start),
        None => Ok(trainer),
    }
}

/// A trainer at the last checkpoint of the run in `folder`.
fn gone_on<'a>(training: &Training<'a>, folder: &Path) -> Result<Trainer<'a>, LmError> {
    let Training { definition, corpus, device, .. } = *training;
    let trainer = Trainer::resume(definition, corpus, device, &folder.join(CHECKPOINT))?;
    complete(trainer, training)
}

fn complete<'a>(trainer: Trainer<'a>, training: &Training<'a>) -> Result<Trainer<'a>, LmError> {
    let trainer = trainer.together(training.workers)?;
    match training.teacher {
        Some((teacher, _)) => trainer.taught_by(teacher),
        None => Ok(trainer),
    }
}

/// Whether the run whose manifest is at `path` is this one, measured as it is now.
fn goes_on(training: &Training<'_>, path: &Path) -> bool {
    Manifest::read(path).is_ok_and(|manifest| {
        run_manifest::is_of_this_version(&manifest)
            && run_manifest::is_as_begun(&manifest)
            && run_manifest::check_same(&manifest, path, training).is_ok()
    })
}

/// Moves the run in `folder` aside, and says where to, if it is not this one, so that this one begins with a folder of
/// its own: one rename, so that it is either here or there. None where there is no run, or it is this one.
///
/// # Errors
/// Another process at work in the folder, or a folder that cannot be moved.
pub(crate) fn set_aside_another(
    training: &Training<'_>,
    folder: &Path,
) -> Result<Option<PathBuf>, FileError> {
    let manifest = folder.join(MANIFEST);
    let holds_a_run =
        manifest.exists() || folder.join(CHECKPOINT).exists() || !kept_steps(folder).is_empty();
    if !holds_a_run || goes_on(training, &manifest) {
        return Ok(None);
    }
    let _lock = lock(folder)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = folder.with_file_name(format!("{name}-set-aside"));
    let mut count = 1;
    while aside.exists() {
        count += 1;
        aside = folder.with_file_name(format!("{name}-set-aside-{count}"));
    }
    disk::rename(folder, &aside)
        .and_then(|()| disk::sync_folder(folder.parent().unwrap_or(folder)))
        .map_err(|e| FileError::write(&aside, e))?;
    Ok(Some(aside))
}
