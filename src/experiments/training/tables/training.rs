//! Tables of training runs: losses and logits of each run, over its seeds.

use std::path::{Path, PathBuf};

use crate::experiments::training::tables::run_log::RunLog;
use crate::experiments::training::{
    RunSettings, SYNTHETIC, Settings, TrainingMeasurement, key_words,
};
use crate::record::{Row, Rows, STOPPED};
use crate::run::RunError;
use crate::system::below;
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, sorted};
use crate::table::{Cell, Columns, Table, TableError};

/// The name of a variant in figures and verdicts: `mhsa` is `multi-head`.
pub(crate) fn arm_name(arm: &str) -> &str {
    match arm {
        "mhsa" => "multi-head",
        "ls" => "LS-attention",
        "local-only" => "local heads only",
        "layer-alternating" => "alternating layers",
        "qk-norm" => "QK-norm",
        "qk-clip" => "QK-clip",
        "sigma-reparam" => "σReparam",
        other => other,
    }
}

/// The suffix of the name of a run that was stopped.
const SO_FAR: &str = " (so far)";

/// One training run at one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingRun {
    /// The study's name.
    pub study: String,
    /// The run's name in the study's definition; it ends in "(so far)" if the run was stopped.
    pub run: String,
    /// The variant: `mhsa`, `ls`, …
    pub arm: String,
    /// The seed.
    pub seed: usize,
    /// The corpus: a text's name, or `synthetic`.
    pub corpus: String,
    /// The length of the context in tokens.
    pub context: Option<usize>,
    /// The peak learning rate.
    pub learning_rate: Option<f64>,
    /// The model's parameters.
    pub parameters: Option<usize>,
    /// The steps of the definition, or the steps taken if it [was stopped](Self::is_so_far).
    pub steps: Option<usize>,
    /// The outcome: `completed`, `diverged` or `stopped`.
    pub outcome: String,
    /// Wall time, in s.
    pub wall_time_s: Option<f64>,
    /// The number of global heads per layer.
    pub global_heads: Option<usize>,
    /// The window of its local heads, where it has some.
    pub window: Option<usize>,
    /// The positional encoding.
    pub positions: String,
    /// The position bias.
    pub slopes: String,
    /// The width of the residual stream.
    pub d_model: Option<usize>,
    /// Dimensions of a head, if the row has them.
    pub d_head: Option<usize>,
    /// Heads of a layer.
    pub heads: Option<usize>,
    /// Mean training loss of the last 100 steps, in nats.
    pub train_loss_nats: Option<f64>,
    /// Loss of the last evaluation on the validation split, in nats.
    pub valid_loss_nats: Option<f64>,
    /// Max |logit| over the heads in the last step.
    pub max_abs_logit: Option<f64>,
    /// The largest max |logit| of the run.
    pub peak_max_abs_logit: Option<f64>,
    /// OLMo 2's spike score of the loss: the share of steps that are spikes.
    pub loss_spike_score: Option<f64>,
    /// The same for the gradient norm.
    pub grad_spike_score: Option<f64>,
    /// The number of times that the loss rose far above its local median.
    pub loss_spikes: Option<usize>,
    /// The share of the synthetic corpus's segments that are recall.
    pub recall: Option<f64>,
    /// The smallest expected loss of any model, in nats.
    pub corpus_entropy_nats: Option<f64>,
    /// The keys of its definition; empty if only the rows were read.
    pub settings: Settings,
    /// Its logs; empty if only the rows were read.
    pub log: RunLog,
}

impl TrainingRun {
    /// Whether it was stopped before its last step; the next sweep of its study resumes it.
    pub fn is_so_far(&self) -> bool {
        self.outcome == STOPPED
    }

    /// The values that runs must share to be compared: seed, length and steps.
    pub fn setting(&self) -> (usize, Option<usize>, Option<usize>) {
        (self.seed, self.context, self.steps)
    }

    /// The head dimension.
    pub fn d_head(&self) -> Option<usize> {
        self.d_head.or_else(|| Some(self.d_model? / self.heads?))
    }

    /// e to the validation loss.
    pub fn perplexity(&self) -> Option<f64> {
        self.valid_loss_nats.map(f64::exp)
    }
}

