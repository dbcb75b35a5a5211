//! Flags that several commands share: each is defined once, so its name, meaning and wording are the same.

use std::path::{Path, PathBuf};
use std::thread::Builder;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rank_study::lm::{Device, Dtype, Split, Texts};
use rank_study::run::TrainedRun;
use rank_study::study::Preset;
use rank_study::system::available_bytes;
use rayon::ThreadPool;

use super::usage_error::{FlagContext as _, UsageError};

/// `--json`.
#[derive(Args, Debug)]
pub struct JsonFlag {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl JsonFlag {
    /// Whether the result is printed as JSON.
    pub fn is_set(&self) -> bool {
        self.json
    }
}

/// `--quiet`.
#[derive(Args, Debug)]
pub struct QuietFlag {
    /// Print only results and errors
    #[arg(long)]
    quiet: bool,
}

impl QuietFlag {
    /// Whether only results and errors are printed.
    pub fn is_set(&self) -> bool {
        self.quiet
    }
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
    /// The text, and the text to evaluate on.
    pub fn paths(&self) -> (Option<&Path>, Option<&Path>) {
        (self.text.as_deref(), self.valid_text.as_deref())
    }
}

/// `--device`.
#[derive(Args, Debug)]
pub struct DeviceFlag {
    /// Compute on this device; cuda needs a build with that feature
    #[arg(long, value_enum, default_value_t)]
    device: DeviceName,
}

impl DeviceFlag {
    /// The device.
    pub fn get(&self) -> Device {
        match self.device {
            DeviceName::Cpu => Device::Cpu,
            DeviceName::Cuda => Device::Cuda,
        }
    }
}

/// A processor: all cores, or the first NVIDIA GPU.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DeviceName {
    #[default]
    Cpu,
    Cuda,
}

/// The arithmetic of a model's products, as the command line names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DtypeName {
    F32,
    Bf16,
}

impl From<DtypeName> for Dtype {
    fn from(name: DtypeName) -> Self {
        match name {
            DtypeName::F32 => Self::Float32,
            DtypeName::Bf16 => Self::Bfloat16,
        }
    }
}

/// More than any machine has cores: a system that runs out of threads would end the process.
const MOST: usize = 4096;

/// What of memory is so little that there may be no room for threads, 2 MiB each.
const LITTLE: u64 = 1 << 30;
const NO_THREADS: &str =
    "cannot start threads; allow the process more memory or processes, or set RAYON_NUM_THREADS=1";

/// The flag, alike in every command that computes for long.
#[derive(Args, Debug)]
pub struct ThreadsFlag {
    /// Compute on this many threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl ThreadsFlag {
    /// As many as were asked for, or else `default`, or else one a core.
    pub fn count(&self, default: Option<usize>) -> Result<usize> {
        count(self.threads.or(default))
    }

    /// As many threads as were asked for, or else one a core, and a pool of them.
    pub fn counted_pool(&self) -> Result<(usize, ThreadPool)> {
        pool(self.threads)
    }

    /// A pool of as many as were asked for, or else one a core.
    pub fn pool(&self) -> Result<ThreadPool> {
        self.pool_or(None)
    }

    /// A pool of as many as were asked for, or else `default`, or else one a core.
    pub fn pool_or(&self, default: Option<usize>) -> Result<ThreadPool> {
        Ok(pool(self.threads.or(default))?.1)
    }
}

/// As many threads as asked for, one a core where nothing is, and a pool of them.
fn pool(asked: Option<usize>) -> Result<(usize, ThreadPool)> {
    let threads = count(asked)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok((threads, pool.flag(format!("--threads {threads}"))?))
}

/// Starts the threads that commands without the flag, and libraries, compute on: one a core.
///
/// # Errors
/// A system that has none to give, as under a small `ulimit -v` or `ulimit -u`.
pub fn start_threads() -> Result<()> {
    rayon::ThreadPoolBuilder::new().build_global().context(NO_THREADS)?;
    if available_bytes().is_some_and(|bytes| bytes < LITTLE) {
        // Libraries have threads of their own, and panic where they cannot start them.
        std::thread::scope(|scope| -> std::io::Result<()> {
            let spare = 2 * rayon::current_num_threads() + 2;
            (0..spare).try_for_each(|_| Builder::new().spawn_scoped(scope, || ()).map(drop))
        })
        .context(NO_THREADS)?;
    }
    Ok(())
}

fn count(asked: Option<usize>) -> Result<usize> {
    match asked {
        Some(0) => bail!(UsageError("--threads must be at least 1".to_owned())),
        Some(threads) if threads > MOST => {
            let cores = rayon::current_num_threads();
            bail!(UsageError(format!(
                "--threads must be at most {MOST} ({threads} found); one per core is {cores}"
            )))
        }
        Some(threads) => Ok(threads),
        None => Ok(rayon::current_num_threads()),
    }
}

/// A trained run, and the text that it reads.
#[derive(Args, Debug)]
pub struct TrainedArgs {
    /// Folder of a trained run
    pub run: PathBuf,
    /// Read this text: a .txt, .bin, .zst or folder of them
    #[arg(long, value_name = "FILE")]
    text: PathBuf,
    /// Use only this split of the text
    #[arg(long, value_name = "NAME", default_value = "all")]
    split: Part,
    /// Use the weights kept at this step [default: the last]
    #[arg(long, value_name = "N")]
    step: Option<usize>,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Part {
    All,
    Train,
    Valid,
    Test,
}

impl Part {
    /// The split, or none for the whole text.
    fn split(self) -> Option<Split> {
        match self {
            Self::All => None,
            Self::Train => Some(Split::Train),
            Self::Valid => Some(Split::Valid),
            Self::Test => Some(Split::Test),
        }
    }

    /// As a definition writes it.
    pub fn name(self) -> &'static str {
        self.split().map_or("all", Split::name)
    }
}

impl TrainedArgs {
    /// The model and the text.
    pub fn read(&self) -> Result<(TrainedRun, Texts)> {
        if !self.run.join("manifest.toml").is_file() {
            bail!("no manifest.toml in {}/; name the folder of a trained run", self.run.display());
        }
        let run = TrainedRun::read(&self.run, self.step)?;
        Ok((run, Texts::find(&self.text, None).with_context(|| self.flag())?))
    }

    /// The split of the text, or none for the whole of it.
    pub fn split(&self) -> Option<Split> {
        self.split.split()
    }

    /// The text as it was given, for an error.
    pub fn flag(&self) -> String {
        format!("--text {}", self.text.display())
    }
}
