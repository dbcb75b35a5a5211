//! Workers that `mpirun` or `srun` starts to train one model.

#[cfg(feature = "mpi")]
use std::time::Duration;

use crate::lm::{Alone, Workers};

#[cfg(feature = "mpi")]
use anyhow::Context;
use anyhow::Result;
#[cfg(not(feature = "mpi"))]
use anyhow::bail;

/// Most errors occur in every worker. The other workers wait this long, so that the first can report the error and end
/// them.
#[cfg(feature = "mpi")]
const AFTER_THE_FIRST: Duration = Duration::from_millis(300);

/// Environment variables in which Open MPI, MPICH and Slurm give the number of workers.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Runs `work` as the worker that this process is. An error of one worker ends all of them.
///
/// # Errors
/// The errors of `work`; workers that were launched but are not connected.
pub fn run(work: impl FnOnce(&dyn Workers) -> Result<()>) -> Result<()> {
    match SIZES.iter().find_map(|name| number(name)) {
        None | Some(0 | 1) => work(&Alone),
        Some(launched) => among(launched, work),
    }
}

/// Threads per worker, if several workers share the cores of this machine.
pub fn threads() -> Option<usize> {
    let here = number("OMPI_COMM_WORLD_LOCAL_SIZE").filter(|&here| here > 1)?;
    Some((rayon::current_num_threads() / here).max(1))
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(feature = "mpi")]
fn among(launched: usize, work: impl FnOnce(&dyn Workers) -> Result<()>) -> Result<()> {
    let (workers, universe) = crate::lm::Mpi::start().context("MPI was started before")?;
    anyhow::ensure!(
        workers.size() == launched,
        "{launched} workers were launched, but MPI connects {}; with srun, add --mpi=pmix",
        workers.size()
    );
    let result = work(&workers);
    match &result {
        Err(error) if !error.is::<super::stop::Stopped>() => {
            if workers.rank() > 0 {
                std::thread::sleep(AFTER_THE_FIRST);
            }
            let line = super::errors::error_line(error.as_ref());
            super::streams::tell(&format!("error: worker {}: {line}", workers.rank()));
            workers.abort()
        }
        // The first worker reports the result.
        _ if workers.rank() > 0 => {
            drop(universe);
            Ok(())
        }
        _ => {
            drop(universe);
            result
        }
    }
}

#[cfg(not(feature = "mpi"))]
fn among(launched: usize, _work: impl FnOnce(&dyn Workers) -> Result<()>) -> Result<()> {
    bail!(
        "{launched} workers were launched, but this program has no MPI; build it with --features mpi"
    )
}
