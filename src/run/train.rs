//! One training run in its folder: start, resumption and end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::error::RunError;
use super::files::{
    CHECKPOINT, EVALUATIONS, RunFiles, TOKENIZER, kept_steps, remove_heads_log, restore_heads_log,
};
use super::manifest::{MANIFEST, Manifest};
use super::training::{RunObserver, Training};
use super::{kept_files, run_manifest};
use crate::lm::{LmError, Outcome, StepRow, Symbols, TrainSummary, Trainer};
use crate::system::{FileError, check_disk, disk, lock, write_whole};

/// Treatment of an existing run in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Start, and replace an existing run.
    Anew,
    /// Resume the same run from its last checkpoint, with more steps if the definition has more. Start if there is no
    /// checkpoint.
    Resume,
    /// Resume if the last checkpoint belongs to the same run. Otherwise (another run, or a version that measured
    /// differently), start and replace the run.
    Continue,
}

// Messages of worker 0 to the others about the run in the folder.
const STARTS: u8 = b'S';
const GOES_ON: u8 = b'G';
const HAS_ENDED: u8 = b'E';

/// Trains one model and writes its files to `folder`. Steps, evaluations and heads are written during the run, as are
/// the last checkpoint and the weights of the steps in `keep_checkpoints`. There is also an event file for TensorBoard,
/// and a manifest, written at the start and at the end.
///
/// With [`Begin::Resume`], a run that was stopped or killed at any time continues from its last checkpoint. Everything
/// written after the checkpoint is removed and made again. In the end the files equal those of an uninterrupted run,
/// except for times. A run that has ended stays as it is, and its result is returned again. If only the definition's
/// number of steps differs, and exceeds the run's current step, the run is extended to it and the manifest records
/// this.
///
/// Every worker calls this function. Only worker 0 chooses how to begin, calls the observer and writes; the others read
/// the folder. The number of workers may change at a resumption.
///
/// # Errors
/// A missing device; a run that does not fit in memory or on the folder's disk; a file that cannot be written; another
/// process in the folder. Also a run to be resumed with another definition, corpus or device, workers with different
/// settings, or an error of the tensor library. Divergence is an outcome, not an error.
pub fn train(
    training: &Training<'_>,
    folder: &Path,
    begin: Begin,
    stop: &AtomicBool,
    observer: &dyn RunObserver,
) -> Result<TrainSummary, RunError> {
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
    let on_step = |row: &StepRow| observer.step(row);
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
        // Only unchanged files are continued, because the manifest will vouch for them again.
        kept_files::check(&manifest, folder)?;
        trainer = gone_on(training, folder)?;
        if begun.steps != definition.steps {
            let at = trainer.steps();
            let extension = run_manifest::extend(&mut manifest, &path, definition.steps, at)?;
            restore_heads_log(folder)?;
            observer.extended(extension);
        }
        files = RunFiles::open(folder, definition, Some(trainer.steps()), &on_step)?;
        run_manifest::resumed(&mut manifest, trainer.steps(), training.workers.size());
        manifest.write(&path)?;
        tell(training, &[GOES_ON]);
    } else {
        trainer = begun(training)?;
        files = RunFiles::open(folder, definition, None, &on_step)?;
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
    files.complete(&mut summary);
    run_manifest::end(&mut manifest, &summary);
    kept_files::note(&mut manifest, folder, EVALUATIONS)?;
    manifest.write(&path)?;
    if summary.outcome != Outcome::Stopped {
        remove_heads_log(folder)?;
    }
    tell(training, &[]);
    Ok(summary)
}

/// Checks that the disk of the folder has space for the run's checkpoints; skipped if the run has a checkpoint already.
fn check_room_of_files(training: &Training<'_>, folder: &Path) -> Result<(), RunError> {
    let Training { definition, corpus, .. } = *training;
    if folder.join(CHECKPOINT).exists() {
        return Ok(());
    }
    let steps: BTreeSet<usize> = definition.keep_checkpoints.iter().copied().collect();
    let kept = steps.range(..=definition.steps).count();
    check_disk(folder, Trainer::bytes_on_disk(definition, corpus, kept))
        .map_err(|room| {
            let why = format!(
                "checkpoints need at least {room}; free some, keep fewer checkpoints or shrink the model"
            );
            RunError::unusable(folder, why)
        })
}

/// Runs a worker other than worker 0: takes every step with it, and writes nothing. The result lacks values that are
/// read from the files.
fn follow(
    training: &Training<'_>,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<TrainSummary, RunError> {
    let mut trainer = match tell(training, &[])[..] {
        [HAS_ENDED] => {
            let path = folder.join(MANIFEST);
            let ended = run_manifest::result(&Manifest::read(&path)?);
            return ended.ok_or_else(|| {
                RunError::unusable(
                    &path,
                    "worker 0 reports that the run ended, but the manifest does not; name a folder that \
                     all workers share",
                )
            });
        }
        [GOES_ON] => gone_on(training, folder)?,
        _ => begun(training)?,
    };
    let summary = trainer.run(&mut (), stop)?;
    // The run has ended only when worker 0 has saved its results.
    tell(training, &[]);
    Ok(summary)
}

/// Sends a message to all workers, and returns the message of worker 0.
fn tell(training: &Training<'_>, message: &[u8]) -> Vec<u8> {
    training.workers.gather(message).swap_remove(0)
}

/// Creates a trainer at the start of its run.
fn begun<'a>(training: &Training<'a>) -> Result<Trainer<'a>, LmError> {
    let Training { definition, corpus, device, .. } = *training;
    Trainer::new(definition, corpus, device)?.together(training.workers)
}

/// Creates a trainer at the last checkpoint of the run in `folder`.
fn gone_on<'a>(training: &Training<'a>, folder: &Path) -> Result<Trainer<'a>, LmError> {
    let Training { definition, corpus, device, .. } = *training;
    let trainer = Trainer::resume(definition, corpus, device, &folder.join(CHECKPOINT))?;
    trainer.together(training.workers)
}

/// Whether the manifest at `path` belongs to this run, with the same version of the measurements and no extension.
fn goes_on(training: &Training<'_>, path: &Path) -> bool {
    Manifest::read(path).is_ok_and(|manifest| {
        run_manifest::is_of_this_version(&manifest)
            && run_manifest::is_as_begun(&manifest)
            && run_manifest::check_same(&manifest, path, training).is_ok()
    })
}

/// Moves a different run in `folder` aside with one rename, and returns its new path, so that this run begins in a new
/// folder. Returns `None` if there is no run, or if it is this one.
///
/// # Errors
/// Another process works in the folder, or the folder cannot be moved.
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
