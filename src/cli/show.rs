//! `rank-study show`: makes pages of a user's own fits, runs, predictions and logs of heads.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::streams::{inform, say};
use crate::report::{Shown, save_figures, save_tables, show, shown_page};
use crate::system::{printable, write_whole};

/// Make a page of fits, runs, predictions or logged heads
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study show fits/mine
  rank-study show runs/mhsa runs/ls --out compared
  rank-study show predicted/book
  rank-study show heads.csv --out heads

Writes DIR/index.html (works offline), figures/ and tables/. Guide: docs/train.md")]
pub struct ShowArgs {
    /// Folders of fits, runs or predictions; logs of heads
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Write to this folder [default: PATH/shown]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
/// A path with nothing to show, damaged files, or a folder that cannot be written.
pub fn run(args: &ShowArgs) -> Result<()> {
    let shown = show(&args.paths)?;
    let out = match (&args.out, &args.paths[..]) {
        (Some(out), _) => out.clone(),
        (None, [path]) if path.is_dir() => path.join("shown"),
        (None, [path]) => {
            bail!("{} is a file, so its page needs a folder; give --out DIR", path.display())
        }
        (None, _) => bail!("several paths need an output folder; give --out DIR"),
    };
    let generator = format!("rank-study {}", env!("CARGO_PKG_VERSION"));
    let page = out.join("index.html");
    let text = shown_page(&shown, &generator)?;
    write_whole(&page, text.as_bytes())
        .with_context(|| format!("--out: cannot write {}", page.display()))?;
    for (at, one) in shown.iter().enumerate() {
        // Several results may have figures of the same names.
        let within = if shown.len() > 1 { out.join(format!("{}", at + 1)) } else { out.clone() };
        save_figures(&one.figures, &within.join("figures"))?;
        save_tables(&one.tables, &within.join("tables"))?;
    }
    shown.iter().for_each(print);
    inform(&format!("wrote {}", page.display()));
    Ok(())
}

fn print(shown: &Shown) {
    say!("{}", printable(&shown.title));
    shown.conclusion.iter().for_each(|sentence| say!("{}", printable(sentence)));
    shown.notes.iter().for_each(|note| say!("note: {}", printable(note)));
}
