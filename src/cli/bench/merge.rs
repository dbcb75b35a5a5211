//! `rank-study bench merge`: how long the rows of many parts take to be joined.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use rank_study::study::{MOST_SHARDS, merge};
use rank_study::system::{check_disk, write_whole};

use super::timing::{at_least_one, held};
use crate::cli::places::measured;
use crate::cli::streams::{say, tell};

/// Time the merge of many shards
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  rank-study bench merge logit-growth --shards 1000 --rows 1000000")]
pub(super) struct MergeBench {
    /// Study whose rows are copied
    #[arg(default_value = "logit-growth")]
    study: String,
    /// Number of shards
    #[arg(long, value_name = "N", default_value_t = 1000)]
    shards: usize,
    /// Number of rows in total
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    rows: usize,
    /// Make the temporary folder in this folder [default: the system's]
    #[arg(long, value_name = "DIR")]
    within: Option<std::path::PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// A study without rows, a folder that cannot be written.
pub(super) fn run(args: &MergeBench, quiet: bool) -> Result<()> {
    at_least_one("--shards", args.shards)?;
    if args.shards > MOST_SHARDS || args.rows < args.shards {
        bail!(
            "--shards is {}; give at most {MOST_SHARDS}, and at least one row for each",
            args.shards
        );
    }
    let (folder, _) = measured(&args.study, Default::default())?;
    let within = args.within.clone().unwrap_or_else(std::env::temp_dir);
    let temporary = tempfile::tempdir_in(&within)
        .with_context(|| format!("cannot write {}", within.display()))?;
    let study = temporary.path().join(&args.study);
    check_room(args, &folder, &within)?;
    let bytes = write_parts(args, &folder, &study)?;
    if !quiet {
        tell(&format!(
            "merging {} rows of {} shards, {} MB",
            args.rows,
            args.shards,
            bytes / 1_000_000
        ));
    }
    let started = Instant::now();
    let merged = merge(&study)?.context("no shards were written")?;
    let seconds = started.elapsed().as_secs_f64();
    if merged.rows != args.rows {
        bail!("internal error: {} of {} rows merged", merged.rows, args.rows);
    }
    if args.json {
        let peak = rank_study::system::peak_rss_bytes();
        let object = serde_json::json!({
            "shards": args.shards, "rows": args.rows, "bytes": bytes, "merge_s": seconds, "peak_rss_bytes": peak,
        });
        say!("{object}");
    } else {
        say!("{seconds:.2} s{}", held());
    }
    Ok(())
}

/// Refuses rows that the disk cannot hold, once in parts and once joined.
fn check_room(args: &MergeBench, like: &Path, within: &Path) -> Result<()> {
    let text = std::fs::read_to_string(like.join("rows.csv"))?;
    let of_a_row = text.len() as f64 / text.lines().count().max(1) as f64;
    check_disk(within, 2.0 * of_a_row * args.rows as f64)
        .map_err(|room| anyhow!("--rows {}: the files need {room}; give fewer", args.rows))
}

/// Writes the parts, and says how many bytes their rows have.
fn write_parts(args: &MergeBench, like: &Path, study: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(like.join("rows.csv"))?;
    let (header, rows) = text.split_once('\n').context("no rows")?;
    // Study and cell are the first fields, and neither is quoted in the rows of fits.
    let rest = |line: &str| line.splitn(3, ',').nth(2).map(str::to_owned);
    let rows: Vec<String> = rows.lines().filter_map(rest).collect();
    if rows.is_empty() {
        bail!("{} has no rows", like.display());
    }
    let manifest = std::fs::read(like.join("manifest.toml"))?;
    let (mut written, mut bytes, mut order) = (0, 0, String::new());
    for part in 0..args.shards {
        let folder = study.join("shards").join(format!("{}-of-{}", part + 1, args.shards));
        let mut text = format!("{header}\n");
        for _ in 0..(args.rows * (part + 1) / args.shards - written) {
            writeln!(text, "{},cell-{written},{}", args.study, rows[written % rows.len()])?;
            writeln!(order, "cell-{written}")?;
            written += 1;
        }
        bytes += text.len();
        write_whole(&folder.join("rows.csv"), text.as_bytes())?;
        write_whole(&folder.join("manifest.toml"), &manifest)?;
    }
    write_whole(&study.join("shards").join("cells.txt"), order.as_bytes())?;
    Ok(bytes)
}
