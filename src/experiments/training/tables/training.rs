//! Tables of training runs: losses and logits of each run, over its seeds.

use std::path::{Path, PathBuf};

use crate::experiments::training::tables::run_log::RunLog;
use crate::experiments::training::{
    SYNTHETIC, Settings, SettingsOfRuns, TrainingKey, TrainingMeasurement, key_words,
};
use crate::lm::Arm;
use crate::record::{Row, Rows, STOPPED};
use crate::run::RunError;
use crate::system::below;
use crate::table::error::READ_ERR;
use crate::table::groups::{distinct, sorted};
use crate::table::{Cell, Columns, Table, TableError};

/// The name of a variant in figures and verdicts: `mhsa` is `multi-head`. A published model has its own.
pub(crate) fn arm_name(arm: &str) -> &str {
    match arm.parse::<Arm>() {
        Ok(arm) => arm.label(),
        Err(_) => arm,
    }
}

/// The suffix of the name of a run that was stopped.
const SO_FAR: &str = " (so far)";

/// One training run at one seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingRun {
    /// The study's name.
    pub study: String,
    /// The key of its row. Where it [was stopped](Self::is_so_far), the run's name ends in "(so far)" and `steps` counts
    /// those taken.
    pub of: TrainingKey,
    /// The measurement of its row.
    pub found: TrainingMeasurement,
    /// Whether it was chosen for its learning rate, which then is no part of its setting.
    pub is_tuned: bool,
    /// The keys of its definition; empty if only the rows were read.
    pub settings: Settings,
    /// Its logs; empty if only the rows were read.
    pub log: RunLog,
}

impl TrainingRun {
    /// The run of a row, with its logs.
    fn new(row: &Row<TrainingMeasurement>, log: RunLog) -> Self {
        let (study, mut of, found) = (row.study.clone(), row.of.clone(), row.found.clone());
        // A stopped run is not a seed of the runs that ended.
        if found.outcome == STOPPED {
            of.model.run.push_str(SO_FAR);
            let tokens = found.course.tokens.map_or(0, |tokens| tokens as usize);
            of.steps = tokens / (of.batch * of.context);
        }
        Self { study, of, found, log, ..Self::default() }
    }

    /// The run's name in the study's definition.
    pub fn name(&self) -> &str {
        &self.of.model.run
    }

    /// The name without a learning rate at its end: `ls` of `ls-0.003`.
    pub fn name_at_any_rate(&self) -> &str {
        let is_own = |rate: &str| rate.parse() == Ok(self.of.learning_rate);
        self.name()
            .rsplit_once('-')
            .filter(|(_, rate)| is_own(rate))
            .map_or(self.name(), |name| name.0)
    }

    /// The variant: `mhsa`, `ls`, …
    pub fn arm(&self) -> &str {
        &self.of.model.arm
    }

    /// Whether it was stopped before its last step; the next sweep of its study resumes it.
    pub fn is_so_far(&self) -> bool {
        self.found.outcome == STOPPED
    }

    /// The values that runs must share to be compared: seed, length and steps.
    pub fn setting(&self) -> (u64, usize, usize) {
        (self.of.seed, self.of.context, self.of.steps)
    }

    /// The peak learning rate, where it is a part of the setting.
    pub fn learning_rate(&self) -> Option<f64> {
        (!self.is_tuned).then_some(self.of.learning_rate)
    }

    /// The head dimension.
    pub fn d_head(&self) -> usize {
        self.of.model.head_dimension()
    }

    /// The largest max |logit| of the run.
    pub fn peak(&self) -> Option<f64> {
        self.found.course.peak_max_abs_logit
    }

    /// The loss of the last evaluation on the validation split, in nats.
    pub fn loss(&self) -> Option<f64> {
        self.found.valid_loss_nats
    }
}

#[cfg(test)]
impl TrainingRun {
    /// A run with these values.
    pub(crate) fn made_up(name: &str, arm: &str, seed: u64, peak: f64, loss: f64) -> Self {
        let mut run = Self::default();
        (run.of.model.run, run.of.model.arm, run.of.seed) = (name.to_owned(), arm.to_owned(), seed);
        run.found.course.peak_max_abs_logit = Some(peak);
        run.found.valid_loss_nats = Some(loss);
        run
    }
}

