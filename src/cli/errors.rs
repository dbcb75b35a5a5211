//! Errors as one line for the terminal, and wrong flags or values.

use std::any::TypeId;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::num::{IntErrorKind, NonZeroUsize, ParseFloatError, ParseIntError};

use anyhow::Error;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::places::near;
use crate::lm::LmError;
use crate::record::RowsError;
use crate::report::ReportError;
use crate::run::RunError;
use crate::study::StudyError;
use crate::system::{FileError, printable};
use crate::table::TableError;
use crate::targets::TargetError;

/// The error code `ENOENT`: no such file.
const NO_SUCH_FILE: i32 = 2;

/// Joins the error and its causes on one line and appends the flag or command that fixes it. Repeated causes are left
/// out.
pub fn error_line(error: &(dyn StdError + 'static)) -> String {
    let mut line = String::new();
    let mut mend = None;
    for cause in anyhow::Chain::new(error) {
        line = joined(line, &cause.to_string());
        mend = mend.or_else(|| mend_of(cause));
    }
    let missing = io::Error::from_raw_os_error(NO_SUCH_FILE).to_string();
    line = line.replace(&missing, "no such file or folder");
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
fn mend_of(error: &(dyn StdError + 'static)) -> Option<String> {
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

/// A wrong flag or value on the command line, which ends the program with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Adds the flag whose value caused an error.
pub trait FlagContext<T> {
    /// Puts the flag before the error. The result is a [`UsageError`], unless the cause is an I/O error of a file or
    /// folder.
    ///
    /// # Errors
    /// The error with the flag.
    fn flag(self, flag: impl Display) -> Result<T, Error>;
}

impl<T, E: Into<Error>> FlagContext<T> for Result<T, E> {
    fn flag(self, flag: impl Display) -> Result<T, Error> {
        self.map_err(|error| with_flag(error.into(), flag))
    }
}

/// Puts the flag before an error, as [`FlagContext::flag`].
pub fn with_flag(error: Error, flag: impl Display) -> Error {
    let is_of_a_file =
        error.chain().any(|cause| cause.is::<io::Error>() || cause.is::<FileError>());
    match is_of_a_file {
        true => error.context(flag.to_string()),
        false => error.context(UsageError(flag.to_string())),
    }
}

/// Returns `true` if the command line is wrong. A missing `--text` counts too.
pub fn is_usage_error(error: &Error) -> bool {
    let needs_text =
        |cause: &(dyn StdError + 'static)| matches!(cause.downcast_ref(), Some(LmError::NoText));
    error.is::<UsageError>() || error.chain().any(needs_text)
}

/// The message for an error of clap; `None` if clap prints a help page.
pub fn usage_error(
    said: &clap::Error,
    mut program: Command,
    arguments: &[OsString],
) -> Option<String> {
    if !said.use_stderr() || said.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return None;
    }
    program.build();
    let mut command = &program;
    for argument in arguments.iter().skip(1) {
        command = command.find_subcommand(argument).unwrap_or(command);
    }
    if let Some(wrong) = wrong_value(said, command) {
        return Some(wrong);
    }
    let called = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = format!("see {called} --help");
    if let Some(ContextValue::String(unknown)) = said.get(ContextKind::InvalidSubcommand) {
        let kinds = program.get_subcommands().flat_map(Command::get_subcommands);
        let all = program.get_subcommands().chain(kinds).map(Command::get_name);
        return Some(format!("unknown command {unknown:?}; {}", near(unknown, all, &help)));
    }
    // After the message clap writes advice and the usage, which the help has too.
    let text = said.render().to_string();
    let is_end =
        |line: &str| line.starts_with("Usage:") || line.starts_with("For more information");
    let lines = text.lines().map(str::trim).take_while(|line| !is_end(line));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let message = lines.join("; ").replace(":; ", ": ");
    let message = message.trim_start_matches("error: ");
    Some(match message.contains("tip: ") {
        true => message.to_owned(),
        false => format!("{message}; {help}"),
    })
}

/// The message for a value that a flag's type refuses.
fn wrong_value(said: &clap::Error, command: &Command) -> Option<String> {
    let text = |kind| said.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let flag = argument.split(' ').next().unwrap_or_default().replace(['<', '>'], "");
    let why = said.source().filter(|_| said.kind() == ErrorKind::ValueValidation)?;
    let one = if value.contains(',') { "one" } else { "a" };
    let wanted = if value.is_empty() {
        return Some(format!("{flag} has an empty value; leave out the extra comma"));
    } else if why.is::<ParseFloatError>() {
        format!("{one} number")
    } else if let Some(why) = why.downcast_ref::<ParseIntError>() {
        let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
        let is_counted = (command.get_arguments())
            .filter(|arg| arg.get_long().is_some_and(|long| flag == format!("--{long}")))
            .any(|arg| arg.get_value_parser().type_id() == TypeId::of::<NonZeroUsize>());
        match (why.kind(), is_counted, is_negative) {
            (IntErrorKind::PosOverflow, ..) => format!("at most {}", usize::MAX),
            (_, true, _) => format!("{one} whole number of at least 1"),
            (_, false, true) => format!("{one} whole number of at least 0"),
            (_, false, false) => format!("{one} whole number"),
        }
    } else {
        return Some(format!("{flag}: {why}"));
    };
    Some(format!("{flag} must be {wanted} ({value:?} found)"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
