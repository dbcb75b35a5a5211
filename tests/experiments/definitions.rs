//! Every key and every value of every definition that comes with the project, mistyped in turn.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use rank_study::lm::TrainDefinition;
use rank_study::study::{Preset, StudyDefinition, StudyError};
use rayon::prelude::*;
use toml::{Table, Value};

/// A definition with one thing changed.
struct Mutation {
    /// The keys on the way to the change, the changed one last as it was.
    path: Vec<String>,
    change: Change,
    table: Table,
}

enum Change {
    /// Another name of the last key.
    Key(String),
    /// Another value of it, or of one in its list.
    Value { from: &'static str, to: &'static str, is_listed: bool },
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join(".");
        match &self.change {
            Change::Key(name) => write!(f, "{path} as {name}"),
            Change::Value { from, to, .. } => write!(f, "{path}, {from} as {to}"),
        }
    }
}

impl Mutation {
    /// Why a definition with this change is as good as without it, where it is.
    fn is_valid_because(&self) -> Option<&'static str> {
        let Change::Value { from, to, is_listed } = self.change else { return None };
        let above = |name: &str| self.path[..self.path.len() - 1].iter().any(|key| key == name);
        let is_of_run = self.path.iter().rev().nth(1).is_some_and(|key| key == "run");
        let is_shared_seed =
            matches!(&self.path[..], [.., table, key] if table == "train" && key == "seed");
        let selects = above("expected") && (above("rows") || above("over"));
        match (from, to) {
            ("float", "integer") => Some(NUMBER),
            ("integer" | "float", "list") if selects && !is_listed => {
                Some("a value selects as a list of it does")
            }
            ("integer", "list") if is_shared_seed => Some("seeds that all runs share"),
            ("words", "string") if selects => Some("a word selects as a list of it does"),
            ("integer" | "float", "list") if is_of_run && !is_listed => {
                Some("a list makes a grid of runs")
            }
            _ => None,
        }
    }
}

const NUMBER: &str = "a whole number is a number";

/// A name with each of its letters left out, and with each two different neighbours swapped. A name of one letter is
/// doubled, which leaves something of it.
fn slips(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() == 1 {
        return vec![name.repeat(2)];
    }
    let less = (0..letters.len()).map(|at| [&letters[..at], &letters[at + 1..]].concat());
    let swapped = (1..letters.len()).map(|at| {
        let mut swapped = letters.clone();
        swapped.swap(at - 1, at);
        swapped
    });
    let mut slips: Vec<String> = less.chain(swapped).map(String::from_iter).collect();
    slips.retain(|slip| slip != name);
    slips.dedup();
    slips
}

/// Values of another kind, with the kinds.
fn others(value: &Value) -> (&'static str, Vec<(&'static str, Value)>) {
    let word = ("string", Value::from("wrong"));
    let list = ("list", Value::from(vec![value.clone()]));
    match value {
        Value::String(_) => ("string", vec![("integer", 3.into())]),
        Value::Integer(_) => ("integer", vec![word, list]),
        Value::Float(_) => ("float", vec![word, list, ("integer", 1.into())]),
        Value::Boolean(_) => ("bool", vec![word, ("integer", 1.into())]),
        Value::Datetime(_) => ("datetime", vec![word]),
        Value::Array(list) if list.first().is_some_and(Value::is_str) => ("words", vec![word]),
        Value::Array(_) => ("list", vec![word]),
        Value::Table(_) => ("table", vec![word]),
    }
}

/// Every mutation of what is in `table`, as `whole` makes a definition of it again.
fn in_table(
    table: &Table,
    path: &[String],
    whole: &dyn Fn(Table) -> Table,
    to: &mut Vec<Mutation>,
) {
    for (key, value) in table {
        let path = [path, std::slice::from_ref(key)].concat();
        let with = |other: Value| {
            let mut table = table.clone();
            table[key] = other;
            whole(table)
        };
        for slip in slips(key).into_iter().filter(|slip| !table.contains_key(slip)) {
            let renamed = table.iter().map(|(name, value)| match name == key {
                true => (slip.clone(), value.clone()),
                false => (name.clone(), value.clone()),
            });
            let table = whole(renamed.collect());
            to.push(Mutation { path: path.clone(), change: Change::Key(slip.clone()), table });
        }
        in_value(value, &path, false, &with, to);
    }
}

fn in_value(
    value: &Value,
    path: &[String],
    is_listed: bool,
    whole: &dyn Fn(Value) -> Table,
    to: &mut Vec<Mutation>,
) {
    let (from, kinds) = others(value);
    for (kind, other) in kinds {
        let change = Change::Value { from, to: kind, is_listed };
        to.push(Mutation { path: path.to_vec(), change, table: whole(other) });
    }
    match value {
        Value::Table(table) => in_table(table, path, &|table| whole(table.into()), to),
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                let with = |other: Value| {
                    let mut list = list.clone();
                    list[at] = other;
                    whole(list.into())
                };
                in_value(value, path, true, &with, to);
            }
        }
        _ => {}
    }
}

fn mutations(text: &str) -> Vec<Mutation> {
    let mut all = Vec::new();
    in_table(&text.parse().unwrap(), &[], &|table| table, &mut all);
    all
}

