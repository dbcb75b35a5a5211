//! The program's commands: parses arguments, runs the command and turns its result into an exit code.

use std::ffi::OsString;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::errors::{UsageError, is_usage_error, usage_error};
use super::flags::start_threads;
use super::shell::GROUPS;
use super::streams::{be_quiet, print_of_clap, say, tell};
use crate::numerics::{Machine, check_instructions, instructions_there};
use crate::run::revision;
use crate::system::set_command_line;

/// How large must attention logits grow when queries and keys are low-rank?
#[derive(Parser)]
#[command(
    name = "rank-study",
    disable_version_flag = true,
    arg_required_else_help = true,
    after_help = "\
Environment:
  RANK_STUDY_INSTRUCTIONS  Vector instructions: portable, avx2 or avx512 [default: the widest]

Exit codes:
  0  done
  1  failed
  2  wrong usage
  3  a check of verify failed
  4  stopped, or waiting for another shard; the same command continues"
)]
struct Cli {
    /// Print version
    #[arg(short = 'V', long)]
    version: bool,
    /// Print processor, instructions, BLAS and threads too
    #[arg(short, long, requires = "version")]
    verbose: bool,
    /// Print only results and errors
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Target(Box<super::target::TargetArgs>),
    Fit(Box<super::fit::FitArgs>),
    Sweep(super::sweep::SweepArgs),
    Train(super::train::TrainArgs),
    Evaluate(super::evaluate::EvaluateArgs),
    Dump(super::dump::DumpArgs),
    Predict(super::predict::PredictArgs),
    Diagnose(super::diagnose::DiagnoseArgs),
    Show(super::show::ShowArgs),
    Bench(super::bench::BenchArgs),
    Table(super::analysis::TableArgs),
    Figure(super::analysis::FigureArgs),
    Report(super::analysis::ReportArgs),
    Reproduce(super::reproduce::ReproduceArgs),
    Merge(super::merge::MergeArgs),
    Slurm(super::slurm::SlurmArgs),
    Verify(super::verify::VerifyArgs),
    List(super::list::ListArgs),
    Completions(super::shell::CompletionsArgs),
}

/// Returns the program's command line definition, with its commands listed by task.
fn program() -> clap::Command {
    let program = Cli::command();
    let mut list = String::new();
    for (task, names) in GROUPS {
        list.push_str(&format!("{task}:\n"));
        for name in names {
            let about = program.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {name:<12} {about}\n"));
        }
        list.push('\n');
    }
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    );
    with_negative_numbers(program.help_template(template))
}

/// Makes clap read a value such as -3 as a number, not as an unknown flag, so that the flag refuses it.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes = |arg: &clap::Arg| arg.get_long().is_some() && arg.get_action().takes_values();
    command
        .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(with_negative_numbers)
}

/// Runs the command that the arguments (including the program's name) give. Exit codes: 0 done, 1 failed, 2 wrong flag
/// or value on the command line, 3 a check of `verify` failed, 4 stopped.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    set_command_line(&arguments);
    let Cli { version, verbose, quiet, command } = match parsed(&arguments) {
        Ok(parsed) => parsed,
        Err(said) => {
            return match usage_error(&said, program(), &arguments) {
                Some(line) => {
                    tell(&format!("error: {line}"));
                    2
                }
                None => print_of_clap(&said),
            };
        }
    };
    if quiet {
        be_quiet();
    }
    if let Err(error) = check_instructions() {
        tell(&format!("error: {error}"));
        return 2;
    }
    let result = match command {
        Some(_) if version => {
            let why = "--version takes no command; leave one of them out";
            Err(UsageError(why.to_owned()).into())
        }
        None if verbose => start_threads().map(|()| print_version(true)),
        None if version => {
            print_version(false);
            Ok(())
        }
        Some(command) => super::crashes::told(|| {
            start_threads()?;
            dispatch(command)
        }),
        // `--quiet` alone.
        None => Err(UsageError("no command given; see rank-study --help".to_owned()).into()),
    };
    match result {
        Ok(()) => 0,
        Err(error) => {
            let line = super::errors::error_line(error.as_ref());
            tell(&format!("error: {line}"));
            if error.is::<super::verify::Breach>() {
                3
            } else if error.is::<super::stop::Stopped>() {
                super::stop::STOPPED
            } else if is_usage_error(&error) {
                2
            } else {
                1
            }
        }
    }
}

