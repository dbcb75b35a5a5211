//! Checks the names that definitions give: each becomes a folder, a key, or both.

use crate::system::{check_folder_name, check_name};

/// Names in `data/` that studies may not have, at any size.
const OF_DATA: [&str; 3] = ["tokens", "quick", "smoke"];
/// Files and folders that a study's folder holds beside its runs.
const OF_STUDY: [&str; 7] = [
    "tables",
    "shards",
    "shown",
    "rows.csv",
    "rows.parquet",
    "rows-set-aside.csv",
    "manifest.toml",
];

/// Checks the name of a study under the key `place`. Its folders and those of its figures have this name.
pub(crate) fn check_study_name(place: &str, name: &str) -> Result<(), String> {
    let wrong = |why: String| Err(format!("{place} is {name:?}; it names a folder, and {why}"));
    match check_name(name) {
        Err(why) => wrong(why.to_string()),
        Ok(()) if name.contains('.') => {
            wrong("contains '.'; use letters, digits, - and _".to_owned())
        }
        Ok(()) if is_one_of(name, &OF_DATA) => wrong(format!(
            "data/{} is used for something else; choose another name",
            name.to_lowercase()
        )),
        Ok(()) => Ok(()),
    }
}

/// Checks the name of a run.
pub(crate) fn check_run_name(name: &str) -> Result<(), String> {
    check_name(name).map_err(|why| format!("run {name:?} names a folder, and {why}"))?;
    of_study("run", name)
}

/// Checks the name of a target, which is the first part of its cells' keys.
pub(crate) fn check_target_name(name: &str) -> Result<(), String> {
    check_name(name).map_err(|why| format!("target {name:?} names configurations, and {why}"))
}

/// Checks the name of a model's folder or file. Its cells and the folder of their files have this name.
pub(crate) fn check_model_name(name: &str) -> Result<(), String> {
    check_folder_name(name).map_err(|why| {
        format!("the model {name:?} names configurations, and {why}; link to it by another name")
    })?;
    of_study("the model", name)
}

fn of_study(what: &str, name: &str) -> Result<(), String> {
    match is_one_of(name, &OF_STUDY) {
        true => Err(format!(
            "{what} {name:?} clashes with a file that a study writes ({}); choose another name",
            name.to_lowercase()
        )),
        false => Ok(()),
    }
}

/// Returns an error for a name that equals one of `others`, or differs from it only in case.
pub(crate) fn check_names_differ(what: &str, name: &str, others: &[String]) -> Result<(), String> {
    match others.iter().find(|other| other.eq_ignore_ascii_case(name)) {
        None => Ok(()),
        Some(other) if other == name => Err(format!("two {what}s are called {name:?}")),
        Some(other) => Err(format!(
            "the {what}s {other:?} and {name:?} differ only in case, which some file systems ignore; \
             rename one"
        )),
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}
