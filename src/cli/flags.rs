//! Flags that several commands share. Each is defined once, so that its name, meaning and wording are the same.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::Builder;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rayon::ThreadPool;

use super::errors::{FlagContext as _, UsageError};
use crate::lm::{Device, Dtype, Matrices, Split, Texts};
use crate::numerics::share_one_heap;
use crate::run::TrainedRun;
use crate::study::Preset;
use crate::system::available_bytes;

/// `--json`.
#[derive(Args, Debug)]
pub struct JsonFlag {
    /// Print the result as JSON
    #[arg(long = "json")]
    pub is_set: bool,
}

/// `--preset`, of commands that read what was measured.
#[derive(Args, Debug)]
pub struct PresetFlag {
    /// Size of the studies: quick, smoke or paper
    #[arg(long, value_name = "NAME", default_value_t)]
    preset: Preset,
}

impl PresetFlag {
    /// The size of the studies.
    pub fn get(&self) -> Preset {
        self.preset
    }
}

/// The text that models are trained on.
#[derive(Args, Debug)]
pub struct TextFlags {
    /// Read this text: a .txt, .bin, .zst or folder of them [default: synthetic corpus]
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Evaluate on this text instead of a part of --text
    #[arg(long, value_name = "FILE", requires = "text")]
    pub valid_text: Option<PathBuf>,
}

impl TextFlags {
    /// Returns the paths of the text and of the text to evaluate on.
    pub fn paths(&self) -> (Option<&Path>, Option<&Path>) {
        (self.text.as_deref(), self.valid_text.as_deref())
    }
}

/// `--device`: all CPU cores, or the first NVIDIA GPU.
#[derive(Args, Debug)]
pub struct DeviceFlag {
    /// Compute on this device; cuda needs a build with that feature
    #[arg(long, default_value = "cpu", value_parser = devices())]
    pub device: Device,
}

fn devices() -> impl TypedValueParser<Value = Device> {
    let of = |name: String| if name == "cuda" { Device::Cuda } else { Device::Cpu };
    PossibleValuesParser::new(["cpu", "cuda"]).map(of)
}

/// Accepts the number formats of a model's matrix products.
pub(crate) fn dtypes() -> impl TypedValueParser<Value = Dtype> {
    let of = |name: String| if name == "bf16" { Dtype::Bfloat16 } else { Dtype::Float32 };
    PossibleValuesParser::new(["f32", "bf16"]).map(of)
}

/// Largest accepted number of threads, above the cores of any machine: a system that runs out of threads would end the
/// process.
const MOST: usize = 4096;

/// Below this much available memory in bytes, there may be no space for threads, which take 2 MiB each.
const LITTLE: u64 = 1 << 30;
/// Memory in bytes that a thread takes: its stack of 2 MiB, and the stack of its signals.
const OF_THREAD: u64 = (2 << 20) + (64 << 10);
/// Memory in bytes that starting them all takes besides.
const OF_START: u64 = 8 << 20;
const NO_THREADS: &str =
    "cannot start threads; allow the process more memory or processes, or set RAYON_NUM_THREADS=1";

/// `--threads`, of commands with long computations.
#[derive(Args, Debug)]
pub struct ThreadsFlag {
    /// Compute on this many threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl ThreadsFlag {
    /// Number of threads: --threads, or else `default`, or else one per core.
    pub fn count(&self, default: Option<usize>) -> Result<usize> {
        let cores = rayon::current_num_threads();
        match self.threads.or(default) {
            Some(0) => bail!(UsageError("--threads must be at least 1".to_owned())),
            Some(threads) if threads > MOST => bail!(UsageError(format!(
                "--threads must be at most {MOST} ({threads} found); one per core is {cores}"
            ))),
            Some(threads) => Ok(threads),
            None => Ok(cores),
        }
    }

    /// A pool of as many threads.
    pub fn pool(&self, default: Option<usize>) -> Result<ThreadPool> {
        let threads = self.count(default)?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.flag(format!("--threads {threads}"))
    }
}

/// Starts one thread per core, for libraries and for commands without --threads.
///
/// # Errors
/// The system cannot start the threads, as under a small `ulimit -v` or `ulimit -u`.
pub fn start_threads() -> Result<()> {
    let spare_of = |threads: usize| 2 * threads + 2;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let threads = asked.filter(|threads| (1..=MOST).contains(threads)).unwrap_or(cores);
    // A thread that has its own stack but no room for the stack of its signals ends the process.
    let needed = (threads + spare_of(threads)) as u64 * OF_THREAD + OF_START;
    let free = available_bytes().unwrap_or(u64::MAX);
    if free < needed {
        bail!(NO_THREADS);
    }
    if free < LITTLE {
        share_one_heap();
    }
    rayon::ThreadPoolBuilder::new().build_global().context(NO_THREADS)?;
    if free < LITTLE {
        // Libraries start threads of their own, and panic if that fails. So this tests whether more threads can start.
        std::thread::scope(|scope| -> std::io::Result<()> {
            let spare = spare_of(rayon::current_num_threads());
            (0..spare).try_for_each(|_| Builder::new().spawn_scoped(scope, || ()).map(drop))
        })
        .context(NO_THREADS)?;
    }
    Ok(())
}

/// Flags of a trained run and the text that it reads.
#[derive(Args, Debug)]
pub struct TrainedArgs {
    /// Folder of a trained run
    pub run: PathBuf,
    /// Read this text: a .txt, .bin, .zst or folder of them
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Use only this split of the text
    #[arg(long, value_name = "NAME", default_value = SPLITS[0], value_parser = SPLITS)]
    split: String,
    /// Use the weights kept at this step [default: the last]
    #[arg(long, value_name = "N")]
    step: Option<usize>,
    #[command(flatten)]
    bits: BitsFlag,
}

/// Rounding of a run's weights after training.
#[derive(Args, Debug)]
pub struct BitsFlag {
    /// Round the matrices of blocks to 2–8 bits first [default: not]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u8).range(2..=8))]
    bits: Option<u8>,
}

impl BitsFlag {
    /// The number of bits.
    pub fn bits(&self) -> Option<usize> {
        self.bits.map(usize::from)
    }
}

/// The whole text, and the names of its splits.
pub const SPLITS: [&str; 6] = ["all", "train", "valid", "test", "upstream", "upstream-valid"];

impl TrainedArgs {
    /// Reads the model and the text.
    pub fn read(&self) -> Result<(TrainedRun, Texts)> {
        if !self.run.join("manifest.toml").is_file() {
            bail!("no manifest.toml in {}/; name the folder of a trained run", self.run.display());
        }
        let mut run = TrainedRun::read(&self.run, self.step)?;
        if let Some(bits) = self.bits.bits() {
            run = run.rounded(bits, Matrices::All).flag("--bits")?;
        }
        Ok((run, Texts::find(&self.text, None).with_context(|| self.flag())?))
    }

    /// The split of the text, or `None` for the whole text.
    pub fn split(&self) -> Option<Split> {
        Split::ALL.into_iter().find(|split| split.name() == self.split)
    }

    /// The flag --text with its value, for errors.
    pub fn flag(&self) -> String {
        format!("--text {}", self.text.display())
    }
}