fn parsed(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&program().try_get_matches_from(arguments)?)
}

fn dispatch(command: Command) -> Result<()> {
    match command {
        Command::Target(args) => super::target::run(&args),
        Command::Fit(args) => super::fit::run(&args),
        Command::Sweep(args) => super::sweep::run(&args),
        Command::Train(args) => super::train::run(&args),
        Command::Evaluate(args) => super::evaluate::run(&args),
        Command::Dump(args) => super::dump::run(&args),
        Command::Predict(args) => super::predict::run(&args),
        Command::Diagnose(args) => super::diagnose::run(&args),
        Command::Show(args) => super::show::run(&args),
        Command::Bench(args) => super::bench::run(&args),
        Command::Table(args) => super::analysis::table(&args),
        Command::Figure(args) => super::analysis::figure(&args),
        Command::Report(args) => super::analysis::report(&args),
        Command::Reproduce(args) => super::reproduce::run(&args),
        Command::Merge(args) => super::merge::run(&args),
        Command::Slurm(args) => super::slurm::run(&args),
        Command::Verify(args) => super::verify::run(&args),
        Command::List(args) => super::list::run(&args),
        Command::Completions(args) => super::shell::completions(&args, Cli::command()),
    }
}

/// Prints the version. If `verbose`, also prints the revision, processor, instructions, BLAS and threads.
fn print_version(verbose: bool) {
    say!("rank-study {}", env!("CARGO_PKG_VERSION"));
    if !verbose {
        return;
    }
    let Machine { cpu, instructions, blas, blas_core } = Machine::here();
    let (there, held) = instructions_there();
    let there = there.join(", ");
    let of = match held {
        Some(_) => format!("set by RANK_STUDY_INSTRUCTIONS, of {there}"),
        None => format!("the widest of {there}"),
    };
    let revision = match revision() {
        "" => "none: not in a git repository".to_owned(),
        revision => format!("{revision}, of the repository here"),
    };
    say!("revision      {revision}");
    say!("processor     {cpu}");
    say!("instructions  {instructions}, {of}");
    say!("blas          {blas}");
    say!("blas_core     {blas_core}");
    say!("threads       {}", rayon::current_num_threads());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{GROUPS, program};

    #[test]
    fn help_lists_every_command_once() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.sort_unstable();
        let program = program();
        let mut all: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    /// Flags that mean something else in one command.
    const EXCEPTIONS: [(&str, &str); 1] = [("fit", "factors")];

    /// Help without defaults and possible values, which stand in brackets.
    fn sentence(help: &str) -> String {
        help.split(" [").next().unwrap_or_default().replace(" (repeatable)", "")
    }

    #[test]
    fn help_is_short_and_a_flag_has_one_meaning_in_every_command() {
        let mut meanings: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut left = vec![program()];
        while let Some(command) = left.pop() {
            let name = command.get_name();
            let about = command.get_about().expect("a command has help");
            let mut texts = vec![sentence(&about.to_string())];
            for flag in command.get_arguments() {
                let help = sentence(&flag.get_help().map(ToString::to_string).unwrap_or_default());
                texts.push(help.clone());
                let long = flag.get_long().filter(|long| !EXCEPTIONS.contains(&(name, long)));
                let Some(long) = long else { continue };
                // What files a folder holds, or which formats a file may have, follows a colon.
                let meaning = match long {
                    "out" => help.split(':').next().unwrap_or_default().replace("folder", "file"),
                    _ => help,
                };
                let (first, of) =
                    meanings.entry(long.to_owned()).or_insert((meaning.clone(), name.to_owned()));
                assert_eq!(*first, meaning, "--{long} of {of} and of {name}");
            }
            for text in texts {
                let words = text.split_whitespace().count();
                assert!((1..=12).contains(&words), "{name}: {text:?} has {words} words");
            }
            left.extend(command.get_subcommands().cloned());
        }
        assert!(meanings.len() > 60, "{meanings:?}");
    }
}
