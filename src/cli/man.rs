//! `rank-study man`: manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use rank_study::system::write_whole;

use super::streams::tell;

/// Write manual pages, one a command
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study man ~/.local/share/man/man1

Afterwards: man rank-study, man rank-study-fit.")]
pub struct ManArgs {
    /// Folder for the pages
    #[arg(value_name = "DIR")]
    out: PathBuf,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
}

/// Writes them; `program` is what they are about.
///
/// # Errors
/// A folder that cannot be written.
pub fn run(args: &ManArgs, program: Command) -> Result<()> {
    let out = args.out.display();
    // The pages of `help` and of its copies of all commands say nothing of their own.
    let program = program.disable_help_subcommand(true);
    let aside = tempfile::tempdir().context("a folder to write aside in")?;
    clap_mangen::generate_to(program, &aside).context("manual pages")?;
    let mut pages = 0;
    for page in std::fs::read_dir(&aside)? {
        let page = page?;
        let path = args.out.join(page.file_name());
        let text = std::fs::read(page.path())?;
        write_whole(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        pages += 1;
    }
    if !args.quiet {
        tell(&format!("{pages} pages in {out}"));
    }
    Ok(())
}