/// What came of a mutation.
struct Judged {
    /// Whether it is valid by rule.
    is_valid: bool,
    /// Whether its slip is as near to another name, which the error then names.
    is_between: bool,
    wrong: Option<String>,
}

impl Judged {
    /// Judges what reading a mutation came to.
    fn of(mutation: &Mutation, came_to: Result<(), String>) -> Self {
        let valid = mutation.is_valid_because();
        let is_valid = valid.is_some();
        let told = match came_to {
            Ok(()) if is_valid => Ok(false),
            Ok(()) => Err("was taken".to_owned()),
            // A whole number may be out of bounds, but nothing else that is valid is refused.
            Err(error) if valid.is_some_and(|why| why != NUMBER) => Err(error),
            Err(error) => told(mutation, &error),
        };
        let is_between = told == Ok(true);
        Self { is_valid, is_between, wrong: told.err().map(|why| format!("{mutation}: {why}")) }
    }
}

/// Holds an error to what it has to say; gives whether the slip is between two names.
fn told(mutation: &Mutation, error: &str) -> Result<bool, String> {
    let name = mutation.path.last().unwrap();
    let key = match &mutation.change {
        Change::Key(slip) => slip,
        Change::Value { .. } => name,
    };
    let apart = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
    if error.lines().count() != 1 || !error.split(apart).any(|word| word == key) {
        return Err(format!("{error:?} is not one line with the key"));
    }
    let Change::Key(slip) = &mutation.change else { return Ok(false) };
    let meant = error.split("did you mean \"").nth(1).and_then(|rest| rest.split('"').next());
    let nearest = meant.and_then(|meant| meant.rsplit('.').next()).unwrap_or_default();
    let far = |other: &str| strsim::damerau_levenshtein(slip, other);
    match nearest == name || far(nearest) <= far(name) {
        true => Ok(nearest != name),
        false => Err(format!("{error:?} does not name the nearest")),
    }
}

/// Checks that there are at least `at_least` mutations, that none is wrong, and that few are exceptions.
fn hold(judged: &[Judged], at_least: usize) {
    let count = |is: fn(&Judged) -> bool| judged.iter().filter(|judged| is(judged)).count();
    let (all, valid) = (judged.len(), count(|judged| judged.is_valid));
    let wrong: Vec<&str> = judged.iter().filter_map(|judged| judged.wrong.as_deref()).collect();
    assert!(wrong.is_empty(), "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all >= at_least, "{all} mutations");
    let between = count(|judged| judged.is_between);
    assert!(50 * between <= all, "{between} of {all} between two names");
    assert!(10 * valid <= all, "{valid} of {all} valid");
}

/// The definitions' names and texts.
fn definitions() -> Vec<(String, String)> {
    let analysis = Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(analysis).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// What reading a study's definition comes to, which is the same at every size.
fn read(path: &Path) -> Result<(), String> {
    let [quick, paper] = [Preset::Quick, Preset::Paper]
        .map(|preset| StudyDefinition::read(path, preset).map(|_| ()));
    match (quick, paper) {
        (Ok(()) | Err(StudyError::Size { .. }), Ok(())) => Ok(()),
        (Err(quick), Err(paper)) if quick.to_string() == paper.to_string() => {
            match paper.to_string().strip_prefix(&format!("{}: ", path.display())) {
                Some(why) => Err(why.to_owned()),
                None => Err(format!("names no file\n{paper}")),
            }
        }
        (quick, paper) => Err(format!("differs by size\n{quick:?}\n{paper:?}")),
    }
}

#[test]
fn every_slip_in_a_study_is_told_in_one_line_at_every_size() {
    let all = definitions();
    let beside = || {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &all {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    };
    let mut judged = Vec::new();
    // A mutation of a key is tried in the first study of a kind that has the key: the others read it with the same code.
    let mut tried = HashSet::new();
    for (name, text) in all.iter().filter(|(_, text)| text.contains("\nkind = ")) {
        let kind = text.parse::<Table>().unwrap()["kind"].to_string();
        let mut untried = mutations(text);
        untried.retain(|mutation| {
            let is_listed = matches!(mutation.change, Change::Value { is_listed: true, .. });
            tried.insert((kind.clone(), mutation.to_string(), is_listed))
        });
        judged.par_extend(untried.into_par_iter().map_init(beside, |folder, mutation| {
            let path = folder.path().join(name);
            std::fs::write(&path, toml::to_string(&mutation.table).unwrap()).unwrap();
            Judged::of(&mutation, read(&path))
        }));
    }
    hold(&judged, 3_000);
}

#[test]
fn every_slip_in_a_training_definition_is_told_in_one_line() {
    let texts = definitions();
    let alone = texts.iter().filter(|(_, text)| !text.contains("\nkind = "));
    let judge = |mutation: Mutation| {
        let text = toml::to_string(&mutation.table).unwrap();
        let came_to = TrainDefinition::from_toml(&text).map(|_| ()).map_err(|e| e.to_string());
        Judged::of(&mutation, came_to)
    };
    let judged: Vec<Judged> = alone.flat_map(|(_, text)| mutations(text)).map(judge).collect();
    hold(&judged, 300);
}
