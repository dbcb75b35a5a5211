//! `rank-study completions`: scripts that complete commands in a shell; and the commands by task.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use super::streams::print;

/// The commands by task, in the order of `--help`.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["target", "fit"]),
    ("Train", &["train", "evaluate", "dump"]),
    ("Look", &["predict", "diagnose", "show"]),
    ("Studies", &["reproduce", "sweep", "table", "figure", "report", "verify", "list"]),
    ("Cluster", &["merge", "slurm"]),
    ("Tools", &["bench", "completions"]),
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
