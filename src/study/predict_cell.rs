//! One cell of a study of trained heads: the heads of one layer of one checkpoint, and their rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::cell::{Measure, Needs, Within};
use super::definition::{PredictStudy, RunSource, kept_steps};
use super::evaluate_run::TrainedRun;
use super::fit_cell::write_factors;
use super::row::Row;
use super::run_files::{CHECKPOINT, kept_checkpoint, kept_steps as steps_in};
use super::train_cell::{TextSource, TrainCell};
use super::{StudyError, TrainError};
use crate::lm::{HeadProbe, LmError, TrainDefinition};
use crate::predict::{Actual, LAGS, Parts, PredictError, TrainedHead};
use crate::target::HeadKind;

/// Passages are this many of their lengths apart, where the text is long enough.
const STRIDE: usize = 4;

/// The heads of one layer of one checkpoint.
pub(super) struct PredictCell {
    source: Source,
    /// The step; none for a model from elsewhere.
    step: Option<usize>,
    layer: usize,
    text: Option<TextSource>,
    study: Arc<PredictStudy>,
}

/// Whose weights they are.
#[derive(Clone)]
enum Source {
    /// A training run, in its folder; of a study, what trains it.
    Run { name: String, folder: PathBuf, definition: Box<TrainDefinition>, of: Option<OfStudy> },
}

#[derive(Clone)]
struct OfStudy {
    study: String,
    cell: String,
    trained: TrainCell,
}

