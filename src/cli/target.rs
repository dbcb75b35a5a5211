//! `rank-study target`: builds a target attention matrix, or inspects one.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use rank_study::{Spectrum, Statistics, Target};
use serde::Serialize;

use super::family::FamilyFlags;

/// How many singular values the text shows; `--json` has them all.
const SINGULAR_VALUES_SHOWN: usize = 8;

/// Build a target attention matrix, or inspect one
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  rank-study target --family dirichlet-band --window 32 --n 256 --stats
  rank-study target --family mixture --local dirichlet-band --global landmark --window 24 --m 8 \\
      --n 160 --seed 3 --out mixture.npy
  rank-study target --target mixture.npy --stats --json")]
pub struct TargetArgs {
    /// Write the matrix, dense and in float64, to a .npy, .csv, .parquet or .safetensors file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Entropy, density, bandwidth, degrees of freedom, singular values and effective rank
    #[arg(long)]
    stats: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Nothing on standard error but errors
    #[arg(long)]
    quiet: bool,
    // Last, because its help heading holds for all that follows.
    #[command(flatten)]
    family: FamilyFlags,
}

/// What is printed; what was not asked for is left out.
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
/// A family, parameter or file that is wrong; standard output or the file that cannot be written.
pub fn run(args: &TargetArgs) -> Result<()> {
    let target = args.family.target()?;
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
        summary.spectrum = spectrum(&target, args.quiet)?;
    }
    let text = if args.json {
        serde_json::to_string(&summary).context("--json")? + "\n"
    } else {
        summary.text()
    };
    if let Some(path) = &args.out {
        target.write(path).context("--out")?;
        if !args.quiet {
            eprintln!("wrote {}", path.display());
        }
    }
    io::stdout().write_all(text.as_bytes()).context("standard output")
}

/// The other statistics of a target too large for its spectrum are still worth printing.
fn spectrum(target: &Target, quiet: bool) -> Result<Option<Spectrum>> {
    if target.n() <= Spectrum::LARGEST_N {
        return Spectrum::of(target).map(Some).context("--stats");
    }
    if !quiet {
        let most = Spectrum::LARGEST_N;
        eprintln!("no singular spectrum: n = {} is above {most}", target.n());
    }
    Ok(None)
}

impl Summary {
    fn text(&self) -> String {
        let mut lines = vec![
            ("target", self.target.clone()),
            ("n", self.n.to_string()),
            ("visibility", self.visibility.clone()),
            ("nonzeros", self.nonzeros.to_string()),
        ];
        if let Some(found) = &self.statistics {
            lines.extend([
                ("density", format!("{:.6}", found.density)),
                ("mean row entropy (nats)", format!("{:.6}", found.mean_row_entropy_nats)),
                ("mean lag (tokens)", format!("{:.4}", found.mean_lag)),
                ("largest lag (tokens)", found.largest_lag.to_string()),
                ("degrees of freedom", format!("{:.4}", found.degrees_of_freedom)),
            ]);
        }
        if let Some(found) = &self.spectrum {
            let shown = found.singular_values.iter().take(SINGULAR_VALUES_SHOWN);
            let mut values: Vec<String> = shown.map(|sigma| format!("{sigma:.4}")).collect();
            if found.singular_values.len() > values.len() {
                values.push(format!("… ({} in all)", found.singular_values.len()));
            }
            lines.extend([
                ("numerical rank", found.numerical_rank.to_string()),
                ("effective rank", format!("{:.4}", found.effective_rank)),
                ("singular values", values.join(" ")),
            ]);
        }
        lines.into_iter().map(|(name, value)| format!("{name:<24}{value}\n")).collect()
    }
}
