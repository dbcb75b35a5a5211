//! `rank-study list --shards`: the progress of studies that are measured in shards.

use anyhow::Result;
use rank_study::study::{PartState, PartsState, Preset};
use rank_study::system::printable;

use super::analysis::fail_if_missing;
use super::places::data;
use super::streams::say;

/// Prints the progress of the shards of every study.
///
/// # Errors
/// Files that cannot be read, reported after all other studies.
pub fn list(preset: Preset, json: bool) -> Result<()> {
    let data = data(preset);
    let mut studies: Vec<String> = std::fs::read_dir(&data)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    studies.sort();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for study in studies {
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
        parts.iter().for_each(|part| say!("  {}", describe(part)));
        let failed = parts.iter().flat_map(|part| &part.failed);
        failed.for_each(|(cell, why)| say!("  failed: {cell}: {}", printable(why)));
        for count in counts(parts) {
            let begun = |index: &usize| {
                parts.iter().any(|p| p.shard.count() == count && p.shard.index() == *index)
            };
            let not: Vec<String> =
                (0..count).filter(|i| !begun(i)).map(|i| (i + 1).to_string()).collect();
            if !not.is_empty() {
                say!("  of {count}: not started, or merged: {}", not.join(", "));
            }
        }
    }
    fail_if_missing(&missing)
}

/// Returns the different numbers of shards; more than one if jobs of different sizes were started.
fn counts(parts: &[PartState]) -> Vec<usize> {
    let mut counts: Vec<usize> = parts.iter().map(|part| part.shard.count()).collect();
    counts.dedup();
    counts
}

fn describe(part: &PartState) -> String {
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
