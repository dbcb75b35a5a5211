//! Manifests: the command, code, machine and times that made some rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::RunError;
use crate::numerics::Machine;
use crate::system::{FileError, arguments, write_whole};

/// Name of the manifest in the folder that it describes.
pub(crate) const MANIFEST: &str = "manifest.toml";
/// The crates whose versions can change a number.
const VERSIONED: [&str; 7] =
    ["ndarray", "ndarray-linalg", "nalgebra", "candle-core", "candle-nn", "polars", "rand_chacha"];

/// Key of the shards that rows were merged from.
const PARTS: &str = "parts";
/// Key of the notes about rows of unknown provenance.
const NOTES: &str = "not_known";

/// `manifest.toml`: the provenance of the rows in the same folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The command as it was given.
    pub command: String,
    /// This program's version.
    pub version: String,
    /// Git revision of the repository that the program ran in; empty outside a repository.
    pub git_revision: String,
    /// When it first started, in UTC.
    pub started: String,
    /// When it last ended, in UTC; empty while it runs. For a study, when it last saved rows or ended.
    pub ended: String,
    /// Seconds of work, over all invocations.
    pub wall_time_s: f64,
    /// Number of threads.
    pub threads: usize,
    /// The processor, its instructions and the BLAS library.
    #[serde(flatten)]
    pub machine: Machine,
    /// Number format of the computation, such as `float64`.
    pub dtype: String,
    /// Versions of the crates that can change a number.
    pub versions: BTreeMap<String, String>,
    /// Further entries of a study or a training run.
    #[serde(flatten)]
    pub more: Table,
}

impl Manifest {
    /// Creates a manifest for this process on this machine, started now.
    pub fn begin(threads: usize, dtype: &str) -> Self {
        let command: Vec<String> = std::iter::once("rank-study".to_owned())
            .chain(arguments())
            .map(|word| quoted(&word))
            .collect();
        Self {
            command: command.join(" "),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            git_revision: revision().to_owned(),
            started: now(),
            ended: String::new(),
            wall_time_s: 0.0,
            threads,
            machine: Machine::here(),
            dtype: dtype.to_owned(),
            versions: versions(),
            more: Table::new(),
        }
    }

    /// Creates a manifest for rows of unknown provenance.
    pub(crate) fn unknown(dtype: &str) -> Self {
        Self { dtype: dtype.to_owned(), ..Self::default() }
    }

    /// Adds a note, with the time, about missing provenance of rows.
    pub(crate) fn note(&mut self, what: &str) {
        self.push(NOTES, format!("{}: {what}", now()));
    }

    /// Adds the notes of the manifest `of`, which belongs to a shard of the rows, and the description `part` of the
    /// shard.
    pub(crate) fn take_in(&mut self, of: &Self, part: String) {
        self.push(PARTS, part);
        of.notes().into_iter().for_each(|note| self.push(NOTES, note.to_owned()));
    }

    /// Appends to a further entry, which is a list.
    pub(crate) fn push(&mut self, key: &str, what: impl Into<Value>) {
        let all = self.more.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(all) = all {
            all.push(what.into());
        }
    }

    /// Adds or replaces a further entry.
    pub(crate) fn insert(&mut self, key: &str, value: impl Into<Value>) {
        self.more.insert(key.to_owned(), value.into());
    }

    /// Returns a further entry that is a table.
    pub(crate) fn table(&self, key: &str) -> Option<&Table> {
        self.more.get(key)?.as_table()
    }

    /// Takes over the notes and shards of an earlier manifest, `before`.
    pub(crate) fn go_on_with(&mut self, before: &Self) {
        for key in [NOTES, PARTS] {
            match before.more.get(key) {
                Some(notes) => self.more.insert(key.to_owned(), notes.clone()),
                None => self.more.remove(key),
            };
        }
    }

