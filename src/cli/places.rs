//! Folders and files, relative to the working folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::streams::tell;
use crate::run::Manifest;
use crate::study::{Preset, StudyDefinition, StudyError, check_merged, unmerged_parts};
use crate::system::{check_folder_name, near_files, near_names};
use crate::table::plural;

/// Folder of the definitions, one TOML file per study.
pub const ANALYSIS: &str = "analysis";

/// Path of the note with a study's findings.
pub fn note(study: &str) -> PathBuf {
    Path::new(ANALYSIS).join("notes").join(format!("{study}.md"))
}

/// Folder of the rows of a preset, with one folder per study.
pub fn data(preset: Preset) -> PathBuf {
    within("data", preset)
}

/// Folder of the report and the figures of a preset, with one folder per study.
pub fn figures(preset: Preset) -> PathBuf {
    within("figures", preset)
}

/// Returns `folder` for the preset `paper`, and a subfolder for smaller presets.
fn within(folder: &str, preset: Preset) -> PathBuf {
    match preset {
        Preset::Paper => PathBuf::from(folder),
        smaller => Path::new(folder).join(smaller.to_string()),
    }
}

/// Names of those folders of the rows of a preset that `is_chosen` accepts, sorted.
pub fn names_in_data(
    preset: Preset,
    is_chosen: impl Fn(&Path) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in std::fs::read_dir(data(preset)).into_iter().flatten().flatten() {
        if is_chosen(&folder.path())? {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Names of the studies that have rows, sorted. Folders of other measurements, whose manifest names no study, are left
/// out.
pub fn measured_studies(preset: Preset) -> Result<Vec<String>> {
    names_in_data(preset, has_rows)
}

/// Names of the studies that have rows, unmerged rows of shards or a manifest, sorted, so that a study that has lost
/// its rows is included.
pub fn studies_there(preset: Preset) -> Result<Vec<String>> {
    let has_lost_rows = |folder: &Path| {
        !folder.join("rows.csv").is_file()
            && Manifest::read(&folder.join("manifest.toml"))
                .is_ok_and(|manifest| !manifest.text("study").is_empty())
    };
    names_in_data(preset, |folder| {
        Ok(has_rows(folder)? || has_lost_rows(folder) || unmerged_parts(folder)? > 0)
    })
}

/// Returns `true` if a folder has rows of a study. Other measurements have another manifest and other columns.
fn has_rows(folder: &Path) -> Result<bool> {
    let (rows, manifest) = (folder.join("rows.csv"), folder.join("manifest.toml"));
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    if !rows.is_file() {
        return Ok(false);
    }
    if !manifest.is_file() {
        return Ok(read(&rows)?.starts_with(b"study,cell,"));
    }
    let table: toml::Table = String::from_utf8_lossy(&read(&manifest)?)
        .parse()
        .with_context(|| manifest.display().to_string())?;
    Ok(table.contains_key("study"))
}

/// Finds the definition of a study by the name of its folder, which may end with the name of a text.
pub fn definition_named(study: &str, preset: Preset) -> Option<StudyDefinition> {
    let definitions = definitions(preset).map(|found| found.studies).unwrap_or_default();
    let of = definitions.into_iter().filter(|d| {
        study.strip_prefix(d.study.as_str()).is_some_and(|t| t.is_empty() || t.starts_with('-'))
    });
    // The longest match is the study's name; the rest is the text's.
    of.max_by_key(|definition| definition.study.len())
}

/// The command that finishes a study whose manifest is missing.
pub fn finishing(study: &str, preset: Preset) -> String {
    let Some(definition) = definition_named(study, preset) else {
        return "`rank-study sweep` with its definition".to_owned();
    };
    let text = if definition.study == study { "" } else { " --text FILE" };
    format!("`rank-study sweep {}{}{text}`", definition.path.display(), preset.flag())
}

/// Returns the folder of a study's rows.
///
/// # Errors
/// The name is not that of a single folder.
pub fn folder_of(study: &str, preset: Preset) -> Result<PathBuf> {
    let data = data(preset);
    check_folder_name(study).map_err(|why| {
        anyhow!("the study name {study:?} {why}; name a folder in {}/", data.display())
    })?;
    Ok(data.join(study))
}

/// Returns `true` if `folder` is named after `study` on a text: the study's name, `-`, the text's name.
fn is_on_a_text(folder: &str, study: &str, preset: Preset) -> bool {
    folder.strip_prefix(study).is_some_and(|text| text.starts_with('-'))
        && definition_named(folder, preset).is_some_and(|definition| definition.study == study)
}

/// Error for a study without rows. It says how to measure the study if it is defined, or suggests similar names.
fn no_rows(study: &str, measured: &[String], preset: Preset) -> anyhow::Error {
    let data = data(preset);
    let defined = definitions(preset);
    let defined: Option<Vec<&str>> = defined.as_ref().ok().map(|found| found.names().collect());
    match defined {
        Some(defined) if !defined.contains(&study) => {
            let known = measured.iter().map(String::as_str).chain(defined);
            let near = near(study, known, "see rank-study list");
            anyhow!("no study {study:?} in {ANALYSIS}/ or {}/; {near}", data.display())
        }
        _ => anyhow!(
            "study {study:?} has no rows in {}/; first run `rank-study reproduce --preset {preset} --only {study}`",
            data.display()
        ),
    }
}

/// Returns folder and manifest of a study with rows. If it has rows on exactly one text only, these are used.
pub fn measured(study: &str, preset: Preset) -> Result<(PathBuf, Manifest)> {
    let data = data(preset);
    let given = Path::new(study);
    let is_path = given.components().count() > 1 && given.join("rows.csv").is_file();
    let mut folder = if is_path { given.to_owned() } else { folder_of(study, preset)? };
    check_merged(&folder)?;
    if !folder.join("rows.csv").is_file() {
        let measured = measured_studies(preset)?;
        let on_texts: Vec<&String> =
            measured.iter().filter(|name| is_on_a_text(name, study, preset)).collect();
        match on_texts[..] {
            [one] => folder = data.join(one),
            [] => return Err(no_rows(study, &measured, preset)),
            _ => {
                let names: Vec<&str> = on_texts.iter().map(|name| name.as_str()).collect();
                bail!(
                    "study {study:?} was measured on several texts; name one of {}",
                    names.join(", ")
                )
            }
        }
    }
    let path = folder.join("manifest.toml");
    if !path.is_file() {
        bail!(
            "{} is missing, so the rows beside it cannot be used; {} writes it again",
            path.display(),
            finishing(study, preset)
        )
    }
    Ok((folder, Manifest::read(&path)?))
}

/// Contents of the folder of definitions, for one preset.
pub struct Definitions {
    /// The studies that have this preset, sorted by file name.
    pub studies: Vec<StudyDefinition>,
    /// The others.
    pub unusable: Vec<Unusable>,
}

/// A definition that cannot be read, or has no such preset.
pub struct Unusable {
    /// Possible names of the study: the file's name, and the key `study` if it can be read.
    names: Vec<String>,
    /// Why it cannot be used.
    pub error: StudyError,
}

impl Unusable {
    /// Returns `true` if the file may define `study`.
    pub fn is_of(&self, study: &str) -> bool {
        self.names.iter().any(|name| name == study)
    }

    /// Returns `true` if the definition cannot be read at all.
    pub fn is_broken(&self) -> bool {
        !matches!(self.error, StudyError::Size { .. })
    }
}

/// Returns `true` if a definition is a study's; that of a single training run has neither key.
fn is_study(table: &toml::Table) -> bool {
    ["study", "kind"].iter().any(|key| table.contains_key(*key))
}

/// Fails if a definition does not exist, and suggests similar names. Also fails for a single run where a study is
/// needed, and for a study where a single run is needed.
pub fn check_definition(path: &Path, needs_study: bool) -> Result<()> {
    let shown = path.display();
    if !path.exists() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let definition = format!("{ANALYSIS}/{stem}.toml");
        let near = definitions(Preset::Paper).map(|found| match Path::new(&definition).exists() {
            true => format!("did you mean {definition}?"),
            false => near(&stem, found.names(), "see rank-study list"),
        });
        bail!(
            "no definition file {shown}{}; {}",
            near_files(path),
            near.as_deref().unwrap_or("name a .toml file")
        );
    }
    if path.is_dir() {
        bail!("{shown} is a folder; name a definition, a .toml file");
    }
    let table = std::fs::read_to_string(path).ok().and_then(|text| text.parse().ok());
    match table.map(|table| is_study(&table)) {
        Some(false) if needs_study => {
            bail!(
                "{shown} defines a single run, not a study; train it with rank-study train {shown}"
            )
        }
        Some(true) if !needs_study => {
            bail!(
                "{shown} defines a study; name one of its runs with --run, or use rank-study sweep {shown}"
            )
        }
        _ => Ok(()),
    }
}

/// Reads all study definitions in the folder of definitions, for one preset. Definitions of single training runs, which
/// have neither `study` nor `kind`, are left out.
pub fn definitions(preset: Preset) -> Result<Definitions> {
    let folders = std::fs::read_dir(ANALYSIS).with_context(|| {
        format!("no folder {ANALYSIS}/ here; run in the folder that has it, or name a definition")
    })?;
    let mut paths: Vec<PathBuf> = folders
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .with_context(|| format!("cannot list {ANALYSIS}"))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let mut found = Definitions { studies: Vec::new(), unusable: Vec::new() };
    for path in paths {
        let table = std::fs::read_to_string(&path).map(|text| text.parse::<toml::Table>());
        let study = match &table {
            Ok(Ok(table)) if !is_study(table) => continue,
            Ok(Ok(table)) => table.get("study").and_then(|study| study.as_str()).map(str::to_owned),
            _ => None,
        };
        match StudyDefinition::read(&path, preset) {
            Ok(definition) => found.studies.push(definition),
            Err(error) => {
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let names = stem.into_iter().chain(study).collect();
                found.unusable.push(Unusable { names, error });
            }
        }
    }
    Ok(found)
}

/// Suggests the names that are most similar to an unknown one, or else returns `or`, for the end of an error.
pub fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>, or: &str) -> String {
    let near: Vec<String> =
        near_names(name, names).into_iter().map(|other| format!("{other:?}")).collect();
    match near.is_empty() {
        true => or.to_owned(),
        false => format!("did you mean {}?", near.join(" or ")),
    }
}

impl Definitions {
    /// Names of all studies, including those without the preset.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let usable = self.studies.iter().map(|definition| definition.study.as_str());
        usable.chain(self.unusable.iter().flat_map(|other| &other.names).map(String::as_str))
    }

    /// Prints one error line per file that cannot be read, and returns their number.
    pub fn tell_broken(&self) -> usize {
        let broken: Vec<&Unusable> =
            self.unusable.iter().filter(|other| other.is_broken()).collect();
        broken.iter().for_each(|other| tell(&format!("left out: {}", other.error)));
        broken.len()
    }
}

/// Fails if the number of unreadable definitions is not 0.
pub fn fail_if_broken(definitions: usize) -> Result<()> {
    match definitions {
        0 => Ok(()),
        count => bail!(
            "{} in {ANALYSIS}/ cannot be read; see the lines above that begin with \"left out\"",
            plural(count, "definition")
        ),
    }
}
