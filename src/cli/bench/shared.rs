//! Common parts of the benchmarks: flags of a language model, medians, peak memory.

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use crate::cli::errors::{FlagContext as _, UsageError};
use crate::cli::flags::{JsonFlag, ThreadsFlag};
use crate::cli::streams::{inform, say};
use crate::cli::train::set_keys;
use crate::lm::{SyntheticCorpus, TrainDefinition};
use crate::table::plural;

/// Flags of the language model that is timed.
#[derive(Args, Debug)]
pub(super) struct ModelArgs {
    /// Attention variant, such as mhsa, ls, local-only or qk-norm
    #[arg(long, default_value = "mhsa", value_name = "NAME")]
    pub variant: String,
    /// Number of layers
    #[arg(long, default_value_t = 6, value_name = "L")]
    pub layers: usize,
    /// Width of the residual stream
    #[arg(long, default_value_t = 192, value_name = "D")]
    pub d_model: usize,
    /// Attention heads per layer
    #[arg(long, default_value_t = 6, value_name = "H")]
    pub heads: usize,
    /// Size of the vocabulary
    #[arg(long, default_value_t = 8192, value_name = "V")]
    pub vocab: usize,
    /// Width of a band or a local head, in tokens
    #[arg(long, default_value_t = 50, value_name = "W")]
    pub window: usize,
    /// Set a key of the definition, such as arm=ls (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

/// Flags of every benchmark.
#[derive(Args, Debug)]
pub(super) struct TimingFlags {
    #[command(flatten)]
    threads: ThreadsFlag,
    /// Time this many repetitions, after a warm-up
    #[arg(long, default_value_t = 20, value_name = "R")]
    pub repeats: usize,
    #[command(flatten)]
    json: JsonFlag,
}

impl TimingFlags {
    /// Runs `work` on the threads, after a line on what is timed.
    pub fn run<T: Send>(&self, what: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        at_least_one("--repeats", self.repeats)?;
        let pool = self.threads.pool(None)?;
        let threads = plural(pool.current_num_threads(), "thread");
        inform(&format!("timing {} {what} on {threads}", self.repeats));
        pool.install(work)
    }

    /// Prints the result: a sentence or, with --json, an object that also has what all benchmarks share. `peak` is the peak
    /// memory of the work in bytes.
    pub fn print(&self, sentence: &str, mut found: Value, peak: Option<u64>) -> Result<()> {
        if !self.json.is_set {
            say!("{sentence}");
            return Ok(());
        }
        found["peak_rss_bytes"] = peak.into();
        found["threads"] = self.threads.count(None)?.into();
        found["repeats"] = self.repeats.into();
        found["version"] = env!("CARGO_PKG_VERSION").into();
        say!("{found}");
        Ok(())
    }
}

/// Smallest vocabulary of the synthetic text: four symbols, one key and one value.
const LEAST_VOCABULARY: usize = 6;

impl ModelArgs {
    /// Adds the flags to a result.
    pub fn describe(&self, mut found: Value) -> Value {
        let model = [
            ("arm", json!(self.variant)),
            ("layers", json!(self.layers)),
            ("d_model", json!(self.d_model)),
            ("heads", json!(self.heads)),
            ("vocab", json!(self.vocab)),
            ("window", json!(self.window)),
        ];
        model.into_iter().for_each(|(name, value)| found[name] = value);
        found
    }

    /// Returns the definition of a model with `context` positions, trained on random tokens.
    pub fn definition(&self, context: usize) -> Result<TrainDefinition> {
        for (flag, found) in
            [("--layers", self.layers), ("--d-model", self.d_model), ("--heads", self.heads)]
        {
            at_least_one(flag, found)?;
        }
        if self.vocab < LEAST_VOCABULARY {
            bail!(UsageError(format!(
                "--vocab must be at least {LEAST_VOCABULARY} ({} found)",
                self.vocab
            )));
        }
        // A corpus of look-ups only has uniform tokens, and needs no table of token probabilities.
        let keys = (self.vocab - 4) / 2;
        let corpus = SyntheticCorpus {
            tokens: context.saturating_add(1).saturating_mul(20),
            alphabet: 2,
            recall: 1.0,
            keys,
            values: self.vocab - 4 - keys,
            ..SyntheticCorpus::default()
        };
        let mut definition = TrainDefinition {
            context,
            layers: self.layers,
            d_model: self.d_model,
            heads: self.heads,
            window: self.window,
            corpus,
            ..TrainDefinition::default()
        };
        definition.set("arm", &self.variant).flag("--variant")?;
        set_keys(&mut definition, &self.sets)?;
        Ok(definition)
    }
}

/// Refuses 0 as the value of a flag.
pub(super) fn at_least_one(flag: &str, found: usize) -> Result<()> {
    if found == 0 {
        bail!(UsageError(format!("{flag} must be at least 1")));
    }
    Ok(())
}

/// Runs `work` `repeats` times and returns the median time in seconds.
pub(super) fn median_seconds(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let time = |_| {
        let started = Instant::now();
        work()?;
        Ok(started.elapsed().as_secs_f64())
    };
    Ok(median((0..repeats).map(time).collect::<Result<_>>()?))
}

pub(super) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    0.5 * (times[(times.len() - 1) / 2] + times[times.len() / 2])
}

/// Formats a peak memory in bytes, as the end of a line.
pub(super) fn held(peak: Option<u64>) -> String {
    peak.map_or_else(String::new, |bytes| {
        format!(", peak memory {:.0} MiB", bytes as f64 / f64::from(1 << 20))
    })
}
