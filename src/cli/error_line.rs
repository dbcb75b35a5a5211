//! One-line form of an error for the terminal.

use std::error::Error;
use std::io;
use std::path::Path;

use rank_study::lm::LmError;
use rank_study::record::RowsError;
use rank_study::report::ReportError;
use rank_study::run::RunError;
use rank_study::study::StudyError;
use rank_study::system::{near_files, printable};
use rank_study::table::TableError;
use rank_study::targets::TargetError;

/// The error code `ENOENT`: no such file.
const NO_SUCH_FILE: i32 = 2;

/// Joins the error and its causes on one line and appends the flag or command that fixes it. Repeated causes are left
/// out.
pub fn error_line(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    let mut mend = None;
    for cause in anyhow::Chain::new(error) {
        line = joined(line, &cause.to_string());
        mend = mend.or_else(|| mend_of(cause));
    }
    let missing = format!(": {}", io::Error::from_raw_os_error(NO_SUCH_FILE));
    if let Some(named) = line.strip_suffix(&missing) {
        let starts = named.match_indices(' ').map(|(at, _)| at + 1).rev().chain([0]);
        let mut near = starts.map(|start| near_files(Path::new(&named[start..])));
        let near = near.find(|near| !near.is_empty());
        line = format!("{named}: no such file or folder{}", near.unwrap_or_default());
    }
    let mend = mend.map(|mend| format!(" ({mend})")).unwrap_or_default();
    printable(&format!("{line}{mend}").replace('\n', " ")).into_owned()
}

/// Appends a cause to a line, without a path that both name.
fn joined(line: String, message: &str) -> String {
    let names_it =
        message.starts_with(&format!("{line}: ")) || message.contains(&format!("{line:?}"));
    if line.is_empty() || names_it {
        return message.to_owned();
    }
    if line.contains(message) {
        return line;
    }
    let ends_with = |path: &str| line == path || line.ends_with(&format!(" {path}"));
    let rest = match message.split_once(": ") {
        Some((path, rest)) if ends_with(path) => rest.to_owned(),
        Some((head, rest)) => match head.rsplit_once(' ') {
            // For example `--text a.txt: cannot read a.txt: …`.
            Some((what, path)) if ends_with(path) => format!("{what}: {rest}"),
            _ => message.to_owned(),
        },
        None => message.to_owned(),
    };
    format!("{line}: {rest}")
}

/// Flags or command that fix an error of the library, which does not refer to the command line.
fn mend_of(error: &(dyn Error + 'static)) -> Option<String> {
    // A transparent error hides its source from the chain of causes, so its variants are matched here.
    let of_report = |error: &ReportError| match error {
        ReportError::Rows(error) => of_rows(error),
        ReportError::Table(error) => of_table(error),
        ReportError::Study(error) => of_study(error),
        _ => None,
    };
    (error.downcast_ref().and_then(of_target))
        .or_else(|| error.downcast_ref().and_then(of_lm))
        .or_else(|| error.downcast_ref().and_then(of_rows))
        .or_else(|| error.downcast_ref().and_then(of_study))
        .or_else(|| error.downcast_ref().and_then(of_run))
        .or_else(|| error.downcast_ref().and_then(of_table))
        .or_else(|| error.downcast_ref().and_then(of_report))
}

fn of_target(error: &TargetError) -> Option<String> {
    match error {
        TargetError::OutsideVisibility { .. } | TargetError::NotCausal { .. } => {
            Some("--mask bidirectional".to_owned())
        }
        TargetError::InFile { problem, .. } => of_target(problem),
        _ => None,
    }
}

fn of_lm(error: &LmError) -> Option<String> {
    match error {
        LmError::NoText => Some("add --text FILE".to_owned()),
        LmError::TextTooShort { .. } => Some("lower it with --set context=…".to_owned()),
        _ => None,
    }
}

fn of_study(error: &StudyError) -> Option<String> {
    match error {
        StudyError::Filter { .. } => Some("see --list for the configurations".to_owned()),
        StudyError::Target(error) => of_target(error),
        StudyError::Text(error) => of_lm(error),
        StudyError::Run(error) => of_run(error),
        _ => None,
    }
}

fn of_run(error: &RunError) -> Option<String> {
    match error {
        RunError::Rows(error) => of_rows(error),
        RunError::Model(error) => of_lm(error),
        _ => None,
    }
}

fn of_table(error: &TableError) -> Option<String> {
    match error {
        TableError::Rows(error) => of_rows(error),
        _ => None,
    }
}

/// Advice for a study's `rows.csv`; the rows of a run get none.
fn of_rows(error: &RowsError) -> Option<String> {
    let (RowsError::Unreadable { path, .. }
    | RowsError::MissingColumn { path, .. }
    | RowsError::BadLine { path, .. }) = error;
    let study = path.parent()?.file_name().filter(|_| path.ends_with("rows.csv"))?;
    Some(format!("run rank-study reproduce --only {}", study.display()))
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn a_path_is_named_once() {
        for (line, message, expected) in [
            ("", "x.gguf: is cut off", "x.gguf: is cut off"),
            ("x.gguf", "x.gguf: is cut off", "x.gguf: is cut off"),
            ("--text a.txt", "a.txt: no such file", "--text a.txt: no such file"),
            ("--text a.txt", "cannot read a.txt: denied", "--text a.txt: cannot read: denied"),
            ("split", "study \"split\" has no rows", "study \"split\" has no rows"),
            ("--out", "cannot write a: denied", "--out: cannot write a: denied"),
            ("--n is 3: too large", "too large", "--n is 3: too large"),
        ] {
            assert_eq!(joined(line.to_owned(), message), expected);
        }
    }
}