#[cfg(test)]
impl Trainings {
    /// A study of these runs.
    pub(crate) fn made_up(runs: impl IntoIterator<Item = TrainingRun>) -> Self {
        Self { runs: runs.into_iter().collect(), failed: 0 }
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
    /// Gathers the rows. With `data`, each has the logs in its cell's folder `data/STUDY/CELL`.
    ///
    /// # Errors
    /// [`TableError::NoRows`] if no run has finished; any error of a log, with its file.
    pub fn of(rows: &Rows<TrainingMeasurement>, data: Option<&Path>) -> Result<Self, TableError> {
        let by = |row: &Row<TrainingMeasurement>| {
            let model = &row.of.model;
            (model.arm.clone(), model.run.clone(), row.of.seed)
        };
        let log = |row: &Row<TrainingMeasurement>| {
            let Some(data) = data else { return Ok(RunLog::default()) };
            let cell = Path::new(&row.study).join(&row.cell);
            let folder = below(data, &cell).map_err(|why| RunError::Unusable {
                path: rows.path.clone(),
                why: format!(
                    "the cell {} {why}: it is no run; measure the study again",
                    cell.display()
                ),
            })?;
            RunLog::read(&folder)
        };
        let runs = sorted(&rows.rows, by).into_iter();
        let runs = runs.map(|row| Ok(TrainingRun::new(row, log(row)?)));
        let runs = runs.collect::<Result<Vec<_>, TableError>>()?;
        let why = "no training has finished without an error";
        let runs = TableError::unless_empty(runs, &rows.path, why, READ_ERR)?;
        Ok(Self { runs, failed: rows.failed })
    }

    /// Gives each run the keys of its definition.
    pub fn with_settings(mut self, all: &SettingsOfRuns) -> Self {
        for run in &mut self.runs {
            let name = run.name().strip_suffix(SO_FAR).unwrap_or(run.name());
            let Some(own) = all.get(&(run.study.clone(), name.to_owned())) else { continue };
            run.settings = own.clone();
            if run.of.corpus != SYNTHETIC {
                run.settings.remove("corpus");
            }
            run.settings.insert("text", &run.of.corpus.as_str().into());
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
        self.runs.retain(|run| is_of(run) || runs.contains(&run.of.model.run));
    }

    /// The seeds of each run, in the order of the names.
    pub fn by_run(&self) -> impl Iterator<Item = &[TrainingRun]> {
        self.runs.chunk_by(|a, b| a.name() == b.name())
    }

    /// The context lengths in ascending order.
    pub fn contexts(&self) -> Vec<usize> {
        distinct(self.runs.iter().map(|run| run.of.context))
    }

    /// The runs of one variant.
    pub fn arm<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a TrainingRun> {
        self.runs.iter().filter(move |run| run.arm() == arm)
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
                    .numbers(key, &heading, |row| text(row).and_then(number).map(Cell::Setting)),
                false => table.words(key, &heading, text),
            };
        }
        table
    }

    /// One table: every run over its seeds.
    pub fn tables(&self) -> Vec<Table> {
        let runs = self.by_run().map(|seeds| seeds.iter().collect());
        let table = Table::from_groups("runs", "Loss and logits of each run", runs)
            .words("run", "run", |run| run.name())
            .words("arm", "variant", |run| run.arm());
        let table = self
            .differing_columns(table, |run| run, &["arm", "steps"])
            .numbers("parameters", "parameters", |run| run.found.parameters)
            .numbers("steps", "steps", |run| run.of.steps)
            .medians_to(4, "train_loss_nats", "training loss (nats)", |run| {
                run.found.train_loss_nats
            })
            .medians_to(4, "valid_loss_nats", "validation loss (nats)", TrainingRun::loss);
        let upstream = |run: &TrainingRun| run.found.upstream_loss_nats;
        let table = match self.runs.iter().any(|run| upstream(run).is_some()) {
            true => table.medians_to(4, "upstream_loss_nats", "upstream loss (nats)", upstream),
            false => table,
        };
        let table = table
            .medians("perplexity", "perplexity", |run| run.loss().map(f64::exp))
            .medians("max_abs_logit", "max |logit| at the end", |run| run.found.max_abs_logit)
            .medians("peak_max_abs_logit", "peak max |logit|", TrainingRun::peak)
            .medians("loss_spike_score", "loss spikes (share of steps)", |r| {
                r.found.course.loss_spike_score
            })
            .medians("grad_spike_score", "gradient spikes (share of steps)", |r| {
                r.found.course.grad_spike_score
            })
            .medians("loss_spikes", "loss rises", |r| r.found.course.loss_spikes as f64)
            .words_per_group("outcome", "outcome", |runs| {
                distinct(runs.iter().map(|run| run.found.outcome.as_str())).join(", ")
            })
            .medians("wall_time_s", "time (s)", |run| run.found.wall_time_s)
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
