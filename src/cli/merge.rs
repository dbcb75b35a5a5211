//! `rank-study merge`: joins the rows of shards.

use anyhow::{Result, bail};
use clap::Args;

use super::analysis::fail_if_missing;
use super::flags::PresetFlag;
use super::places::{data, folder_of, names_in_data};
use super::streams::{is_quiet, say};
use crate::study::{Merged, has_parts, merge};
use crate::table::plural;

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
