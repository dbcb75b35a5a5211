//! `rank-study list`: the studies, their cells, and which are done.

use anyhow::Result;
use clap::Args;
use rank_study::{Plan, Preset, StudyDefinition};

use super::places::{data, definitions};

/// List the studies in analysis/, their cells, and how many are done
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study list --json")]
pub struct ListArgs {
    /// The size whose cells are listed
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A definition that is wrong, rows that cannot be read.
pub fn run(args: &ListArgs) -> Result<()> {
    let mut objects = Vec::new();
    for definition in definitions(args.preset)? {
        let plan = Plan::new(&definition, &data(args.preset), None, None, None)?;
        let cells = plan.cells().count();
        let done = plan.cells().filter(|(_, done)| *done).count();
        if args.json {
            objects.push(serde_json::json!({
                "study": definition.study, "title": definition.title,
                "presets": presets(&definition), "cells": cells, "done": done,
            }));
        } else {
            let presets = presets(&definition).join(",");
            println!(
                "{:<16} {:>4} of {:>4} cells done  {:<8} {}",
                definition.study, done, cells, presets, definition.title
            );
        }
    }
    if args.json {
        println!("{}", serde_json::Value::from(objects));
    }
    Ok(())
}

fn presets(definition: &StudyDefinition) -> Vec<String> {
    definition.presets.iter().map(ToString::to_string).collect()
}
