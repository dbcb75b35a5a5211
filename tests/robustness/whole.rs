//! What a folder of results has to hold once all is done, however often its makers were killed, stopped or out of room: the
//! files of a run that nobody disturbed, and in them, but for times, what is there.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::common::binary::{Folder, Record};

/// The files of a folder, with what stands in them that is no time.
#[derive(Clone, Debug)]
pub struct Whole(BTreeMap<String, String>);

impl Whole {
    /// What is there; an error where a file is torn.
    pub fn of(folder: &Folder) -> Result<Self, String> {
        Self::part(folder, |_| true)
    }

    fn part(folder: &Folder, is_of_it: impl Fn(&str) -> bool) -> Result<Self, String> {
        let tree = folder.tree().into_iter().filter(|name| is_of_it(name));
        tree.map(|name| content(folder, &name).map(|content| (name, content)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Holds another folder to this one; an error where a file is missing there, too much, or another.
    pub fn check(&self, folder: &Folder) -> Result<(), String> {
        self.compare(&Self::of(folder)?)
    }

    /// [`Self::check`] of the files' names alone, and that each is whole.
    pub fn check_names(&self, folder: &Folder) -> Result<(), String> {
        self.compare_names(&Self::of(folder)?)
    }

    fn compare(&self, there: &Self) -> Result<(), String> {
        self.compare_names(there)?;
        match self.0.iter().find(|(name, content)| there.0[*name] != **content) {
            Some((name, content)) => {
                Err(format!("{name} holds\n{}\nand not\n{content}", there.0[name]))
            }
            None => Ok(()),
        }
    }

    fn compare_names(&self, there: &Self) -> Result<(), String> {
        let lacks = self.0.keys().find(|name| !there.0.contains_key(*name));
        let has = there.0.keys().find(|name| !self.0.contains_key(*name));
        match (lacks, has) {
            (Some(name), _) => Err(format!("{name} is missing")),
            (_, Some(name)) => Err(format!("{name} is left behind")),
            _ => Ok(()),
        }
    }
}

/// Holds the files of a folder whose paths begin with `below`, but for those with one of some words, to those of another.
pub fn same(folder: &Folder, whole: &Folder, below: &str, but: &[&str]) -> Result<(), String> {
    let is_compared = |name: &str| {
        name.starts_with(below)
            && ![&["/.lock"], but].concat().iter().any(|word| name.contains(word))
    };
    let part = |of: &Folder| Whole::part(of, |name| is_compared(name) && of.path(name).is_file());
    part(whole)?.compare(&part(folder)?)
}

fn content(folder: &Folder, name: &str) -> Result<String, String> {
    let path = folder.path(name);
    if path.is_dir() {
        return Ok("a folder".to_owned());
    }
    let bytes = fs::read(&path).map_err(|e| format!("{name}: {e}"))?;
    let file = name.rsplit('/').next().unwrap_or(name);
    let (_, ending) = file.rsplit_once('.').unwrap_or((file, ""));
    match (file, ending) {
        // Times stand in all of them; `verify` holds the rows' Parquet file to the rows.
        (".lock" | "rows.parquet", _) | (_, "rank-study") => Ok(String::new()),
        (_, "html") if bytes.trim_ascii_end().ends_with(b"</html>") => Ok(String::new()),
        (_, "html") => Err(format!("{name} is torn")),
        ("manifest.toml", _) => manifest(&bytes).map_err(|why| format!("{name}: {why}")),
        (_, "csv") => {
            let rows = rows(&bytes).map_err(|why| format!("{name}: {why}"))?;
            Ok(rows.iter().map(|row| format!("{row:?}\n")).collect())
        }
        // The header tells the time at work.
        ("training.safetensors", _) => {
            let header = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length));
            let tensors = header.and_then(|length| bytes.get(8 + usize::try_from(length).ok()?..));
            tensors.map(hashed).ok_or_else(|| format!("{name} is torn"))
        }
        _ => Ok(hashed(&bytes)),
    }
}

fn hashed(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes that hash to {:x}", bytes.len(), hasher.finish())
}

/// What a manifest says that is the same of every way to the end.
fn manifest(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    let manifest: toml::Table = text.parse().map_err(|e| format!("is torn: {e}"))?;
    let of = |key: &str| manifest.get(key).map_or_else(String::new, ToString::to_string);
    let has_ended = manifest.get("ended").and_then(toml::Value::as_str) != Some("");
    let is_open = manifest.contains_key("rows_sha256_before");
    Ok(format!(
        "ended {has_ended}, rows under way {is_open}, not known {:?}, {} {} {}",
        of("not_known"),
        of("outcome"),
        of("study"),
        of("definition")
    ))
}

/// The rows of a CSV file, every one of which must be whole, without their times; an error where a line is torn.
pub fn rows(bytes: &[u8]) -> Result<Vec<Record>, String> {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    if !text.ends_with('\n') {
        return Err(format!("is torn: {text}"));
    }
    let mut reader = csv::Reader::from_reader(bytes);
    let timeless = |mut row: Record| {
        row.remove("wall_time_s");
        row
    };
    reader.deserialize().map(|row| row.map(timeless).map_err(|e| format!("is torn: {e}"))).collect()
}
