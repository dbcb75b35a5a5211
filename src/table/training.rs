//! Trainings against each other: losses and logits of each run, over its seeds.

use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, IntoLazy, PolarsResult, col};

use super::TableError;
use super::columns::{counts, numbers, words};
use super::digits::plural;
use super::grid::{Cell, Column, Table};
use super::rows::Rows;
use super::run_log::RunLog;
use super::spread::Spread;

/// How many of the last steps the final training loss is the mean of.
const LAST_STEPS: usize = 100;

/// One training: one run of the study at one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingRun {
    /// The run's name in the study's definition.
    pub run: String,
    /// The arm: `mhsa`, `ls`, …
    pub arm: String,
    /// The seed.
    pub seed: usize,
    /// The length of the context in tokens.
    pub context: Option<usize>,
    /// The peak learning rate.
    pub learning_rate: Option<f64>,
    /// The model's parameters.
    pub parameters: Option<usize>,
    /// The steps asked for.
    pub steps: Option<usize>,
    /// How it ended: `converged`, `diverged`, …
    pub outcome: String,
    /// How long it took, in seconds.
    pub wall_time_s: Option<f64>,
    /// What it logged.
    pub log: RunLog,
}

/// A study of trainings, by run and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trainings {
    /// The trainings in order.
    pub runs: Vec<TrainingRun>,
    /// Cells that failed with an error and are left out.
    pub failed: usize,
}

impl Trainings {
    /// Gathers the rows of the study in the folder `study`, each with the logs of its cell's folder.
    ///
    /// # Errors
    /// [`TableError::NoRows`] where no training has finished; any fault of a log, with its file.
    pub fn of(study: &Path, rows: &Rows) -> Result<Self, TableError> {
        let fault = TableError::frame(rows.path());
        let mut runs = Vec::new();
        for (cell, mut run) in gather(rows.frame()).map_err(&fault)? {
            run.log = RunLog::of(&study.join(cell))?;
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(TableError::NoRows {
                path: rows.path().to_owned(),
                why: "no training has finished without an error".to_owned(),
                advice: "read the column err, and run the study again".to_owned(),
            });
        }
        let failed = rows.failed()?;
        Ok(Self { runs, failed })
    }

    /// The names of the runs, each with its seeds, in order.
    pub fn by_run(&self) -> impl Iterator<Item = &[TrainingRun]> {
        self.runs.chunk_by(|a, b| a.run == b.run)
    }

    /// The lengths of context that there are, from short to long.
    pub fn contexts(&self) -> Vec<usize> {
        let mut contexts: Vec<usize> = self.runs.iter().filter_map(|run| run.context).collect();
        contexts.sort_unstable();
        contexts.dedup();
        contexts
    }

    /// The trainings of one arm.
    pub fn arm<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a TrainingRun> {
        self.runs.iter().filter(move |run| run.arm == arm)
    }

    /// One table: every run over its seeds.
    pub fn tables(&self) -> Vec<Table> {
        let mut table = Table::new(
            "runs",
            "Loss and logits of each run",
            vec![
                Column::words("run", "run"),
                Column::words("arm", "arm"),
                Column::numbers("parameters", "parameters", None),
                Column::numbers("steps", "steps", None),
                Column::numbers("train_loss_nats", "train loss", Some("nats")),
                Column::numbers("valid_loss_nats", "validation loss", Some("nats")),
                Column::numbers("perplexity", "perplexity", None),
                Column::numbers("max_abs_logit", "max |logit| at the end", None),
                Column::numbers("peak_max_abs_logit", "max |logit| of the run", None),
                Column::words("outcome", "outcome"),
                Column::numbers("wall_time_s", "time", Some("s")),
                Column::numbers("seeds", "seeds", None),
            ],
        );
        for seeds in self.by_run() {
            table.push(row(seeds));
        }
        table.notes.push(format!(
            "Training loss is the mean of the last {LAST_STEPS} steps logged, validation loss that \
             of the last evaluation; medians over seeds, with [least, greatest] where they differ."
        ));
        if self.failed > 0 {
            table.notes.push(format!(
                "Left out: {} that failed, see the column err of the rows.",
                plural(self.failed, "cell")
            ));
        }
        vec![table]
    }
}

fn row(seeds: &[TrainingRun]) -> Vec<Cell> {
    let first = &seeds[0];
    let over = |value: fn(&TrainingRun) -> Option<f64>| Spread::of(seeds.iter().filter_map(value));
    let loss = |spread: Option<Spread>| {
        spread.map_or(Cell::Missing, |spread| Cell::Over { spread, digits: 4 })
    };
    vec![
        Cell::text(&first.run),
        Cell::text(&first.arm),
        first.parameters.map_or(Cell::Missing, Cell::count),
        first.steps.map_or(Cell::Missing, Cell::count),
        loss(over(|run| run.log.final_train_loss(LAST_STEPS))),
        loss(over(|run| run.log.final_valid_loss())),
        Cell::over(over(|run| run.log.perplexity)),
        Cell::over(over(|run| run.log.final_max_logit())),
        Cell::over(over(|run| run.log.peak_max_logit())),
        Cell::text(outcomes(seeds)),
        Cell::over(over(|run| run.wall_time_s)),
        Cell::count(seeds.len()),
    ]
}

/// The outcome that all seeds share, or each with how many had it.
fn outcomes(seeds: &[TrainingRun]) -> String {
    let mut names: Vec<&str> = seeds.iter().map(|run| run.outcome.as_str()).collect();
    names.sort_unstable();
    let runs: Vec<&[&str]> = names.chunk_by(|a, b| a == b).collect();
    match runs.as_slice() {
        [all] => all[0].to_owned(),
        several => {
            let each: Vec<String> =
                several.iter().map(|same| format!("{} × {}", same.len(), same[0])).collect();
            each.join(", ")
        }
    }
}

/// The trainings without an error, each with the folder of its cell and its logs still empty.
fn gather(rows: &DataFrame) -> PolarsResult<Vec<(PathBuf, TrainingRun)>> {
    let frame = rows
        .clone()
        .lazy()
        .filter(col("err").is_null())
        .sort(["arm", "run", "seed"], Default::default())
        .collect()?;
    let word = |name| words(&frame, name);
    let (cell, run, arm, outcome) = (word("cell")?, word("run")?, word("arm")?, word("outcome")?);
    let count = |name| counts(&frame, name);
    let (seed, context) = (count("seed")?, count("context")?);
    let (parameters, steps) = (count("parameters")?, count("steps")?);
    let optional = |name| numbers(&frame, name).unwrap_or_else(|_| vec![None; frame.height()]);
    let (times, learning_rates) = (optional("wall_time_s"), optional("learning_rate"));
    let one = |at: usize| TrainingRun {
        run: run[at].clone().unwrap_or_default(),
        arm: arm[at].clone().unwrap_or_default(),
        seed: seed[at].unwrap_or(0),
        context: context[at],
        learning_rate: learning_rates[at],
        parameters: parameters[at],
        steps: steps[at],
        outcome: outcome[at].clone().unwrap_or_default(),
        wall_time_s: times[at],
        log: RunLog::default(),
    };
    Ok((0..frame.height())
        .map(|at| (cell[at].clone().unwrap_or_default().into(), one(at)))
        .collect())
}
