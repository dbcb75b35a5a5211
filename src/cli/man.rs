//! `rank-study man`: manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;
use rank_study::system::{FileError, write_whole};

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
    /// Print only results and errors
    #[arg(long)]
    quiet: bool,
}

/// Writes them; `program` is what they are about.
///
/// # Errors
/// A folder that cannot be written.
pub fn run(args: &ManArgs, program: Command) -> Result<()> {
    // The pages of `help` and of its copies of all commands say nothing of their own.
    let mut program = program.disable_help_subcommand(true);
    // Commands learn their whole names, as `rank-study-bench-fit`.
    program.build();
    if args.markdown {
        let text = super::markdown::reference(&program);
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
    if !args.quiet {
        tell(&format!("wrote {pages} pages to {}", args.out.display()));
    }
    Ok(())
}