/// Why a cell of trained heads has no rows.
#[derive(Debug, thiserror::Error)]
enum CellError {
    #[error(transparent)]
    Train(#[from] TrainError),
    #[error(transparent)]
    Predict(#[from] PredictError),
}

impl From<LmError> for CellError {
    fn from(error: LmError) -> Self {
        Self::Train(error.into())
    }
}

impl From<StudyError> for CellError {
    fn from(error: StudyError) -> Self {
        Self::Train(error.into())
    }
}

impl PredictCell {
    /// Every cell of a study, by run, seed, step and layer. Other studies' runs are in `data`.
    ///
    /// # Errors
    /// A folder that holds no run, or lacks a step or layer that is asked for.
    pub fn all(
        study: &PredictStudy,
        text: Option<&TextSource>,
        data: &Path,
    ) -> Result<Vec<(String, Self)>, StudyError> {
        let shared = Arc::new(study.clone());
        let mut studies: Vec<&str> = Vec::new();
        for source in &study.sources {
            if let RunSource::Study { of, .. } = source
                && !studies.contains(&of.as_str())
            {
                studies.push(of);
            }
        }
        let mut cells = Vec::new();
        for source in &study.sources {
            for (name, source, steps) in runs(source, text, data, studies.len() > 1)? {
                let Source::Run { definition, folder, .. } = &source;
                let steps = if study.steps.is_empty() { steps } else { study.steps.clone() };
                let layers: Vec<usize> = match study.layers.is_empty() {
                    true => (0..definition.layers).collect(),
                    false => study.layers.clone(),
                };
                if let Some(wrong) = layers.iter().find(|&&layer| layer >= definition.layers) {
                    return Err(StudyError::Definition {
                        path: folder.clone(),
                        why: format!("has layers 0 to {}, not {wrong}", definition.layers - 1),
                    });
                }
                for step in steps {
                    for &layer in &layers {
                        let cell = Self {
                            source: source.clone(),
                            step: Some(step),
                            layer,
                            text: text.cloned(),
                            study: shared.clone(),
                        };
                        cells.push((format!("{name}/step-{step}/layer-{layer}"), cell));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn run(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, CellError> {
        let Source::Run { folder, definition, .. } = &self.source;
        let step = self.step.filter(|&step| step != definition.steps);
        let run = TrainedRun::read(folder, step)?;
        let study = &*self.study;
        let tokens = study.tokens.unwrap_or_else(|| run.context());
        let wanted = study.passages * study.groups;
        let texts = self.text.as_ref().map(TextSource::texts);
        let read = run.tokens(texts, study.split, wanted * STRIDE * tokens)?;
        // A short text's passages follow one another.
        let stride = if read.len() == wanted * STRIDE * tokens { STRIDE * tokens } else { tokens };
        if read.len() < wanted * tokens {
            let needed = wanted * tokens;
            return Err(LmError::ShortText { found: read.len(), needed }.into());
        }
        let mut rows = Vec::new();
        let heads = definition.heads;
        let share = 1.0 / (study.groups * heads * study.epsilons.len()) as f64;
        for group in 0..study.groups {
            let firsts: Vec<usize> =
                (0..study.passages).map(|p| (group * study.passages + p) * stride).collect();
            let probes: Vec<Vec<HeadProbe>> = firsts
                .iter()
                .map(|&first| run.probe(&read[first..first + tokens]))
                .collect::<Result<_, _>>()?;
            for head in 0..heads {
                let of_head: Vec<&HeadProbe> = probes
                    .iter()
                    .flatten()
                    .filter(|probe| (probe.layer, probe.head) == (self.layer, head))
                    .collect();
                let trained = TrainedHead::new(&of_head)?;
                let actual = trained.actual()?;
                for &epsilon in &study.epsilons {
                    if within.stop.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                    let started = Instant::now();
                    let parts = trained.parts(&actual, epsilon, study.search)?;
                    if study.factors {
                        keep_factors(within.folder, &trained, group, &parts)?;
                    }
                    let mut row = self.identity();
                    row.set("passage", group);
                    row.set("passages", study.passages);
                    describe(&mut row, &trained, &actual, &parts);
                    row.set("wall_time_s", (started.elapsed().as_secs_f64() * 1e3).round() / 1e3);
                    rows.push(row);
                    (within.advanced)(share);
                }
            }
        }
        Ok(Some(rows))
    }
}

/// The runs of a source: each one's name, itself, and the steps whose weights it keeps.
fn runs(
    source: &RunSource,
    text: Option<&TextSource>,
    data: &Path,
    with_study: bool,
) -> Result<Vec<(String, Source, Vec<usize>)>, StudyError> {
    match source {
        RunSource::Study { of, run, definition, seeds } => {
            let study = match text {
                Some(text) => format!("{of}-{}", text.name),
                None => of.clone(),
            };
            let one = |&seed: &u64| {
                let definition = TrainDefinition { seed, ..(**definition).clone() };
                let steps = kept_steps(&definition);
                let cell = format!("{run}/s{seed}");
                let name = if with_study { format!("{of}/{cell}") } else { cell.clone() };
                let source = Source::Run {
                    name: run.clone(),
                    folder: data.join(&study).join(&cell),
                    of: Some(OfStudy {
                        study: of.clone(),
                        cell,
                        trained: TrainCell::new(run, &definition, text),
                    }),
                    definition: Box::new(definition),
                };
                (name, source, steps)
            };
            Ok(seeds.iter().map(one).collect())
        }
        RunSource::Folder(folder) => {
            let definition = TrainedRun::definition_in(folder).map_err(|e| StudyError::Definition {
                path: folder.clone(),
                why: e.to_string(),
            })?;
            let mut steps = steps_in(folder);
            if steps.is_empty() || folder.join(CHECKPOINT).exists() {
                steps.push(definition.steps);
            }
            steps.sort_unstable();
            steps.dedup();
            let name = folder
                .file_name()
                .map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
            let source = Source::Run {
                name: name.clone(),
                folder: folder.clone(),
                definition: Box::new(definition),
                of: None,
            };
            Ok(vec![(name, source, steps)])
        }
    }
}

/// The columns of what was measured.
fn describe(row: &mut Row, head: &TrainedHead, actual: &Actual, parts: &Parts) {
    row.set("layer", head.layer);
    row.set("head", head.head);
    row.set("kind", head.kind);
    row.set("n", head.tokens);
    row.set("rank", head.rank());
    row.set("epsilon", parts.epsilon);
    row.set("actual", actual.max_abs_logit);
    row.set("spread", actual.logit_spread);
    row.set_some("needed", parts.needed.max_abs_logit);
    row.set_some("needed_tied", parts.needed_tied.max_abs_logit);
    row.set_some("floor", parts.floor);
    row.set_some("inflation", parts.inflation());
    row.set_some("tying", parts.tying());
    row.set_some("drift", parts.drift());
    row.set_some("gauge", parts.gauge());
    row.set("entropy_nats", actual.entropy_nats);
    row.set("effective_rank_logits", actual.effective_rank_logits);
    row.set_some("effective_rank_attention", actual.effective_rank_attention);
    for (column, mass) in MASS_COLUMNS.into_iter().zip(actual.mass_within) {
        row.set(column, mass);
    }
    row.set_some("kl_nats", parts.needed.kl_nats);
    row.set_some("kl_nats_tied", parts.needed_tied.kl_nats);
    row.set("outcome", parts.needed.outcome.name());
    row.set("outcome_tied", parts.needed_tied.outcome.name());
    row.set("iterations", parts.needed.iterations + parts.needed_tied.iterations);
    row.set("evaluations", parts.needed.evaluations + parts.needed_tied.evaluations);
}

/// The columns of the mass on the last [`LAGS`] tokens.
const MASS_COLUMNS: [&str; LAGS.len()] =
    ["mass_within_1", "mass_within_4", "mass_within_16", "mass_within_64"];

/// Writes the factors that were found, where there are any, into folders named for head, passage, ε and kind.
fn keep_factors(
    folder: &Path,
    head: &TrainedHead,
    group: usize,
    parts: &Parts,
) -> Result<(), StudyError> {
    for (kind, found) in [("free", &parts.needed), ("tied", &parts.needed_tied)] {
        if let Some(factors) = &found.factors {
            let name = format!("head-{}-passage-{group}-e{}-{kind}", head.head, parts.epsilon);
            write_factors(&folder.join(name), factors)?;
        }
    }
    Ok(())
}

impl Measure for PredictCell {
    fn settings(&self) -> String {
        let Source::Run { definition, of, .. } = &self.source;
        let PredictStudy { epsilons, passages, groups, tokens, split, search, .. } = &*self.study;
        // The same run on another text is another.
        let trained = of.as_ref().map_or_else(|| format!("{definition:?}"), |of| of.trained.settings());
        let text = self.text.as_ref().map(TextSource::sha256);
        format!(
            "{trained} {text:?} {:?} {} {epsilons:?} {passages} {groups} {tokens:?} {split:?} {search:?}",
            self.step, self.layer
        )
    }

    /// An evaluation costs about what its pairs do, and a head that sees all of them thousands of evaluations.
    fn cost_s(&self) -> f64 {
        let Source::Run { definition, .. } = &self.source;
        let study = &*self.study;
        let n = study.tokens.unwrap_or(definition.context) as f64;
        let d = (definition.d_model / definition.heads) as f64;
        let kinds = definition.head_kinds();
        let pairs: f64 = kinds.get(self.layer).map_or(0.0, |layer| {
            let seen = |kind: &HeadKind| match kind {
                HeadKind::Global => n * n / 2.0,
                HeadKind::Local { window } => n * (*window as f64).min(n),
            };
            layer.iter().map(seen).sum()
        });
        let fits = (study.passages * study.groups * study.epsilons.len()) as f64;
        fits * pairs * (d + 16.0) * SECONDS_PER_PAIR
    }

    fn identity(&self) -> Row {
        let Source::Run { name, definition, of, .. } = &self.source;
        let mut row = match of {
            Some(of) => of.trained.identity(),
            None => TrainCell::new(name, definition, self.text.as_ref()).identity(),
        };
        row.set_some("of", of.as_ref().map(|of| &of.study));
        row.set_some("step", self.step);
        row.set("layer", self.layer);
        row
    }

    fn needs(&self) -> Option<Needs> {
        let Source::Run { folder, definition, of: Some(of), .. } = &self.source else {
            return None;
        };
        let weights = match self.step.filter(|&step| step != definition.steps) {
            Some(step) => kept_checkpoint(step),
            None => CHECKPOINT.to_owned(),
        };
        let missing = !folder.join(weights).exists();
        missing.then(|| Needs { study: of.study.clone(), cell: of.cell.clone() })
    }

    fn measure(&self, within: &Within<'_>) -> Result<Option<Vec<Row>>, String> {
        self.run(within).map_err(|e| e.to_string())
    }
}

/// Seconds of one core that the fits of a head take, by visible pair and (rank + 16).
const SECONDS_PER_PAIR: f64 = 3e-7;
