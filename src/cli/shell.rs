//! `rank-study man` and `rank-study completions`: manual pages, and scripts that complete commands in a shell.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::streams::{inform, print};
use crate::system::{FileError, write_whole};

/// Write manual pages
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write to this folder
    #[arg(value_name = "DIR")]
    out: PathBuf,
}

/// Writes the manual pages of `program`.
///
/// # Errors
/// The folder cannot be written.
pub fn man(args: &ManArgs, program: Command) -> Result<()> {
    // The pages of `help` and of its copies of all commands would have no content of their own.
    let mut program = program.disable_help_subcommand(true);
    // Gives commands their full names, such as `rank-study-bench-fit`.
    program.build();
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
    inform(&format!("wrote {pages} pages to {}", args.out.display()));
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

/// Print the completion script of a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study completions bash > ~/.local/share/bash-completion/completions/rank-study
  rank-study completions zsh > ~/.zfunc/_rank-study
  rank-study completions fish > ~/.config/fish/completions/rank-study.fish")]
pub struct CompletionsArgs {
    /// Shell to complete in
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script of `program`.
///
/// # Errors
/// The script is not valid UTF-8.
pub fn completions(args: &CompletionsArgs, mut program: Command) -> Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut program, name, &mut script);
    print(format_args!(
        "{}",
        String::from_utf8(script).context("the completion script is not text")?
    ));
    Ok(())
}
