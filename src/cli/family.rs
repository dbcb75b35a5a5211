//! Flags that select a target attention matrix, shared by all subcommands that take one.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Error, Result};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};

use super::errors::{FlagContext as _, UsageError, with_flag};
use super::streams::tell;
use crate::table::significant;
use crate::targets::{
    Family, Parameters, StackIndex, Target, TargetError, TargetFile, TargetRead, Visibility,
};

/// Flags of a target: a family with its parameters, or a file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target", group = ArgGroup::new("matrix").required(true))]
pub struct FamilyFlags {
    /// Build a matrix of this family
    #[arg(long, value_name = "NAME", requires = "n", group = "matrix", value_parser = PossibleValuesParser::new(Family::NAMES))]
    family: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
    /// Number of rows and columns
    #[arg(long)]
    n: Option<NonZeroUsize>,
    /// Seed of the random families and of the search [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Allow these pairs: causal or bidirectional
    #[arg(long, default_value = "causal", value_name = "NAME")]
    mask: String,
    /// Read the matrix from this file
    #[arg(
        long,
        value_name = "FILE",
        group = "matrix",
        conflicts_with_all = ["Parameters", "n", "seed"]
    )]
    target: Option<PathBuf>,
    /// Use only this head, from 0 [default: the only one]
    #[arg(long, value_name = "H", requires = "target")]
    head: Option<usize>,
    /// Use only this layer, from 0
    #[arg(long, value_name = "L", requires = "target")]
    layer: Option<usize>,
    /// Use only this sequence of a batch, from 0
    #[arg(long, value_name = "S", requires = "target")]
    sequence: Option<usize>,
    /// Treat --target as logits: apply a softmax to each row
    #[arg(long, requires = "target")]
    softmax: bool,
    /// Leave out tokens at either end whose row or column is zero
    #[arg(long, requires = "target")]
    trim_padding: bool,
}

impl FamilyFlags {
    /// Builds or reads the target.
    ///
    /// # Errors
    /// An invalid family, parameter or file; the error names the flag.
    pub fn target(&self) -> Result<Target> {
        let visibility = self.visibility()?;
        if let Some(path) = &self.target {
            let file = TargetFile {
                path: path.clone(),
                index: StackIndex { layer: self.layer, sequence: self.sequence, head: self.head },
                logits: self.softmax,
                trim_padding: self.trim_padding,
            };
            let TargetRead { target, rescaled, left_out } =
                file.read(visibility).context("--target")?;
            if !left_out.is_empty() {
                tell(&format!("note: {}: left out {}", path.display(), left_out.join(" and ")));
            }
            if let Some(furthest) = rescaled {
                tell(&format!(
                    "note: {}: rows sum to 1 within {} (half precision), so each row is divided by its sum",
                    path.display(),
                    significant(furthest, 2)
                ));
            }
            return Ok(target);
        }
        // Clap requires --n with --family.
        let n = self
            .n
            .ok_or_else(|| UsageError("--n is missing; give the number of rows".to_owned()))?;
        if let Some(window) = self.parameters.window.filter(|window| *window >= n.get()) {
            tell(&format!(
                "note: --window {window} covers all {n} tokens, so no row is cut off by it"
            ));
        }
        self.family()?.build(n.get(), self.seed(), visibility).map_err(of_family)
    }

    /// Short description: the family with its parameters, or the file.
    ///
    /// # Errors
    /// As [`FamilyFlags::target`].
    pub fn label(&self) -> Result<String> {
        match &self.target {
            Some(path) => {
                let parts =
                    [("layer", self.layer), ("sequence", self.sequence), ("head", self.head)];
                let index: String = parts
                    .iter()
                    .filter_map(|(name, at)| Some(format!(", {name} {}", (*at)?)))
                    .collect();
                let softmax = if self.softmax { ", softmax" } else { "" };
                Ok(format!("{}{index}{softmax}", path.display()))
            }
            None => Ok(self.family()?.label()),
        }
    }

    /// The value of --seed, or 0.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The pairs on which the target and its fits may have weight.
    ///
    /// # Errors
    /// The name is neither `causal` nor `bidirectional`.
    pub fn visibility(&self) -> Result<Visibility> {
        self.mask.parse().flag("--mask")
    }

    fn family(&self) -> Result<Family> {
        let name = self.family.as_deref().ok_or_else(|| {
            UsageError("--family is missing; name one, or give --target FILE".to_owned())
        })?;
        Family::from_parameters(name, &self.parameters).map_err(of_family)
    }
}

/// Rewrites an error of a family so that it names the flags.
fn of_family(error: TargetError) -> Error {
    match &error {
        TargetError::Parameter { family, why } => match why.strip_prefix("needs ") {
            Some(parameter) => UsageError(format!("--family {family} needs --{parameter}")).into(),
            None => UsageError(format!("--family {family}: {why}")).into(),
        },
        _ => with_flag(error.into(), "--family"),
    }
}
