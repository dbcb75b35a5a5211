//! `rank-study target`: builds a target attention matrix, or inspects one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;

use super::errors::FlagContext as _;
use super::family::FamilyFlags;
use super::flags::JsonFlag;
use super::streams::{inform, print};
use crate::system::{check_disk, check_memory};
use crate::targets::{Spectrum, Statistics};

/// Number of singular values in the text output; `--json` has all of them.
const SINGULAR_VALUES_SHOWN: usize = 8;

/// Build or inspect a target attention matrix
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study target --family dirichlet-band --window 32 --n 256 --stats
  rank-study target --family mixture --local dirichlet-band --global landmark --window 24 --m 8 \\
      --n 160 --seed 3 --out mixture.npy
  rank-study target --target mixture.npy --stats --json

Families and file formats: docs/fit.md")]
pub struct TargetArgs {
    /// Write to this file: .npy, .csv, .parquet or .safetensors
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print entropy, density, singular values and effective rank
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    json: JsonFlag,
    // Last, because its help heading applies to all flags after it.
    #[command(flatten)]
    family: FamilyFlags,
}

/// Output of the command; parts that were not requested are left out.
#[derive(Serialize)]
struct Summary {
    target: String,
    n: usize,
    visibility: String,
    nonzeros: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Statistics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spectrum: Option<Spectrum>,
}

/// Runs the subcommand.
///
/// # Errors
/// An invalid family, parameter or file; standard output or a file that cannot be written.
pub fn run(args: &TargetArgs) -> Result<()> {
    let target = args.family.target()?;
    if let Some(path) = &args.out {
        check_room(target.n(), path)?;
    }
    let mut summary = Summary {
        target: args.family.label()?,
        n: target.n(),
        visibility: target.visibility().to_string(),
        nonzeros: target.nonzeros(),
        statistics: None,
        spectrum: None,
    };
    if args.stats {
        summary.statistics = Some(Statistics::of(&target));
        if target.n() <= Spectrum::LARGEST_N {
            summary.spectrum = Some(Spectrum::of(&target).flag("--stats")?);
        } else {
            inform(&format!("no singular values, since n is above {}", Spectrum::LARGEST_N));
        }
    }
    let text = if args.json.is_set {
        serde_json::to_string(&summary).flag("--json")? + "\n"
    } else {
        summary.text()
    };
    if let Some(path) = &args.out {
        target.write(path).context("--out")?;
        inform(&format!("wrote {}", path.display()));
    }
    print(format_args!("{text}"));
    Ok(())
}

/// Checks that the dense matrix fits in memory, and on the disk if the format stores every number in full.
fn check_room(n: usize, path: &Path) -> Result<()> {
    let needed = (n as f64).powi(2) * size_of::<f64>() as f64;
    let why =
        |room: &dyn std::fmt::Display| anyhow!("--out: {n} × {n} numbers need {room}; lower --n");
    check_memory(needed).map_err(|room| why(&room))?;
    let is_packed = path.extension().is_some_and(|ending| ending == "csv" || ending == "parquet");
    let folder = path.parent().unwrap_or(Path::new(""));
    check_disk(folder, if is_packed { 0.0 } else { needed }).map_err(|room| why(&room))
}

/// Formats the first of `values`, and their number if some are left out.
fn shown(values: &[f64]) -> String {
    let most = SINGULAR_VALUES_SHOWN;
    let mut shown: Vec<String> = values.iter().take(most).map(|x| format!("{x:.4}")).collect();
    if values.len() > most {
        shown.push(format!("… ({} in total)", values.len()));
    }
    shown.join(" ")
}

impl Summary {
    fn text(&self) -> String {
        let mut lines = vec![
            ("target", self.target.clone()),
            ("n", self.n.to_string()),
            ("mask", self.visibility.clone()),
            ("nonzeros", self.nonzeros.to_string()),
        ];
        if let Some(found) = &self.statistics {
            lines.extend([
                ("density", format!("{:.6}", found.density)),
                ("mean row entropy (nats)", format!("{:.6}", found.mean_row_entropy_nats)),
                ("mean relative distance", format!("{:.4}", found.mean_lag)),
                ("largest relative distance", found.largest_lag.to_string()),
                ("degrees of freedom", format!("{:.4}", found.degrees_of_freedom)),
                ("Frobenius norm", format!("{:.4}", found.frobenius_norm)),
            ]);
        }
        if let Some(found) = &self.spectrum {
            lines.extend([
                ("numerical rank", found.numerical_rank.to_string()),
                ("effective rank", format!("{:.4}", found.effective_rank)),
                ("singular values", shown(&found.singular_values)),
            ]);
        }
        lines.into_iter().map(|(name, value)| format!("{name:<27}{value}\n")).collect()
    }
}
