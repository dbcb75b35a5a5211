//! `--threads`: how many threads a command computes on.

use std::thread::Builder;

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::system::available_bytes;
use rayon::ThreadPool;

use super::usage_error::{FlagContext as _, UsageError};

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
pub fn pool(asked: Option<usize>) -> Result<(usize, ThreadPool)> {
    let threads = count(asked)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok((threads, pool.flag(format!("--threads {threads}"))?))
}

/// Starts the threads that commands without the flag, and libraries, compute on: one a core.
///
/// # Errors
/// A system that has none to give, as under a small `ulimit -v` or `ulimit -u`.
pub fn start() -> Result<()> {
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
