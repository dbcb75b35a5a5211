//! Views of training runs.

use std::path::{Path, PathBuf};

use super::figures::{across_runs, overview, training};
use super::settings::{SettingsOfRuns, run_settings};
use super::tables::training::Trainings;
use super::{TrainStudy, claims};
use crate::claims::Group;
use crate::experiment::{Analysed, Configuration, MeasuredStudy, View, folders, rows_of};
use crate::experiments::training::claims::tuning::Tuned;
use crate::record::Rows;
use crate::table::TableError;

pub(super) const VIEWS: &[View] = &[
    View::new("training", Group::Training, "Loss and largest logit by step.", |studies| {
        let rows = with_logs(studies)?;
        // Curves of several lengths would overlap in one panel.
        let figures = match rows.contexts().len() {
            0 | 1 => {
                let kinds = training::head_kinds(&rows);
                [training::training(&rows)].into_iter().chain(kinds).collect()
            }
            _ => training::by_context(&rows),
        };
        let verdicts = claims::training::verdicts(&rows);
        Ok(Analysed { tables: rows.tables(), figures, verdicts })
    })
    .checked(without_baseline),
    View::new("dial", Group::Training, "Loss by the share of long-range look-ups.", |studies| {
        let rows = without_logs(studies)?;
        let verdicts = claims::long_range::verdicts(&rows.ended());
        Ok(Analysed { tables: rows.tables(), figures: across_runs::dial(&rows), verdicts })
    })
    .checked(without_baseline),
    View::new(
        "learning-rate",
        Group::Training,
        "Loss and peak logit by learning rate.",
        |studies| {
            let rows = without_logs(studies)?;
            let mut figures = across_runs::learning_rate(&rows);
            let mut verdicts = Vec::new();
            // One seed at the best rate decides nothing.
            if rows.by_run().any(|seeds| seeds.len() > 1) {
                let best = Tuned::of(&with_logs(studies)?, &[], |_| true).tuned();
                figures.push(training::training(&best));
                // Studies of other systems than the paper's decide nothing about it.
                verdicts = claims::single_key::verdicts(&rows);
                if verdicts.is_empty() {
                    verdicts = claims::training::verdicts(&rows);
                    verdicts.extend(claims::stabilisers::verdicts(&rows));
                }
            }
            Ok(Analysed { tables: rows.tables(), figures, verdicts })
        },
    )
    .checked(without_baseline),
    View::new(
        "head-size",
        Group::Training,
        "Peak logit and loss by head dimension, one line per number of heads.",
        |studies| {
            let rows = without_logs(studies)?;
            let figures = across_runs::head_size(&rows);
            let verdicts = claims::head_size::verdicts(&rows.ended());
            Ok(Analysed { tables: rows.tables(), figures, verdicts })
        },
    )
    .checked(without_baseline),
    View::new(
        "variants",
        Group::Training,
        "Loss and peak logits of runs, compared with a baseline. Needs `[baseline]`.",
        |studies| {
            let (rows, baselines) = with_baselines(studies)?;
            let mut tables = vec![rows.variants_table(&baselines)];
            tables.extend(rows.tables());
            let figures = overview::overview(&rows)
                .into_iter()
                .chain([training::variants(&rows)])
                .chain(training::by_context(&rows))
                .collect();
            let ended = rows.ended();
            let mut verdicts = Vec::new();
            if ["ls", "mhsa"].iter().all(|arm| ended.arm(arm).next().is_some()) {
                verdicts.extend(claims::training::verdicts(&rows));
            }
            verdicts.extend(claims::position_bias::verdicts(&ended, &baselines));
            Ok(Analysed { tables, figures, verdicts })
        },
    )
    .checked(beside_baseline),
];

fn trainings(work: &Option<Configuration>) -> Option<&TrainStudy> {
    work.as_ref()?.downcast_ref()
}

fn without_baseline(work: &Configuration) -> Result<(), String> {
    match work.downcast_ref::<TrainStudy>().and_then(|study| study.baseline.as_ref()) {
        None => Ok(()),
        Some(_) => Err("baseline: the view compares with no baseline; leave it out".to_owned()),
    }
}

fn beside_baseline(work: &Configuration) -> Result<(), String> {
    match work.downcast_ref::<TrainStudy>().and_then(|study| study.baseline.as_ref()) {
        None => Err("needs a [baseline] with of, a study, and runs of it".to_owned()),
        Some(_) => Ok(()),
    }
}

/// The keys of the runs of these studies and of their baselines.
fn settings(studies: &[MeasuredStudy]) -> SettingsOfRuns {
    let all =
        studies.iter().flat_map(|study| std::iter::once(study).chain(study.baseline.as_deref()));
    let of_study = |study: &MeasuredStudy| {
        trainings(&study.measured).map(|runs| run_settings(&study.folder, runs))
    };
    all.filter_map(of_study).flatten().collect()
}

fn without_logs(studies: &[MeasuredStudy]) -> Result<Trainings, TableError> {
    Ok(Trainings::of(&rows_of(studies)?, None)?.with_settings(&settings(studies)))
}

fn with_logs(studies: &[MeasuredStudy]) -> Result<Trainings, TableError> {
    logged(studies, &folders(studies))
}

fn logged(studies: &[MeasuredStudy], folders: &[PathBuf]) -> Result<Trainings, TableError> {
    let data = folders.first().and_then(|study| study.parent()).unwrap_or(Path::new(""));
    let all = Trainings::of(&Rows::read(folders)?, Some(data))?;
    Ok(all.with_settings(&settings(studies)))
}

/// The runs with their logs, including those of the baselines, and the names of the baselines.
fn with_baselines(studies: &[MeasuredStudy]) -> Result<(Trainings, Vec<String>), TableError> {
    let own = folders(studies);
    let mut all = own.clone();
    let mut names: Vec<String> = Vec::new();
    for study in studies {
        // The baselines of a study may be its own runs.
        if let Some(other) = study.baseline.as_ref().filter(|other| !all.contains(&other.folder)) {
            all.push(other.folder.clone());
        }
        let baseline = trainings(&study.now).and_then(|now| now.baseline.as_ref());
        let runs = baseline.iter().flat_map(|baseline| &baseline.runs);
        names.extend(runs.filter(|run| !names.contains(run)).cloned().collect::<Vec<_>>());
    }
    let mut runs = logged(studies, &all)?;
    runs.keep(&own, &names);
    Ok((runs, names))
}
