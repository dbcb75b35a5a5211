//! One training run in its folder: begun, gone on with, ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::error::RunError;
use super::files::{
    CHECKPOINT, RunFiles, TOKENIZER, kept_steps, remove_heads_log, restore_heads_log,
};
use super::manifest::{MANIFEST, Manifest};
use super::run_manifest;
use super::training::{RunObserver, TrainResult, Training};
use crate::lm::{LmError, Outcome, StepRecord, Symbols, Teacher, Trainer};
use crate::system::{FileError, lock, write_whole};

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
/// # Errors
/// A device that is not there, a file that cannot be written, another process at work in the folder, a
/// run there of another definition, corpus or device to be resumed, or an error of the tensor library. Divergence is an outcome.
pub fn train(
    training: &Training<'_>,
    folder: &Path,
    begin: Begin,
    stop: &AtomicBool,
    observer: &dyn RunObserver,
) -> Result<TrainResult, RunError> {
    let Training { definition, corpus, device, teacher, start, .. } = *training;
    device.check()?;
    let _lock = lock(folder)?;
    let path = folder.join(MANIFEST);
    let checkpoint = folder.join(CHECKPOINT);
    let on_step = |record: &StepRecord| observer.step(record);
    let (mut trainer, mut files, mut manifest);
    let begin = match begin {
        Begin::Continue if goes_on(training, &path) => Begin::Resume,
        Begin::Continue => Begin::Anew,
        asked => asked,
    };
    if begin == Begin::Resume && checkpoint.exists() {
        manifest = Manifest::read(&path)?;
        let begun = run_manifest::with_steps_of(&manifest, definition);
        run_manifest::check_same(&manifest, &path, &Training { definition: &begun, ..*training })?;
        if begun.steps == definition.steps
            && let Some(result) = run_manifest::result(&manifest)
        {
            remove_heads_log(folder)?;
            return Ok(result);
        }
        trainer = taught(Trainer::resume(definition, corpus, device, &checkpoint)?, teacher)?;
        if begun.steps != definition.steps {
            let at = trainer.steps();
            let extension = run_manifest::extend(&mut manifest, &path, definition.steps, at)?;
            restore_heads_log(folder)?;
            observer.extended(extension);
        }
        files = RunFiles::go_on(folder, definition, trainer.steps(), &on_step)?;
        run_manifest::resumed(&mut manifest, trainer.steps());
        manifest.write(&path)?;
    } else {
        trainer = taught(Trainer::new(definition, corpus, device)?, teacher)?;
        if let Some((start, _)) = start {
            trainer = trainer.started_from(start)?;
        }
        files = RunFiles::create(folder, definition, &on_step)?;
        let parameters = trainer.model().parameters();
        manifest = run_manifest::begin(training, parameters)?;
        manifest.write(&path)?;
        if let Symbols::BytePairs(bpe) = &corpus.vocabulary.symbols {
            let path = folder.join(TOKENIZER);
            write_whole(&path, bpe.json().as_bytes()).map_err(|e| FileError::write(&path, e))?;
        }
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
    manifest.write(&path)?;
    if summary.outcome != Outcome::Stopped {
        remove_heads_log(folder)?;
    }
    Ok(result)
}

fn taught<'a>(
    trainer: Trainer<'a>,
    teacher: Option<(&'a Teacher, &str)>,
) -> Result<Trainer<'a>, LmError> {
    match teacher {
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
    std::fs::rename(folder, &aside).map_err(|e| FileError::write(&aside, e))?;
    Ok(Some(aside))
}
