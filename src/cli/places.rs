//! Where things are, relative to the folder that the command runs in.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rank_study::{Manifest, StudyDefinition};

/// Definitions: one TOML file a study.
pub const ANALYSIS: &str = "analysis";
/// Rows, one folder a study.
pub const DATA: &str = "data";
/// Figures, one folder a study, and the report.
pub const FIGURES: &str = "figures";

/// The studies that have rows, by name. A folder of other measurements, whose manifest names no study,
/// is passed over.
pub fn measured_studies() -> Result<Vec<String>> {
    let mut names = Vec::new();
    let Ok(folders) = std::fs::read_dir(DATA) else { return Ok(names) };
    for folder in folders {
        let folder = folder.with_context(|| format!("cannot list {DATA}"))?.path();
        let manifest = folder.join("manifest.toml");
        let whole = manifest.is_file() && folder.join("rows.csv").is_file();
        if whole && !Manifest::read(&manifest)?.text("study").is_empty() {
            names.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The folder and manifest of a study that has rows.
pub fn measured(study: &str) -> Result<(PathBuf, Manifest)> {
    let folder = Path::new(DATA).join(study);
    if !folder.join("rows.csv").is_file() {
        let known = measured_studies()?;
        match known.is_empty() {
            true => bail!(
                "study {study:?} has no rows in {DATA}/, nor has any other; run `rank-study \
                 reproduce --preset quick` or `rank-study sweep {ANALYSIS}/{study}.toml` first"
            ),
            false => bail!(
                "study {study:?} has no rows in {DATA}/ (there are: {}); run `rank-study sweep \
                 {ANALYSIS}/{study}.toml` first",
                known.join(", ")
            ),
        }
    }
    let manifest = Manifest::read(&folder.join("manifest.toml"))?;
    Ok((folder, manifest))
}

/// Every study definition in the folder of definitions, by name. Definitions of single training
/// runs, which have no `study`, are passed over.
pub fn definitions() -> Result<Vec<StudyDefinition>> {
    let folders = std::fs::read_dir(ANALYSIS).with_context(|| {
        format!("no folder {ANALYSIS}/ here; run in the folder that holds it, or name a definition")
    })?;
    let mut paths: Vec<PathBuf> = folders
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .with_context(|| format!("cannot list {ANALYSIS}"))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let is_study =
            text.parse::<toml::Table>().map_or(true, |table| table.contains_key("study"));
        if is_study {
            found.push(StudyDefinition::read(&path)?);
        }
    }
    Ok(found)
}
