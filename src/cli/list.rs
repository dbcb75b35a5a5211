//! `rank-study list`: the studies, their cells, and which are done.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use rank_study::Plan;

use super::places::{DATA, definitions};

/// List the studies in analysis/, their cells, and how many are done
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study list --json")]
pub struct ListArgs {
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
    for definition in definitions()? {
        let plan = Plan::new(&definition, Path::new(DATA), None, None, None)?;
        let cells = plan.cells().count();
        let done = plan.cells().filter(|(_, done)| *done).count();
        if args.json {
            objects.push(serde_json::json!({
                "study": definition.study, "title": definition.title,
                "presets": definition.presets, "cells": cells, "done": done,
            }));
        } else {
            let presets = definition.presets.join(",");
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
