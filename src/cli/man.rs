//! `rank-study man`: manual pages, and the reference docs/cli.md.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, Args, Command};
use clap_mangen::Man;
use rank_study::study::definitions_page;
use rank_study::system::{FileError, write_whole};

use super::flags::QuietFlag;
use super::streams::tell;

/// Write manual pages
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write to this folder
    #[arg(value_name = "DIR")]
    out: PathBuf,
    /// Write the reference of all commands to this file instead
    #[arg(long, hide = true)]
    markdown: bool,
    /// Write the keys of definitions to this file instead
    #[arg(long, hide = true, conflicts_with = "markdown")]
    definitions: bool,
    #[command(flatten)]
    quiet: QuietFlag,
}

/// Writes the manual pages of `program`.
///
/// # Errors
/// The folder cannot be written.
pub fn run(args: &ManArgs, program: Command) -> Result<()> {
    // The pages of `help` and of its copies of all commands would have no content of their own.
    let mut program = program.disable_help_subcommand(true);
    // Gives commands their full names, such as `rank-study-bench-fit`.
    program.build();
    if args.markdown || args.definitions {
        let text = if args.markdown { reference(&program) } else { definitions_page() };
        return write_whole(&args.out, text.as_bytes())
            .with_context(|| format!("cannot write {}", args.out.display()));
    }
    let mut commands = vec![&program];
    let mut pages = 0;
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let page = Man::new(command.clone());
        let path = args.out.join(page.get_filename());
        let mut text = Vec::new();
        page.render(&mut text).context("cannot render a manual page")?;
        write_whole(&path, &text).map_err(|source| FileError::Write { path, source })?;
        pages += 1;
    }
    if !args.quiet.is_set() {
        tell(&format!("wrote {pages} pages to {}", args.out.display()));
    }
    Ok(())
}

/// The commands by task, in the order of `--help`.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["target", "fit"]),
    ("Train", &["train", "evaluate", "dump"]),
    ("Look", &["predict", "diagnose", "show"]),
    ("Studies", &["reproduce", "sweep", "table", "figure", "report", "verify", "list"]),
    ("Cluster", &["merge", "slurm"]),
    ("Tools", &["bench", "completions", "man"]),
];

/// Returns the Markdown of docs/cli.md.
pub fn reference(program: &Command) -> String {
    let mut page = "\
# Command-line reference

Generated from `rank-study --help`. To update it: `RANK_STUDY_UPDATE_DOCS=1 cargo test --test architecture help`.

Exit codes: 0 done, 1 failed, 2 a wrong flag or value, 3 a check of `verify` failed, 4 stopped or waiting.

| Task | Commands |
|---|---|
"
    .to_owned();
    let links = |names: &[&str]| {
        let links = names.iter().map(|name| format!("[{name}](#rank-study-{name})"));
        links.collect::<Vec<_>>().join(", ")
    };
    for (task, names) in GROUPS {
        page.push_str(&format!("| {task} | {} |\n", links(names)));
    }
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    for command in names.filter_map(|name| program.find_subcommand(name)) {
        describe(command, "##", &mut page);
        let kinds = command.get_subcommands().filter(|kind| kind.get_name() != "help");
        kinds.for_each(|kind| describe(kind, "###", &mut page));
    }
    page
}

fn describe(command: &Command, heading: &str, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_default();
    let text = |styled: Option<&clap::builder::StyledStr>| {
        styled.map(ToString::to_string).unwrap_or_default()
    };
    page.push_str(&format!("\n{heading} {name}\n\n{}.\n\n", text(command.get_about())));
    let usage = command.clone().render_usage().to_string();
    page.push_str(&format!("```text\n{}\n```\n\n", usage.trim_start_matches("Usage: ")));
    let arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help");
    arguments.for_each(|argument| page.push_str(&line(argument)));
    let after = text(command.get_after_help());
    let examples = after.split_once(":\n").map_or("", |(_, examples)| examples);
    let (examples, more) = examples.split_once("\n\n").unwrap_or((examples, ""));
    if !examples.is_empty() {
        let examples = examples.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
        let examples = examples.collect::<Vec<_>>().join("\n");
        page.push_str(&format!("\n```sh\n{examples}\n```\n"));
    }
    if !more.is_empty() {
        page.push_str(&format!("\n{}\n", linked(more)));
    }
}

/// Describes one argument: its name, help, possible values and default.
fn line(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let help = escaped(help.trim());
    let value = argument.get_value_names().and_then(|names| names.first());
    let value = value.filter(|_| argument.get_action().takes_values());
    let name = match (argument.get_long(), value) {
        (None, Some(value)) => format!("<{value}>"),
        (None, None) => String::new(),
        (Some(long), Some(value)) => format!("--{long} <{value}>"),
        (Some(long), None) => format!("--{long}"),
    };
    let possible = argument.get_possible_values();
    let possible: Vec<&str> = match argument.get_action().takes_values() {
        true => possible.iter().map(clap::builder::PossibleValue::get_name).collect(),
        false => Vec::new(),
    };
    let possible = match possible.is_empty() {
        true => String::new(),
        false => format!(" [values: {}]", possible.join(", ")),
    };
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let default = match defaults.is_empty() || !argument.get_action().takes_values() {
        true => String::new(),
        false => format!(" [default: {}]", defaults.join(",")),
    };
    format!("- `{name}`: {help}{possible}{default}\n")
}

/// Escapes the special characters of Markdown.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('*', "\\*").replace('_', "\\_")
}

/// Turns paths of documentation pages into links.
fn linked(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let page = word.trim_end_matches(['.', ',']);
        match page.strip_prefix("docs/") {
            Some(name) if name.ends_with(".md") => word.replace(page, &format!("[{page}]({name})")),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
