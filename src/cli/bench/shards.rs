//! `rank-study bench shards`: how evenly the work is dealt to many tasks.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use rank_study::study::{Preset, Simulated, StudyDefinition, stored_lines};

use super::timing::at_least_one;
use crate::cli::analysis::fail_if_missing;
use crate::cli::duration::duration;
use crate::cli::places::data;
use crate::cli::reproduce::staged;
use crate::cli::streams::say;

/// More than any cluster runs at once.
const MOST_TASKS: usize = 1_000_000;

/// Simulate how evenly studies split into tasks
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study bench shards --preset paper --tasks 10 100 1000")]
pub(super) struct ShardsBench {
    /// Size of the studies: quick, smoke or paper
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Split the work into this many tasks
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [10, 100, 1000])]
    tasks: Vec<usize>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// Studies that cannot be planned, rows that cannot be read.
pub(super) fn run(args: &ShardsBench) -> Result<()> {
    args.tasks.iter().try_for_each(|&tasks| at_least_one("--tasks", tasks))?;
    if let Some(tasks) = args.tasks.iter().find(|&&tasks| tasks > MOST_TASKS) {
        bail!("--tasks must be at most {MOST_TASKS} ({tasks} found)");
    }
    let (stages, missing) = staged(&[], args.preset, None, None)?;
    let mut times: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for plan in stages.plans() {
        let of_study = times_of(plan.definition(), args.preset)?;
        times.insert(plan.definition().study.clone(), of_study);
    }
    let seconds = |of: &StudyDefinition, cell: &str| {
        times.get(&of.study).and_then(|of| of.get(cell)).copied()
    };
    for &tasks in &args.tasks {
        let found = stages.simulate(tasks, &seconds);
        let Simulated { cells, told, makespan_s, total_s, longest_s, .. } = found;
        let over = makespan_s / found.ideal_s();
        if args.json {
            let object = serde_json::json!({
                "tasks": tasks, "cells": cells, "told": told, "makespan_s": makespan_s,
                "total_s": total_s, "longest_s": longest_s, "ideal_s": found.ideal_s(), "over_ideal": over,
            });
            say!("{object}");
        } else {
            say!(
                "{tasks} tasks: {} in total, {over:.3}× the ideal ({} of work in {cells} configurations, \
                 {told} of them timed; longest {})",
                duration(makespan_s),
                duration(total_s),
                duration(longest_s)
            );
        }
    }
    fail_if_missing(&missing)
}

/// How long the rows of each cell of a study took, on whatever text they are.
fn times_of(definition: &StudyDefinition, preset: Preset) -> Result<HashMap<String, f64>> {
    let data = data(preset);
    let on_texts = format!("{}-", definition.study);
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&data)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name == definition.study || name.starts_with(&on_texts)
        })
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    let mut times = HashMap::new();
    for folder in folders {
        // The folder of a study whose name begins with this one's has rows of another kind, or of cells of other names.
        let Ok((columns, lines)) = stored_lines(definition.work.kind(), &folder) else { continue };
        let mut here: HashMap<String, f64> = HashMap::new();
        for line in &lines {
            if let Some(seconds) = line.wall_time_s(&columns) {
                *here.entry(line.cell().to_owned()).or_default() += seconds;
            }
        }
        here.into_iter().for_each(|(cell, seconds)| {
            times.entry(cell).or_insert(seconds);
        });
    }
    Ok(times)
}