impl From<&Row<TrainingMeasurement>> for TrainingRun {
    fn from(row: &Row<TrainingMeasurement>) -> Self {
        let (of, found, course) = (&row.of, &row.found, &row.found.course);
        // A stopped run is not a seed of the runs that ended.
        let (run, steps) = match found.outcome == STOPPED {
            true => {
                let tokens = course.tokens.map(|tokens| tokens as usize);
                (
                    format!("{}{SO_FAR}", of.model.run),
                    tokens.map(|tokens| tokens / (of.batch * of.context)),
                )
            }
            false => (of.model.run.clone(), Some(of.steps)),
        };
        Self {
            study: row.study.clone(),
            run,
            arm: of.model.arm.clone(),
            seed: of.seed as usize,
            corpus: of.corpus.clone(),
            context: Some(of.context),
            learning_rate: Some(of.learning_rate),
            parameters: Some(found.parameters),
            steps,
            outcome: found.outcome.clone(),
            wall_time_s: Some(found.wall_time_s),
            global_heads: Some(of.model.global_heads),
            window: of.model.window,
            positions: of.model.positions.clone(),
            slopes: of.model.slopes.clone(),
            d_model: Some(of.model.d_model),
            d_head: Some(of.model.head_dimension()),
            heads: Some(of.model.heads),
            train_loss_nats: found.train_loss_nats,
            valid_loss_nats: found.valid_loss_nats,
            max_abs_logit: found.max_abs_logit,
            peak_max_abs_logit: course.peak_max_abs_logit,
            loss_spike_score: Some(course.loss_spike_score),
            grad_spike_score: Some(course.grad_spike_score),
            loss_spikes: Some(course.loss_spikes),
            recall: of.recall,
            corpus_entropy_nats: found.corpus_entropy_nats,
            settings: Settings::default(),
            log: RunLog::default(),
        }
    }
}

/// A study of training runs, by run and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trainings {
    /// The runs in order.
    pub runs: Vec<TrainingRun>,
    /// The number of cells that failed and are left out.
    pub failed: usize,
}

impl Trainings {
    /// Gathers the rows, each with the logs in its cell's folder `data/STUDY/CELL`, where `data` is the argument.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if no run has finished; any error of a log, with its file.
    pub fn of(data: &Path, rows: &Rows<TrainingMeasurement>) -> Result<Self, TableError> {
        Self::gathered(rows, |cell| {
            let folder = below(data, cell).map_err(|why| RunError::Unusable {
                path: rows.path.clone(),
                why: format!(
                    "the cell {} {why}: it is no run; measure the study again",
                    cell.display()
                ),
            })?;
            RunLog::read(&folder)
        })
    }

    /// Gathers the rows without logs.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if no run has finished.
    pub fn of_rows(rows: &Rows<TrainingMeasurement>) -> Result<Self, TableError> {
        Self::gathered(rows, |_| Ok(RunLog::default()))
    }

    fn gathered(
        rows: &Rows<TrainingMeasurement>,
        log: impl Fn(&Path) -> Result<RunLog, TableError>,
    ) -> Result<Self, TableError> {
        let by = |row: &Row<TrainingMeasurement>| {
            let model = &row.of.model;
            (model.arm.clone(), model.run.clone(), row.of.seed)
        };
        let mut runs = Vec::new();
        for row in sorted(&rows.rows, by) {
            let log = log(&Path::new(&row.study).join(&row.cell))?;
            runs.push(TrainingRun { log, ..TrainingRun::from(row) });
        }
        let why = "no training has finished without an error";
        let runs = TableError::unless_empty(runs, &rows.path, why, READ_ERR)?;
        Ok(Self { runs, failed: rows.failed })
    }

    /// Gives each run the keys of its definition.
    pub fn with_settings(mut self, all: &[RunSettings]) -> Self {
        for run in &mut self.runs {
            let name = run.run.strip_suffix(SO_FAR).unwrap_or(&run.run);
            let own = all.iter().find(|one| one.study == run.study && one.run == name);
            let Some(own) = own else { continue };
            run.settings = own.settings.clone();
            if run.corpus != SYNTHETIC {
                run.settings.remove("corpus");
            }
            run.settings.insert("text", &run.corpus.as_str().into());
        }
        self
    }

    /// The runs that ended; only these count for verdicts.
    pub fn ended(&self) -> Self {
        let ended = self.runs.iter().filter(|run| !run.is_so_far()).cloned().collect();
        Self { runs: ended, failed: self.failed }
    }

