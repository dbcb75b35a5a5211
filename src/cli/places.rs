//! Folders and files, relative to the working folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rank_study::run::Manifest;
use rank_study::study::{
    Preset, StudyDefinition, StudyError, check_merged, has_parts, unmerged_parts,
};
use rank_study::system::{check_folder_name, near_files, near_names};
use rank_study::table::plural;

use super::streams::tell;

/// Definitions: one TOML file a study.
pub const ANALYSIS: &str = "analysis";

/// Within a folder of one's own, where what `show` makes of it goes.
pub const SHOWN: &str = "shown";

/// Where what was found in a study's rows is written.
pub fn note(study: &str) -> PathBuf {
    Path::new(ANALYSIS).join("notes").join(format!("{study}.md"))
}

/// Where the rows of a preset go, one folder a study.
pub fn data(preset: Preset) -> PathBuf {
    within("data", preset)
}

/// Where the figures of a preset go, one folder a study, and its report.
pub fn figures(preset: Preset) -> PathBuf {
    within("figures", preset)
}

/// The definitions' own size has the folder; a smaller one has a folder in it.
fn within(folder: &str, preset: Preset) -> PathBuf {
    match preset {
        Preset::Paper => PathBuf::from(folder),
        smaller => Path::new(folder).join(smaller.to_string()),
    }
}

