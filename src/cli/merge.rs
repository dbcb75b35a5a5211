//! `rank-study merge` and `rank-study list --shards`: the shards of studies.

use anyhow::{Result, bail};
use clap::Args;
use rank_study::study::{Merged, PartState, PartsState, Preset, has_parts, merge};
use rank_study::system::printable;
use rank_study::table::plural;

use super::analysis::fail_if_missing;
use super::flags::PresetFlag;
use super::places::{data, folder_of, names_in_data};
use super::streams::{is_quiet, say};

/// Merge the rows of shards
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study merge
  rank-study merge logit-growth phase

Joins data/STUDY/shards/I-of-N/ into data/STUDY/rows.csv. Guide: docs/cluster.md")]
pub struct MergeArgs {
    /// Studies measured in shards [default: all]
    studies: Vec<String>,
    #[command(flatten)]
    preset: PresetFlag,
}

/// Runs the subcommand.
///
/// # Errors
/// Studies that cannot be merged, reported after all others.
pub fn run(args: &MergeArgs) -> Result<()> {
    let data = data(args.preset.get());
    let studies = match args.studies.is_empty() {
        true => names_in_data(args.preset.get(), |folder| Ok(has_parts(folder)))?,
        false => args.studies.clone(),
    };
    let say = |line: String| {
        if !is_quiet() {
            say!("{line}");
        }
    };
    if studies.is_empty() {
        say(format!("no study in {}/ has rows of shards", data.display()));
    }
    let mut missing: Vec<(String, String)> = Vec::new();
    for study in studies {
        let merged =
            folder_of(&study, args.preset.get()).and_then(|folder| match folder.exists() {
                true => Ok(merge(&folder)?),
                false => bail!("no folder {}; see rank-study list", folder.display()),
            });
        match merged {
            Ok(Some(merged)) => say(format!("{study}: {}", describe(&merged))),
            Ok(None) => say(format!("{study}: no rows of shards")),
            Err(error) => missing.push((study, error.to_string())),
        }
    }
    fail_if_missing(&missing)
}

/// Describes the result of a merge.
fn describe(merged: &Merged) -> String {
    let Merged { parts, cells, rows, twice, at_work } = merged;
    let mut line = format!(
        "{} of {}; {} in total",
        plural(*cells, "configuration"),
        plural(*parts, "shard"),
        plural(*rows, "row")
    );
    if *twice > 0 {
        line.push_str(&format!(
            "; {} measured twice, with equal numbers",
            plural(*twice, "configuration")
        ));
    }
    if !at_work.is_empty() {
        line.push_str(&format!("; still running: {}", at_work.join(", ")));
    }
    line
}

/// Prints the progress of the shards of every study.
///
/// # Errors
/// Files that cannot be read, reported after all other studies.
pub fn list_shards(preset: Preset, json: bool) -> Result<()> {
    let data = data(preset);
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for study in names_in_data(preset, |_| Ok(true))? {
        match PartsState::of(&data.join(&study)) {
            Ok(state) => found.extend(state.map(|state| (study, state))),
            Err(error) => missing.push((study, error.to_string())),
        }
    }
    if json {
        let all: Vec<_> = found.iter().map(|(study, state)| to_json(study, state)).collect();
        say!("{}", serde_json::Value::from(all));
        return fail_if_missing(&missing);
    }
    if found.is_empty() && missing.is_empty() {
        say!("no study in {}/ has shards that are not merged", data.display());
    }
    for (study, PartsState { cells, done, parts }) in &found {
        say!("{study}: {done} of {cells} configurations done");
        parts.iter().for_each(|part| say!("  {}", describe_part(part)));
        let failed = parts.iter().flat_map(|part| &part.failed);
        failed.for_each(|(cell, why)| say!("  failed: {cell}: {}", printable(why)));
        // Several numbers of shards, if jobs of different sizes were started.
        for begun in parts.chunk_by(|one, next| one.shard.count() == next.shard.count()) {
            let count = begun[0].shard.count();
            let is_begun = |index: &usize| begun.iter().any(|part| part.shard.index() == *index);
            let rest = (0..count).filter(|index| !is_begun(index));
            let rest: Vec<String> = rest.map(|index| (index + 1).to_string()).collect();
            if !rest.is_empty() {
                say!("  of {count}: not started, or merged: {}", rest.join(", "));
            }
        }
    }
    fail_if_missing(&missing)
}

fn describe_part(part: &PartState) -> String {
    let PartState { shard, done, stopped, failed, at_work } = part;
    let mut words = vec![format!("{shard}: {done} done")];
    if *stopped > 0 {
        words.push(format!("{stopped} stopped before the end"));
    }
    if !failed.is_empty() {
        words.push(format!("{} failed", failed.len()));
    }
    words.push(match at_work {
        Some(who) => format!("running: {who}"),
        None => "nothing running".to_owned(),
    });
    words.join(", ")
}

fn to_json(study: &str, state: &PartsState) -> serde_json::Value {
    let part = |part: &PartState| {
        serde_json::json!({
            "part": part.shard.to_string(), "done": part.done, "stopped": part.stopped,
            "failed": part.failed.iter().map(|(cell, why)| serde_json::json!({"cell": cell, "err": why}))
                .collect::<Vec<_>>(),
            "at_work": part.at_work,
        })
    };
    serde_json::json!({
        "study": study, "cells": state.cells, "done": state.done,
        "parts": state.parts.iter().map(part).collect::<Vec<_>>(),
    })
}