    /// Notes about missing provenance of the rows, one sentence each; empty if it is complete.
    pub fn notes(&self) -> Vec<&str> {
        let notes = self.more.get(NOTES).and_then(Value::as_array);
        notes.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Sets the end to now and adds `wall_time_s` seconds of work.
    pub fn end(&mut self, wall_time_s: f64) {
        self.ended = now();
        self.wall_time_s += wall_time_s;
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The file is missing or is not a manifest.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let text = std::fs::read_to_string(path).map_err(|e| FileError::read(path, e))?;
        toml::from_str(&text).map_err(|e| {
            RunError::unusable(path, format!("not a manifest: {}", e.message().replace('\n', " ")))
        })
    }

    /// Writes the manifest atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        let text = toml::to_string_pretty(self)
            .map_err(|e| RunError::unusable(path, format!("cannot be written as TOML: {e}")))?;
        Ok(write_whole(path, text.as_bytes()).map_err(|e| FileError::write(path, e))?)
    }

    /// Returns a further entry as text; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.more.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// The flag for commands on these rows, such as ` --preset quick`; empty for the preset `paper`.
    pub fn preset_flag(&self) -> String {
        match self.text("preset") {
            "" | "paper" => String::new(),
            smaller => format!(" --preset {smaller}"),
        }
    }

    /// The `sweep` command that measures the study again, even if another command measured it.
    pub fn sweep_command(&self) -> String {
        let mut command = format!("rank-study sweep {}", quoted(self.text("definition_file")));
        command.push_str(&self.preset_flag());
        for (flag, key) in [("--text", "text"), ("--valid-text", "valid_text")] {
            if !self.text(key).is_empty() {
                command.push_str(&format!(" {flag} {}", quoted(self.text(key))));
            }
        }
        command
    }

    /// Records this machine and the number of threads, because a run may continue on another machine.
    pub fn go_on(&mut self, threads: usize) {
        self.threads = threads;
        self.machine = Machine::here();
    }

    /// Formats processor, instructions, threads and BLAS as one line.
    pub fn about_machine(&self) -> String {
        let Machine { cpu, instructions, blas, .. } = &self.machine;
        let instructions = match instructions.as_str() {
            "" => String::new(),
            level => format!(" ({level})"),
        };
        format!("{cpu}{instructions}, {} threads, {blas}", self.threads)
    }
}

/// Puts a word of a command in quotes if it has a space.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

/// Returns the git revision of the repository that the process runs in, as of the first call; empty outside a
/// repository.
pub fn revision() -> &'static str {
    static TOLD: LazyLock<String> = LazyLock::new(|| {
        let output = std::process::Command::new("git")
            .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
            .stderr(std::process::Stdio::null())
            .output();
        match output {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim().to_owned()
            }
            // Without git or a repository, only the version identifies the code.
            _ => String::new(),
        }
    });
    &TOLD
}

fn versions() -> BTreeMap<String, String> {
    let lock: Table = include_str!("../../Cargo.lock").parse().unwrap_or_default();
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    let version = |package: &Value| {
        let text = |key: &str| Some(package.get(key)?.as_str()?.to_owned());
        Some((text("name")?, text("version")?))
    };
    packages.filter_map(version).filter(|(name, _)| VERSIONED.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::Manifest;

    #[test]
    fn what_is_written_is_read_and_a_manifest_of_before_the_instructions_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("manifest.toml");
        let mut manifest = Manifest::begin(2, "float64");
        manifest.more.insert("study".to_owned(), "s".into());
        manifest.write(&path).unwrap();
        assert_eq!(Manifest::read(&path).unwrap(), manifest);
        let text = std::fs::read_to_string(&path).unwrap();
        for key in ["cpu", "instructions", "blas", "blas_core"] {
            assert!(text.contains(&format!("\n{key} = ")), "{key}: {text}");
        }

        let newer = |line: &&str| line.starts_with("instructions") || line.starts_with("blas_core");
        let older: String =
            text.lines().filter(|line| !newer(line)).map(|l| format!("{l}\n")).collect();
        std::fs::write(&path, &older).unwrap();
        let read = Manifest::read(&path).unwrap();
        assert_eq!((&*read.machine.instructions, &*read.machine.blas_core), ("", ""));
        assert_eq!(read.machine.cpu, manifest.machine.cpu);
        assert_eq!(read.text("study"), "s");
        read.write(&path).unwrap();
        let again = std::fs::read_to_string(&path).unwrap();
        assert_eq!(again, older, "what was not told stays untold");
    }
}
