//! Workers that `mpirun` or `srun` starts to train one model.

#[cfg(feature = "mpi")]
use std::time::Duration;

#[cfg(feature = "mpi")]
use anyhow::Context;
use anyhow::Result;
#[cfg(not(feature = "mpi"))]
use anyhow::bail;
use rank_study::lm::{Alone, Workers};

/// Most errors are those of every worker. The others give the first time to say it, and to end them.
#[cfg(feature = "mpi")]
const AFTER_THE_FIRST: Duration = Duration::from_millis(300);

/// Where Open MPI, MPICH and Slurm say how many workers they started.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Runs `work` as the worker that this process is. An error of one worker ends all of them.
///
/// # Errors
/// Those of `work`; workers that were launched, but cannot reach each other.
pub fn run(work: impl FnOnce(&dyn Workers) -> Result<()>) -> Result<()> {
    match SIZES.iter().find_map(|name| number(name)) {
        None | Some(0 | 1) => work(&Alone),
        Some(launched) => among(launched, work),
    }
}

/// The threads of each worker, where those of one machine share its cores.
pub fn threads() -> Option<usize> {
    let here = number("OMPI_COMM_WORLD_LOCAL_SIZE").filter(|&here| here > 1)?;
    Some((rayon::current_num_threads() / here).max(1))
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

#[cfg(feature = "mpi")]
fn among(launched: usize, work: impl FnOnce(&dyn Workers) -> Result<()>) -> Result<()> {
    let (workers, universe) = rank_study::lm::Mpi::start().context("MPI was started before")?;
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
            let line = super::error_line::error_line(error.as_ref());
            super::streams::tell(&format!("error: worker {}: {line}", workers.rank()));
            workers.abort()
        }
        // The first says how it ended.
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