/// The studies that have rows, by name. A folder of other measurements, whose manifest names no study,
/// is passed over.
pub fn measured_studies(preset: Preset) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let data = data(preset);
    let Ok(folders) = std::fs::read_dir(&data) else { return Ok(names) };
    for folder in folders {
        let folder = folder.with_context(|| format!("cannot list {}", data.display()))?.path();
        let manifest = folder.join("manifest.toml");
        if folder.join("rows.csv").is_file() && is_of_study(&manifest)? {
            names.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The studies that have a folder of parts, by name.
pub fn studies_with_parts(preset: Preset) -> Vec<String> {
    let folders = std::fs::read_dir(data(preset)).into_iter().flatten().flatten();
    let with_parts = folders.filter(|folder| has_parts(&folder.path()));
    let mut names: Vec<String> =
        with_parts.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The studies that have rows of parts beside their own, by name.
pub fn studies_in_parts(preset: Preset) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in std::fs::read_dir(data(preset)).into_iter().flatten().flatten() {
        if unmerged_parts(&folder.path())? > 0 {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Whether rows are a study's. Those of other measurements have a manifest with keys of its own, and other columns.
fn is_of_study(manifest: &Path) -> Result<bool> {
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    if !manifest.is_file() {
        return Ok(read(&manifest.with_file_name("rows.csv"))?.starts_with(b"study,cell,"));
    }
    let table: toml::Table = String::from_utf8_lossy(&read(manifest)?)
        .parse()
        .with_context(|| manifest.display().to_string())?;
    Ok(table.contains_key("study"))
}

/// The studies that have rows or tell of some, by name: a study that has lost a file is among them.
pub fn studies_there(preset: Preset) -> Result<Vec<String>> {
    let mut names = measured_studies(preset)?;
    for folder in std::fs::read_dir(data(preset)).into_iter().flatten().flatten() {
        let folder = folder.path();
        let has_lost_rows = !folder.join("rows.csv").is_file()
            && Manifest::read(&folder.join("manifest.toml"))
                .is_ok_and(|manifest| !manifest.text("study").is_empty());
        if has_lost_rows {
            names.extend(folder.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.extend(studies_in_parts(preset)?);
    names.sort();
    names.dedup();
    Ok(names)
}

/// The definition of a study by the name of its folder, which a text's may follow.
pub fn definition_named(study: &str, preset: Preset) -> Option<StudyDefinition> {
    let definitions = definitions(preset).map(|found| found.studies).unwrap_or_default();
    let of = definitions.into_iter().filter(|d| {
        study.strip_prefix(d.study.as_str()).is_some_and(|t| t.is_empty() || t.starts_with('-'))
    });
    // The longest name is the study's own; what follows it is a text's.
    of.max_by_key(|definition| definition.study.len())
}

/// The command that finishes a study whose manifest is missing, in words.
pub fn finishing(study: &str, preset: Preset) -> String {
    let Some(definition) = definition_named(study, preset) else {
        return "`rank-study sweep` with its definition".to_owned();
    };
    let size = match preset {
        Preset::Paper => String::new(),
        smaller => format!(" --preset {smaller}"),
    };
    let text = if definition.study == study { "" } else { " --text FILE" };
    format!("`rank-study sweep {}{size}{text}`", definition.path.display())
}

/// The folder of a study's rows.
///
/// # Errors
/// A name that is no single folder's.
pub fn folder_of(study: &str, preset: Preset) -> Result<PathBuf> {
    let data = data(preset);
    check_folder_name(study).map_err(|why| {
        anyhow!("the study name {study:?} {why}; name a folder in {}/", data.display())
    })?;
    Ok(data.join(study))
}

/// Whether a folder's name is that of a study on a text: the study's, `-`, and the text's.
fn is_on_a_text(folder: &str, study: &str, preset: Preset) -> bool {
    folder.strip_prefix(study).is_some_and(|text| text.starts_with('-'))
        && definition_named(folder, preset).is_some_and(|definition| definition.study == study)
}

/// What to say of a study without rows: how to measure it where it is defined, or which names are near.
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

/// The folder and manifest of a study that has rows, or of its rows on the one text that it was measured on.
pub fn measured(study: &str, preset: Preset) -> Result<(PathBuf, Manifest)> {
    let data = data(preset);
    let mut folder = folder_of(study, preset)?;
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

/// What the folder of definitions holds, at the size of a preset.
pub struct Definitions {
    /// The studies of that size, by file.
    pub studies: Vec<StudyDefinition>,
    /// The studies without it: their names, and an error that says so.
    pub without_size: Vec<(String, StudyError)>,
    /// The files that cannot be read.
    pub broken: Vec<BrokenDefinition>,
}

/// A file of the folder of definitions that cannot be read.
pub struct BrokenDefinition {
    /// What its study would be called: by the file's name, and by the key `study` where so much can be read.
    names: Vec<String>,
    error: StudyError,
}

impl BrokenDefinition {
    /// Whether it is that of a study.
    pub fn is_of(&self, study: &str) -> bool {
        self.names.iter().any(|name| name == study)
    }
}

/// Whether a definition is a study's: that of a single training run has neither key.
fn is_study(table: &toml::Table) -> bool {
    ["study", "kind"].iter().any(|key| table.contains_key(*key))
}

/// Refuses a definition that is not there, and names those that read most like it; also one of a single run where a
/// study is needed, and the other way round.
pub fn check_definition(path: &Path, needs_study: bool) -> Result<()> {
    let shown = path.display();
    if !path.exists() {
        // A study's name alone is taken for that of its definition.
        let in_analysis = || near_files(&Path::new(ANALYSIS).join(path).with_extension("toml"));
        let near = Some(near_files(path)).filter(|near| !near.is_empty());
        match near.unwrap_or_else(in_analysis).as_str() {
            "" => bail!("no definition file {shown}; see rank-study list"),
            near => bail!("no definition file {shown}{near}"),
        }
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

/// Every study definition in the folder of definitions, at the size of a preset. Definitions of single training runs,
/// which have neither `study` nor `kind`, are passed over.
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
    let mut found =
        Definitions { studies: Vec::new(), without_size: Vec::new(), broken: Vec::new() };
    for path in paths {
        let table = std::fs::read_to_string(&path).map(|text| text.parse::<toml::Table>());
        let study = match &table {
            Ok(Ok(table)) if !is_study(table) => continue,
            Ok(Ok(table)) => table.get("study").and_then(|study| study.as_str()).map(str::to_owned),
            _ => None,
        };
        match StudyDefinition::read(&path, preset) {
            Ok(definition) => found.studies.push(definition),
            Err(error @ StudyError::Size { .. }) => {
                found.without_size.push((study.unwrap_or_default(), error));
            }
            Err(error) => {
                let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let names = stem.into_iter().chain(study).collect();
                found.broken.push(BrokenDefinition { names, error });
            }
        }
    }
    Ok(found)
}

/// The names that read most like one that there is not, for the end of an error.
pub fn near<'n>(name: &str, names: impl Iterator<Item = &'n str>, or: &str) -> String {
    let near: Vec<String> =
        near_names(name, names).into_iter().map(|other| format!("{other:?}")).collect();
    match near.is_empty() {
        true => or.to_owned(),
        false => format!("did you mean {}?", near.join(" or ")),
    }
}

impl Definitions {
    /// The names of all studies, those without the size among them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let of_size = self.studies.iter().map(|definition| definition.study.as_str());
        of_size.chain(self.without_size.iter().map(|(study, _)| study.as_str()))
    }

    /// Says what is wrong with each file that cannot be read, a line each.
    pub fn tell_broken(&self) {
        for BrokenDefinition { error, .. } in &self.broken {
            tell(&format!("left out: {error}"));
        }
    }
}

/// An error where so many definitions cannot be read.
pub fn fail_if_broken(definitions: usize) -> Result<()> {
    match definitions {
        0 => Ok(()),
        count => bail!(
            "{} in {ANALYSIS}/ cannot be read; see the lines above that begin with \"left out\"",
            plural(count, "definition")
        ),
    }
}
