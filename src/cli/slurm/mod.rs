//! `rank-study slurm`: writes the batch script that measures studies in shards on a cluster.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::analysis::fail_if_missing;
use super::places::fail_if_broken;
use super::reproduce::{Staged, staged};
use super::streams::{is_quiet, say};
use crate::cli::errors::UsageError;
use crate::cli::flags::{PresetFlag, TextFlags};
use crate::study::{MOST_SHARDS, Stage, Stages};
use crate::system::{program, write_whole};
use crate::table::plural;

/// Write a Slurm job array that measures studies
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study slurm --preset paper --tasks 100 --at-a-time 20 --partition cpu
  rank-study slurm logit-growth phase --tasks 8 --cpus 4

Guide: docs/cluster.md")]
pub struct SlurmArgs {
    /// Studies to measure [default: all of the preset]
    #[arg(value_name = "STUDY")]
    studies: Vec<String>,
    #[command(flatten)]
    preset: PresetFlag,
    /// Split the work into this many tasks [default: one configuration each]
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// Run at most this many tasks at once [default: all]
    #[arg(long, value_name = "N")]
    at_a_time: Option<usize>,
    /// Processors per task
    #[arg(long, value_name = "N", default_value_t = 4)]
    cpus: usize,
    /// Time limit per task [default: that of the partition]
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// Slurm partition
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// GPUs per task, as Slurm writes them: 1, a100:1
    #[arg(long, value_name = "GPUS")]
    gpus: Option<String>,
    /// Memory per task, as Slurm writes it: 8G
    #[arg(long, value_name = "SIZE")]
    mem: Option<String>,
    #[command(flatten)]
    texts: TextFlags,
    /// Write to this file
    #[arg(long, value_name = "FILE", default_value = "rank-study.sbatch")]
    out: PathBuf,
}

/// Maximum default number of tasks in an array: Slurm's default `MaxArraySize` is 1001, which counts index 0.
const LONGEST_ARRAY: usize = 1000;
/// Seconds between the signal and the end of a task, and how many of them the program may use.
const LEAD_S: u64 = 120;
const GRACE_S: u64 = 90;
/// Folder for the output of tasks.
const LOGS: &str = "slurm-logs";

/// Runs the subcommand.
///
/// # Errors
/// Studies that cannot be planned, or a script that cannot be written.
pub fn run(args: &SlurmArgs) -> Result<()> {
    if args.cpus == 0 || args.tasks == Some(0) || args.at_a_time == Some(0) {
        bail!(UsageError("--cpus, --tasks and --at-a-time must be at least 1".to_owned()));
    }
    let (text, valid_text) = args.texts.paths();
    let Staged { stages, missing, broken, .. } =
        staged(&args.studies, args.preset.get(), text, valid_text)?;
    fail_if_broken(broken)?;
    let tasks = args.tasks.unwrap_or_else(|| tasks_of(&stages));
    if tasks > MOST_SHARDS {
        bail!(UsageError(format!("--tasks must be at most {MOST_SHARDS} ({tasks} found)")));
    }
    let dealt: Vec<Stage> = (0..stages.count()).map(|at| stages.stage(at, tasks)).collect();
    if dealt.iter().all(|stage| stage.left.iter().all(|&left| left == 0)) {
        bail!("nothing is left to measure");
    }
    let script = script(args, &dealt, tasks)?;
    write_whole(&args.out, script.as_bytes())
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    if !is_quiet() {
        tell(args, &dealt, tasks);
    }
    fail_if_missing(&missing)
}

/// Number of configurations in the largest stage, or the longest array.
fn tasks_of(stages: &Stages) -> usize {
    let of_stage = |at| stages.stage(at, 1).parts.len();
    (0..stages.count()).map(of_stage).max().unwrap_or(1).clamp(1, LONGEST_ARRAY)
}

fn tell(args: &SlurmArgs, dealt: &[Stage], tasks: usize) {
    say!(
        "{}: {} in {}, {tasks} tasks",
        args.out.display(),
        plural(dealt.iter().map(|stage| stage.parts.len()).sum(), "configuration"),
        plural(dealt.len(), "stage"),
    );
    say!("check the script, then run: bash {} submit", args.out.display());
}

fn script(args: &SlurmArgs, dealt: &[Stage], tasks: usize) -> Result<String> {
    let mut flags = format!("--preset {}", args.preset.get());
    if !args.studies.is_empty() {
        write!(flags, " --only {}", args.studies.join(" "))?;
    }
    for (flag, path) in [("--text", &args.texts.text), ("--valid-text", &args.texts.valid_text)] {
        if let Some(path) = path {
            write!(flags, " {flag} {}", quoted(path))?;
        }
    }
    let mut options = String::new();
    for (option, value) in [
        ("time", &args.time),
        ("partition", &args.partition),
        ("gpus", &args.gpus),
        ("mem", &args.mem),
    ] {
        if let Some(value) = value {
            writeln!(options, "#SBATCH --{option}={value}")?;
        }
    }
    let program = program().context("cannot find this program")?;
    let words = [
        ("@FILE@", args.out.display().to_string()),
        ("@STAGES@", plural(dealt.len(), "array")),
        ("@CPUS@", args.cpus.to_string()),
        ("@OPTIONS@", options),
        ("@LEAD@", LEAD_S.to_string()),
        ("@GRACE@", GRACE_S.to_string()),
        ("@PROGRAM@", quoted(&program)),
        ("@SUBMIT@", submits(args, dealt)?),
        ("@FLAGS@", flags),
        ("@DEVICE@", args.gpus.as_ref().map_or("", |_| " --device cuda").to_owned()),
        ("@TASKS@", tasks.to_string()),
        ("@SIZE@", args.preset.get().flag()),
        ("@LOGS@", LOGS.to_owned()),
    ];
    let filled = |text: String, (name, value): &(&str, String)| text.replace(name, value);
    Ok(words.iter().fold(include_str!("job.sh").to_owned(), filled))
}

/// Script lines that submit one array per stage, each after the one before has ended with any result, and then the
/// merge.
fn submits(args: &SlurmArgs, dealt: &[Stage]) -> Result<String> {
    let mut lines = String::new();
    let mut after = "";
    for (at, stage) in dealt.iter().enumerate() {
        let left = stage.left.iter().enumerate().filter(|(_, left)| **left > 0);
        let tasks: Vec<usize> = left.map(|(part, _)| part + 1).collect();
        if tasks.is_empty() {
            continue;
        }
        let limit = args.at_a_time.map_or_else(String::new, |limit| format!("%{limit}"));
        writeln!(
            lines,
            "    job=$(sbatch --parsable --array={}{limit}{after} \"$0\" {})",
            ranges(&tasks),
            at + 1
        )?;
        after = " --dependency=afterany:\"${job%%;*}\"";
    }
    write!(lines, "    sbatch --cpus-per-task=1 --output={LOGS}/%x-%j.out{after} \"$0\" merge")?;
    Ok(lines)
}

/// Formats numbers for Slurm: `1-4,7`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let written = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(written).collect::<Vec<_>>().join(",")
}

/// Quotes a path for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_as_slurm_has_them() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
    }
}
