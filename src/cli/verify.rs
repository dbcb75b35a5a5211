//! `rank-study verify`: checks rows against invariants and against the expectations of their definitions.

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;

use super::analysis::verdicts_of;
use super::flags::PresetFlag;
use super::places::{data, definition_named, finishing, folder_of, measured, studies_there};
use super::streams::{is_quiet, say, tell};
use crate::run::Manifest;
use crate::study::{Preset, StudyDefinition, Verification, check_merged, verify};
use crate::system::printable;
use crate::table::plural;

/// Check rows against their definitions and hashes
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study verify
  rank-study verify logit-growth phase

Exits with 3 if a check fails, with 1 if a study cannot be checked. Guide: docs/own-study.md")]
pub struct VerifyArgs {
    /// Studies with rows [default: all, and data/verdicts.csv]
    studies: Vec<String>,
    #[command(flatten)]
    preset: PresetFlag,
}

/// Error for checks that failed.
#[derive(Debug, thiserror::Error)]
#[error("{0} failed; see the lines above")]
pub struct Breach(String);

/// Runs the subcommand.
///
/// # Errors
/// [`Breach`] if a check fails; otherwise a study or verdicts that could not be checked.
pub fn run(args: &VerifyArgs) -> Result<()> {
    let all = args.studies.is_empty();
    let studies = if all { studies_there(args.preset.get())? } else { args.studies.clone() };
    let (mut broken, mut unchecked) = (0, Vec::new());
    for study in &studies {
        let found = match held(study, args.preset.get()) {
            Ok(found) => found,
            Err(error) => {
                unchecked.push(error.context(study.clone()));
                continue;
            }
        };
        for breach in &found.laws.breaches {
            say!("{study}: {}", printable(breach));
        }
        broken += found.laws.breaches.len();
        if !is_quiet() {
            let held = found.laws.checks - found.laws.breaches.len();
            say!(
                "{study}: {}, {held} of {} pass",
                plural(found.rows, "row"),
                plural(found.laws.checks, "check")
            );
            found.notes.iter().for_each(|note| say!("{study}: unknown: {}", printable(note)));
        }
    }
    if all && !studies.is_empty() {
        let path = data(args.preset.get()).join("verdicts.csv");
        match wrong_with_verdicts(&path, &studies, args.preset.get()) {
            Ok(None) if is_quiet() => {}
            Ok(None) => say!("{}: agrees with the rows", path.display()),
            Ok(Some(wrong)) => {
                say!("{}: {wrong}", path.display());
                broken += 1;
            }
            Err(error) => unchecked.push(error),
        }
    }
    // A single error is reported as the command's own error.
    if broken == 0 && unchecked.len() == 1 {
        return Err(unchecked.remove(0));
    }
    for error in &unchecked {
        tell(&format!("left out: {error:#}"));
    }
    match (broken, unchecked.len()) {
        (0, 0) => Ok(()),
        (0, _) => {
            bail!(
                "some studies could not be checked; see the lines above that begin with \"left out\""
            )
        }
        (broken, _) => Err(Breach(plural(broken, "check")).into()),
    }
}

/// Checks the rows of one study against their definition.
fn held(study: &str, preset: Preset) -> Result<Verification> {
    let mut folder = folder_of(study, preset)?;
    check_merged(&folder)?;
    if ["rows.csv", "manifest.toml"].iter().all(|file| !folder.join(file).is_file()) {
        folder = measured(study, preset)?.0;
    }
    let definition = match Manifest::read(&folder.join("manifest.toml")) {
        Ok(manifest) => definition(&manifest, preset)?,
        // An unreadable manifest counts as a failed check.
        Err(error) => definition_named(study, preset).ok_or(error)?,
    };
    let mut found = verify(&definition, &folder);
    let of_manifest = |breach: &&mut String| breach.starts_with("manifest.toml: ");
    for breach in found.laws.breaches.iter_mut().filter(of_manifest) {
        breach.push_str(&format!("; {} writes it again", finishing(study, preset)));
    }
    Ok(found)
}

/// Compares the table of verdicts with the rows of all studies; returns `None` if they agree.
fn wrong_with_verdicts(path: &Path, studies: &[String], preset: Preset) -> Result<Option<String>> {
    let written = "`rank-study report` writes it again";
    Ok(match std::fs::read_to_string(path) {
        Err(error) => Some(format!("cannot be read: {error}; {written}")),
        Ok(there) if there == verdicts_of(studies, preset)? => None,
        Ok(_) => Some(format!("differs from the rows; {written}")),
    })
}

/// Reads the definition of the rows: the current file or, if it is gone, the copy in the manifest.
fn definition(manifest: &Manifest, preset: Preset) -> Result<StudyDefinition> {
    let path = Path::new(manifest.text("definition_file"));
    Ok(match path.is_file() {
        true => StudyDefinition::read(path, preset)?,
        false => StudyDefinition::of_rows(path, manifest.text("definition").to_owned(), preset)?,
    })
}
