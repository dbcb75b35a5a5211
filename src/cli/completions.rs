//! `rank-study completions`: prints the script that a shell needs to complete commands and flags.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::flags::QuietFlag;
use super::streams::print;

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
    #[command(flatten)]
    quiet: QuietFlag,
}

/// Prints the completion script of `program`.
///
/// # Errors
/// The script is not valid UTF-8.
pub fn run(args: &CompletionsArgs, mut program: Command) -> Result<()> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut program, name, &mut script);
    print(format_args!(
        "{}",
        String::from_utf8(script).context("the completion script is not text")?
    ));
    Ok(())
}
