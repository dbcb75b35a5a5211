//! Usage errors: their type, and a one-line message for errors that clap finds.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::num::{IntErrorKind, NonZeroUsize, ParseFloatError, ParseIntError};

use anyhow::Error;
use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use rank_study::lm::LmError;
use rank_study::system::FileError;

use super::places::near;

/// Above this number, valid values are not listed if one of them is similar.
const MOST_LISTED: usize = 8;

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
    let needs_text = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(LmError::NoText))
    };
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
    let text = |kind| said.get(kind).map(ToString::to_string).unwrap_or_default();
    let (argument, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let (flag, help) = (name(&argument), format!("see {} --help", called(command)));
    Some(match said.kind() {
        ErrorKind::InvalidSubcommand => {
            let unknown = text(ContextKind::InvalidSubcommand);
            let kinds = program.get_subcommands().flat_map(Command::get_subcommands);
            let all = program.get_subcommands().chain(kinds).map(Command::get_name);
            format!("unknown command {unknown:?}; {}", near(&unknown, all, &help))
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let flags: Vec<String> = (command.get_arguments())
                .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
                .collect();
            let near = near(&argument, flags.iter().map(String::as_str), &help);
            format!("unknown flag {argument}; {near}")
        }
        ErrorKind::UnknownArgument if command.get_name() == "reproduce" => {
            format!("unexpected argument {argument:?}; name a study with --only {argument}")
        }
        ErrorKind::UnknownArgument => format!("unexpected argument {argument:?}; {help}"),
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = match said.get(ContextKind::InvalidArg) {
                Some(clap::error::ContextValue::Strings(missing)) => {
                    missing.iter().map(|argument| plain(argument)).collect()
                }
                _ => vec![plain(&argument)],
            };
            let of_group = |argument: &String| match argument.contains(" or ") {
                true => format!("one of {argument}"),
                false => argument.clone(),
            };
            let needed = missing.iter().map(of_group).collect::<Vec<_>>().join(" and ");
            // Only an example with the missing flags helps.
            let shows = |example: &String| {
                let flags = missing.iter().flat_map(|flag| flag.split(' ').next());
                flags.filter(|flag| flag.starts_with("--")).all(|flag| example.contains(flag))
            };
            let example = example(command).filter(shows);
            let then = example.map_or(help, |example| format!("example: {example}"));
            format!("{} needs {needed}; {then}", called(command))
        }
        ErrorKind::ArgumentConflict => match name(&text(ContextKind::PriorArg)) {
            prior if prior == flag => format!("{flag} is given twice; give it once"),
            prior => format!("{flag} and {prior} cannot be combined; leave one out"),
        },
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{flag} has no value; write {}", plain(&argument))
        }
        ErrorKind::InvalidValue => {
            let valid = text(ContextKind::ValidValue);
            let is_long = valid.split(", ").count() > MOST_LISTED;
            match near(&value, valid.split(", "), "").as_str() {
                near if is_long && !near.is_empty() => {
                    format!("{flag} has no value {value:?}; {near}")
                }
                _ => format!("{flag} must be one of {valid} ({value:?} found)"),
            }
        }
        ErrorKind::ValueValidation if value.is_empty() => {
            format!("{flag} has an empty value; leave out the extra comma")
        }
        ErrorKind::ValueValidation => match (said.source(), wanted(said, &value, command, &flag)) {
            (_, Some(wanted)) => format!("{flag} must be {wanted} ({value:?} found)"),
            (Some(why), None) => format!("{flag}: {why}"),
            (None, None) => format!("{flag} cannot be {value:?}; {help}"),
        },
        _ => {
            let shown = said.render().to_string();
            let line = shown.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").to_owned()
        }
    })
}

/// Describes the number that a flag accepts, if `said` is an error of parsing a number.
fn wanted(said: &clap::Error, value: &str, command: &Command, flag: &str) -> Option<String> {
    let why = said.source()?;
    let one = if value.contains(',') { "one" } else { "a" };
    if why.is::<ParseFloatError>() {
        return Some(format!("{one} number"));
    }
    let is_negative = value.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok());
    let least = match why.downcast_ref::<ParseIntError>()?.kind() {
        IntErrorKind::PosOverflow => return Some(format!("at most {}", usize::MAX)),
        _ => {
            let from_1 = (command.get_arguments())
                .filter(|arg| arg.get_long().is_some_and(|long| flag == format!("--{long}")))
                .any(|arg| arg.get_value_parser().type_id() == TypeId::of::<NonZeroUsize>());
            match (from_1, is_negative) {
                (true, _) => " of at least 1",
                (false, true) => " of at least 0",
                (false, false) => "",
            }
        }
    };
    Some(format!("{one} whole number{least}"))
}

/// Name of a command as it is called, such as `rank-study fit`.
fn called(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// Name of an argument: `--rank` for `--rank <D>`, `DEFINITION` for `<DEFINITION>`.
fn name(argument: &str) -> String {
    plain(argument).split(' ').next().unwrap_or_default().to_owned()
}

/// An argument without the symbols of a usage line: `--family NAME or --target FILE` for a group.
fn plain(argument: &str) -> String {
    argument.replace(['<', '>'], "").replace('|', " or ").replace("...", "")
}

/// The first example in a command's help, joined to one line.
fn example(command: &Command) -> Option<String> {
    let help = command.get_after_help()?.to_string();
    let (_, examples) = help.split_once("Examples:\n").or(help.split_once("Example:\n"))?;
    let joined = examples.replace("\\\n", " ");
    let words = joined.lines().next()?.split_whitespace();
    Some(words.collect::<Vec<_>>().join(" "))
}