    /// Keeps the runs of the studies in the folders `studies`, and other runs with a name in `runs`.
    pub fn keep(&mut self, studies: &[PathBuf], runs: &[String]) {
        let is_of = |run: &TrainingRun| {
            studies.iter().any(|study| study.file_name().is_some_and(|name| *name == *run.study))
        };
        self.runs.retain(|run| is_of(run) || runs.contains(&run.run));
    }

    /// The seeds of each run, in the order of the names.
    pub fn by_run(&self) -> impl Iterator<Item = &[TrainingRun]> {
        self.runs.chunk_by(|a, b| a.run == b.run)
    }

    /// The context lengths in ascending order.
    pub fn contexts(&self) -> Vec<usize> {
        distinct(self.runs.iter().filter_map(|run| run.context))
    }

    /// The runs of one variant.
    pub fn arm<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a TrainingRun> {
        self.runs.iter().filter(move |run| run.arm == arm)
    }

    /// Adds a column for each key in which the runs differ, except those in `shown`.
    pub(crate) fn differing_columns<'r, R>(
        &'r self,
        mut table: Columns<'r, R>,
        run: impl Fn(&'r R) -> &'r TrainingRun,
        shown: &[&str],
    ) -> Columns<'r, R> {
        let all = || self.runs.iter().map(|run| &run.settings);
        for key in Settings::differing(all()).into_iter().filter(|key| !shown.contains(key)) {
            let values: Vec<&str> = distinct(all().filter_map(|settings| settings.get(key)));
            if values.len() == 1 && Settings::is_implied_by_variant(key) {
                continue;
            }
            let (heading, text) = (key_words(key), |row| run(row).settings.get(key));
            let number = |text: &str| text.parse::<f64>().ok();
            table = match values.iter().all(|value| number(value).is_some()) {
                true => table
                    .numbers(key, &*heading, |row| text(row).and_then(number).map(Cell::Setting)),
                false => table.words(key, &heading, text),
            };
        }
        table
    }

    /// One table: every run over its seeds.
    pub fn tables(&self) -> Vec<Table> {
        let runs = self.by_run().map(|seeds| seeds.iter().collect());
        let table = Table::from_groups("runs", "Loss and logits of each run", runs)
            .words("run", "run", |run| &run.run)
            .words("arm", "variant", |run| &run.arm);
        let table = self
            .differing_columns(table, |run| run, &["arm", "steps"])
            .numbers("parameters", "parameters", |run| run.parameters)
            .numbers("steps", "steps", |run| run.steps)
            .medians_to(4, "train_loss_nats", ("training loss", "nats"), |run| run.train_loss_nats)
            .medians_to(4, "valid_loss_nats", ("validation loss", "nats"), |r| r.valid_loss_nats)
            .medians("perplexity", "perplexity", TrainingRun::perplexity)
            .medians("max_abs_logit", "max |logit| at the end", |run| run.max_abs_logit)
            .medians("peak_max_abs_logit", "peak max |logit|", |run| run.peak_max_abs_logit)
            .medians("loss_spike_score", "loss spikes (share of steps)", |r| r.loss_spike_score)
            .medians("grad_spike_score", "gradient spikes (share of steps)", |r| r.grad_spike_score)
            .medians("loss_spikes", "loss rises", |run| run.loss_spikes.map(|count| count as f64))
            .words_per_group("outcome", "outcome", |runs| {
                distinct(runs.iter().map(|run| run.outcome.as_str())).join(", ")
            })
            .medians("wall_time_s", ("time", "s"), |run| run.wall_time_s)
            .sizes("seeds", "seeds")
            .note(
                "Training loss: mean of the last 100 steps. Validation loss: last evaluation. \
                 Medians over seeds, with (least–greatest) where they differ. Spikes: values at \
                 least 7 standard deviations from the mean of the 1,000 before (OLMo 2's score). \
                 Rises: stretches of losses as far above the median of the 201 around, by its \
                 median absolute deviation.",
            )
            .note_if(
                self.runs.iter().any(TrainingRun::is_so_far),
                "So far: runs that were stopped; a new sweep of the study resumes them. Steps are \
                 those taken. No verdict counts them as ended.",
            )
            .note_failed(self.failed);
        vec![table.build()]
    }
}
