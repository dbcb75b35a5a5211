//! `--processes`: several processes that train one model, on this machine or on several.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rank_study::collective::{Alone, Collective, CollectiveError, Meeting, Tcp};
use rank_study::lm::LmError;
use rank_study::numerics::instructions_there;
use rank_study::run::RunError;
use rank_study::system::disk::make_folders;

use super::device::DeviceName;
use super::error_line::error_line;

/// How a process that this program started knows so: the number of the process that did, and what all of them share.
const LAUNCH: &str = "RANK_STUDY_LAUNCH";
/// How long those that were started here may take to end.
const END: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);
/// More than train one model anywhere; each is a whole process of its own.
pub const MOST_PROCESSES: usize = 4096;
/// The most seconds of `--patience`: a year.
const MOST_PATIENCE: u64 = 31_536_000;

/// The flags by which several processes train one model.
#[derive(Args, Debug)]
pub struct ProcessesFlags {
    /// Train with this many processes [default: 1, or srun's number]
    #[arg(long, value_name = "N")]
    processes: Option<usize>,
    /// Be this process, from 0, and start no other [default: srun's]
    #[arg(long, value_name = "P", requires = "processes")]
    process: Option<usize>,
    /// Let other processes reach this machine by this address
    #[arg(long, value_name = "HOST")]
    address: Option<String>,
    /// Wait this many seconds for other processes
    #[arg(long, value_name = "S", default_value_t = 600)]
    patience: u64,
}

/// Which of how many processes this is.
struct Place {
    rank: usize,
    world: usize,
    launch: String,
    on_this_machine: bool,
}

/// What other processes say of the end, so that it need not be said here again.
#[derive(Debug, thiserror::Error)]
#[error("reported by another process")]
pub struct ToldElsewhere;

/// An error of a training with the flag of its folder, where it is about files.
fn of_folder(error: RunError) -> anyhow::Error {
    match error {
        RunError::Model(LmError::NoDevice { .. }) => error.into(),
        error => anyhow::Error::new(error).context("--out"),
    }
}

impl ProcessesFlags {
    /// Whether this process, and not another, tells the user how the training goes.
    pub fn tells(&self) -> Result<bool> {
        Ok(self.place()?.is_none_or(|place| place.rank == 0))
    }

    /// Whether this process was started by another of the training's.
    pub fn was_started_by_another() -> bool {
        std::env::var_os(LAUNCH).is_some()
    }

    /// The threads of each process where all are on this machine and share its cores.
    pub fn threads(&self) -> Result<Option<usize>> {
        let of = |place: Place| (rayon::current_num_threads() / place.world).max(1);
        Ok(self.place()?.filter(|place| place.on_this_machine).map(of))
    }

    /// Finds the other processes, which it starts where that is asked for, and has `work` done with them; then tells
    /// them how it ended. `folder` is what all see.
    ///
    /// # Errors
    /// Those of `work`; processes that do not come.
    pub fn run<T>(
        &self,
        folder: &Path,
        device: DeviceName,
        work: impl FnOnce(&dyn Collective) -> Result<T, RunError>,
    ) -> Result<T> {
        let Some(place) = self.place()? else {
            return work(&Alone).map_err(of_folder);
        };
        make_folders(folder).with_context(|| format!("--out {}", folder.display()))?;
        let starts = place.on_this_machine && place.rank == 0;
        let others = Others::start(if starts { place.world } else { 1 }, &place.launch, device)?;
        let ranks = self.meet(&place, folder, &others)?;
        let result = work(&ranks);
        match &result {
            Ok(_) => ranks.leave(None),
            Err(error) => ranks.leave(Some(&error_line(error))),
        }
        let process_0_is_gone = matches!(
            result,
            Err(RunError::Model(LmError::Collective(CollectiveError::Gone { rank: 0 })))
        );
        match result {
            // Process 0 knows by now why this one ends, or ends for the same reason.
            Err(_) if Self::was_started_by_another() && !process_0_is_gone => {
                Err(ToldElsewhere.into())
            }
            result => result.map_err(of_folder),
        }
    }

