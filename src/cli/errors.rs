//! Errors as one line for the terminal, and wrong flags or values.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::num::{ParseFloatError, ParseIntError};
use std::path::Path;

use anyhow::Error;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::places::near;
use crate::lm::LmError;
use crate::system::{FileError, near_files, printable};

/// The error code `ENOENT`: no such file.
const NO_SUCH_FILE: i32 = 2;

/// Joins the error and its causes on one line. Repeated causes are left out.
pub fn error_line(error: &(dyn StdError + 'static)) -> String {
    let mut line = String::new();
    for cause in anyhow::Chain::new(error) {
        line = joined(line, &cause.to_string());
    }
    let missing = format!(": {}", io::Error::from_raw_os_error(NO_SUCH_FILE));
    if let Some(named) = line.strip_suffix(&missing) {
        let starts = named.match_indices(' ').map(|(at, _)| at + 1).rev().chain([0]);
        let mut near = starts.map(|start| near_files(Path::new(&named[start..])));
        let near = near.find(|near| !near.is_empty());
        line = format!("{named}: no such file or folder{}", near.unwrap_or_default());
    }
    printable(&line.replace('\n', " ")).into_owned()
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
    if let Some(wrong) = wrong_value(said) {
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
fn wrong_value(said: &clap::Error) -> Option<String> {
    let text = |kind| said.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let flag = argument.split(' ').next().unwrap_or_default().replace(['<', '>'], "");
    let why = said.source().filter(|_| said.kind() == ErrorKind::ValueValidation)?;
    let wanted = match () {
        () if why.is::<ParseFloatError>() => "a number",
        () if why.is::<ParseIntError>() => "a whole number",
        () => return Some(format!("{flag}: {why}")),
    };
    Some(format!("{flag} must be {wanted} ({value:?} found: {why})"))
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
