//! `rank-study verify`: holds rows to what must be true of them and to what their definitions expect.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Args;
use rank_study::{Manifest, Preset, StudyDefinition, plural, verify};

use super::analysis::verdicts_of;
use super::places::{data, measured, measured_studies};

/// Hold rows to their definitions: whole, unaltered, lawful, and within the bounds expected
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study verify
  rank-study verify logit-growth phase

Exits with 3 where a check does not hold.")]
pub struct VerifyArgs {
    /// Studies that have rows [default: all, and data/verdicts.csv]
    studies: Vec<String>,
    /// The size whose rows are held
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
    /// Print what does not hold and nothing else
    #[arg(long)]
    quiet: bool,
}

/// Checks that did not hold.
#[derive(Debug, thiserror::Error)]
#[error("{0} did not hold; the lines above say which and where")]
pub struct Breach(String);

/// Runs the subcommand.
///
/// # Errors
/// Rows that cannot be read; [`Breach`] where a check does not hold.
pub fn run(args: &VerifyArgs) -> Result<()> {
    let all = args.studies.is_empty();
    let studies = if all { measured_studies(args.preset)? } else { args.studies.clone() };
    let mut broken = 0;
    for study in &studies {
        let (folder, manifest) = measured(study, args.preset)?;
        let found = verify(&definition(&manifest, args.preset)?, &folder)?;
        for breach in &found.breaches {
            println!("{study}: {breach}");
        }
        broken += found.breaches.len();
        if !args.quiet {
            let held = found.checks - found.breaches.len();
            println!(
                "{study}: {}, {held} of {} hold",
                plural(found.rows, "row"),
                plural(found.checks, "check")
            );
            found.notes.iter().for_each(|note| println!("{study}: not known: {note}"));
        }
    }
    if all && !studies.is_empty() {
        let path = data(args.preset).join("verdicts.csv");
        let there = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read {}; write it by `rank-study report`", path.display())
        })?;
        let same = there == verdicts_of(&studies, args.preset)?;
        if !same {
            println!(
                "{}: not what the rows say; `rank-study report` writes it again",
                path.display()
            );
            broken += 1;
        } else if !args.quiet {
            println!("{}: what the rows say", path.display());
        }
    }
    match broken {
        0 => Ok(()),
        broken => Err(Breach(plural(broken, "check")).into()),
    }
}

/// The definition that rows were measured by: the file as it stands now, or, where it is gone, as it was.
fn definition(manifest: &Manifest, preset: Preset) -> Result<StudyDefinition> {
    let path = Path::new(manifest.text("definition_file"));
    Ok(match path.is_file() {
        true => StudyDefinition::read(path, preset)?,
        false => StudyDefinition::parse(path, manifest.text("definition").to_owned(), preset)?,
    })
}