    fn meet(&self, place: &Place, folder: &Path, others: &Others) -> Result<Tcp> {
        let (there, held) = instructions_there();
        let instructions = held.or(there.first().copied()).unwrap_or_default();
        let kind = format!("rank-study {} with {instructions}", env!("CARGO_PKG_VERSION"));
        let starter = starter();
        let meanwhile = || match starter {
            Some(starter) if !is_child_of(starter) => {
                Err("the process that started this one is gone".to_owned())
            }
            _ => others.are_there(),
        };
        let meeting = Meeting {
            rank: place.rank,
            world: place.world,
            folder,
            launch: &place.launch,
            on_this_machine: place.on_this_machine,
            address: self.address.as_deref(),
            kind: &kind,
            patience: Duration::from_secs(self.patience.clamp(1, MOST_PATIENCE)),
            meanwhile: &meanwhile,
        };
        meeting.hold().map_err(|error| match error {
            CollectiveError::NotCome { .. } | CollectiveError::NoMeeting { .. } => {
                anyhow::Error::from(error).context("--patience")
            }
            // Whoever started this one says it, too.
            CollectiveError::Refused(_) if starter.is_some() => ToldElsewhere.into(),
            error => error.into(),
        })
    }

    /// As the flags say, or else srun; none where one process trains alone.
    fn place(&self) -> Result<Option<Place>> {
        let variable = |name: &str| std::env::var(name).ok();
        let number = |name: &str| variable(name)?.parse::<usize>().ok();
        // Of the step, not of the job: a batch script has SLURM_NTASKS too, and runs once.
        let of_step = number("SLURM_STEP_NUM_TASKS").zip(number("SLURM_PROCID"));
        let launch = || {
            let names = ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"];
            names.map(|name| variable(name).unwrap_or_default()).join(".")
        };
        let place = match (self.processes, self.process, of_step) {
            (Some(0), ..) => bail!("--processes must be at least 1"),
            (Some(world), ..) if world > MOST_PROCESSES => {
                bail!("--processes must be at most {MOST_PROCESSES} ({world} found)")
            }
            (Some(world), Some(rank), _) => {
                if rank >= world {
                    bail!("--process must be 0 to {} ({rank} found)", world - 1);
                }
                let started = variable(LAUNCH);
                let on_this_machine = started.is_some();
                Place { rank, world, launch: started.unwrap_or_default(), on_this_machine }
            }
            (asked, None, Some((world, rank))) if world > 1 && asked.is_none_or(|n| n == world) => {
                Place { rank, world, launch: launch(), on_this_machine: false }
            }
            (Some(world), None, _) => {
                let launch = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
                Place { rank: 0, world, launch, on_this_machine: true }
            }
            (None, ..) => return Ok(None),
        };
        Ok((place.world > 1).then_some(place))
    }
}

/// The number of the process that started this one to train with it.
fn starter() -> Option<u32> {
    std::env::var(LAUNCH).ok()?.split('-').next()?.parse().ok()
}

#[cfg(unix)]
fn is_child_of(starter: u32) -> bool {
    std::os::unix::process::parent_id() == starter
}

/// Not known: the process waits as long as it is told to.
#[cfg(not(unix))]
fn is_child_of(_starter: u32) -> bool {
    true
}

/// The processes that this one started.
struct Others(RefCell<Vec<(usize, Child)>>);

impl Others {
    /// Starts numbers 1 to `world` − 1 with this process's own command.
    fn start(world: usize, launch: &str, device: DeviceName) -> Result<Self> {
        let others = Self(RefCell::default());
        if world == 1 {
            return Ok(others);
        }
        let program = std::env::current_exe().context("--processes: cannot find this program")?;
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        for rank in 1..world {
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1)).arg(format!("--process={rank}"));
            command.env(LAUNCH, launch).stdin(std::process::Stdio::null());
            if let DeviceName::Cuda = device {
                // Each has a GPU of its own, which it sees as its first.
                let own = match &visible {
                    None => Some(rank.to_string()),
                    Some(all) => all.split(',').nth(rank).map(str::to_owned),
                };
                let own = own.with_context(|| {
                    format!("--processes {world} needs as many GPUs in CUDA_VISIBLE_DEVICES; give each process \
                         its own")
                })?;
                command.env("CUDA_VISIBLE_DEVICES", own);
            }
            let child = command.spawn().with_context(|| format!("cannot start process {rank}"))?;
            others.0.borrow_mut().push((rank, child));
        }
        Ok(others)
    }

    /// An error where one has ended.
    fn are_there(&self) -> Result<(), String> {
        for (rank, child) in self.0.borrow_mut().iter_mut() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("process {rank} ended before all had started ({status})"));
            }
        }
        Ok(())
    }
}

impl Drop for Others {
    /// Waits until they have ended, and has those end that do not: nothing runs on once the command is done.
    fn drop(&mut self) {
        let until = Instant::now() + END;
        for (_, child) in self.0.get_mut() {
            while matches!(child.try_wait(), Ok(None)) {
                if Instant::now() >= until {
                    // It may have ended in between.
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}
