//! The flags that name a target attention matrix, shared by every subcommand that takes one.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use rank_study::pattern::{Family, Parameters, Target, TargetFile, TargetRead, Visibility};
use rank_study::table::significant;

use super::streams::tell;

/// A target by its family, or from a file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub struct FamilyFlags {
    /// The family: uniform-band, decay-band, dirichlet-band, lognormal-band, previous-token,
    /// landmark, random-sparse, clustered, induction, prefix, mixture, permuted or file
    #[arg(long, value_name = "NAME", required_unless_present = "target")]
    family: Option<String>,
    /// Lags of a band
    #[arg(long, value_name = "W")]
    window: Option<usize>,
    /// Lag over which decay-band falls by e [default: a quarter of the window]
    #[arg(long, allow_negative_numbers = true)]
    tau: Option<f64>,
    /// Concentration of dirichlet-band [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    alpha: Option<f64>,
    /// Spread of lognormal-band, in nats [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    sigma: Option<f64>,
    /// Lag of previous-token, or columns in a row of random-sparse
    #[arg(long)]
    k: Option<usize>,
    /// Columns that the rows of landmark share
    #[arg(long)]
    m: Option<usize>,
    /// Clusters that clustered draws its tokens into
    #[arg(long)]
    c: Option<usize>,
    /// Different tokens that induction draws from
    #[arg(long, value_name = "TOKENS")]
    vocabulary: Option<usize>,
    /// Weight of a mixture's local part [default: 0.5]
    #[arg(long, allow_negative_numbers = true)]
    lambda: Option<f64>,
    /// Family of a mixture's local part
    #[arg(long, value_name = "NAME")]
    local: Option<String>,
    /// Family of a mixture's global part
    #[arg(long, value_name = "NAME")]
    global: Option<String>,
    /// Family that permuted shuffles
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// File of the family file, where it is a part of a mixture or permuted
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// Rows, and columns
    #[arg(long, required_unless_present = "target")]
    n: Option<usize>,
    /// Seed of the random families [default: 0]
    #[arg(long)]
    seed: Option<u64>,
    /// Pairs that may have weight: causal or bidirectional
    #[arg(long, default_value = "causal", value_name = "NAME")]
    mask: String,
    /// A matrix from a .npy, .csv, .parquet or .safetensors file, in place of a family
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["family", "window", "tau", "alpha", "sigma", "k", "m", "c",
            "vocabulary", "lambda", "local", "global", "of", "path", "n", "seed"]
    )]
    target: Option<PathBuf>,
    /// Which matrix of a --target that holds a stack of shape (heads, n, n), from 0
    #[arg(long, value_name = "H", requires = "target")]
    head: Option<usize>,
    /// --target holds logits: its target is the softmax of each row over what it sees
    #[arg(long, requires = "target")]
    softmax: bool,
}

impl FamilyFlags {
    /// The target that the flags name, built or read.
    ///
    /// # Errors
    /// Whatever is wrong with the family, its parameters or the file, naming the flag.
    pub fn target(&self) -> Result<Target> {
        let visibility = self.visibility()?;
        if let Some(path) = &self.target {
            let file = TargetFile { path: path.clone(), head: self.head, logits: self.softmax };
            let TargetRead { target, rescaled } = file.read(visibility).context("--target")?;
            if let Some(furthest) = rescaled {
                tell(&format!(
                    "note: {}: rows sum to 1 within {}, as half precision rounds them; each is divided by its sum",
                    path.display(),
                    significant(furthest, 2)
                ));
            }
            return Ok(target);
        }
        // The command line asks for one where there is no --target.
        let n = self.n.context("--n is missing; give the number of rows")?;
        self.family()?.build(n, self.seed(), visibility).context("--family")
    }

    /// A short text for what the flags name: the family with its parameters, or the file.
    ///
    /// # Errors
    /// As [`FamilyFlags::target`].
    pub fn label(&self) -> Result<String> {
        match &self.target {
            Some(path) => {
                let head = self.head.map_or_else(String::new, |head| format!(", head {head}"));
                let softmax = if self.softmax { ", softmax" } else { "" };
                Ok(format!("{}{head}{softmax}", path.display()))
            }
            None => Ok(self.family()?.label()),
        }
    }

    /// The seed, or 0.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The pairs that the target, and what is fitted to it, may have weight on.
    ///
    /// # Errors
    /// A name that is neither `causal` nor `bidirectional`.
    pub fn visibility(&self) -> Result<Visibility> {
        self.mask.parse().context("--mask")
    }

    fn family(&self) -> Result<Family> {
        let name = self.family.as_deref().context("--family is missing; name one")?;
        Family::from_parameters(name, &self.parameters()).context("--family")
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            window: self.window,
            tau: self.tau,
            alpha: self.alpha,
            sigma: self.sigma,
            k: self.k,
            m: self.m,
            c: self.c,
            vocabulary: self.vocabulary,
            lambda: self.lambda,
            local: self.local.clone(),
            global: self.global.clone(),
            of: self.of.clone(),
            path: self.path.clone(),
        }
    }
}
