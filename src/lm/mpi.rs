//! Workers over MPI, started by `mpirun` or `srun`.

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use super::workers::Workers;

/// One of the workers that MPI started.
pub struct Mpi {
    rank: usize,
    size: usize,
}

impl Mpi {
    /// Starts MPI; `None` if it was started before. The universe ends MPI when it is dropped.
    pub fn start() -> Option<(Self, Universe)> {
        // Only the thread that trains calls MPI, but it need not be the process's first.
        let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
        let world = universe.world();
        let own = Self { rank: world.rank() as usize, size: world.size() as usize };
        Some((own, universe))
    }

    /// Ends all workers with an exit status of 1.
    pub fn abort(&self) -> ! {
        SimpleCommunicator::world().abort(1)
    }
}

impl Workers for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, numbers: &mut [f32]) {
        let own = numbers.to_vec();
        SimpleCommunicator::world().all_reduce_into(&own[..], numbers, SystemOperation::sum());
    }

    fn gather(&self, message: &[u8]) -> Vec<Vec<u8>> {
        let world = SimpleCommunicator::world();
        let mut lengths = vec![0u64; self.size];
        world.all_gather_into(&(message.len() as u64), &mut lengths[..]);
        // All send as much as the longest message, since MPI gathers equal parts more simply.
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        if longest == 0 {
            // MPI refuses a buffer without room.
            return vec![Vec::new(); self.size];
        }
        let mut own = message.to_vec();
        own.resize(longest, 0);
        let mut all = vec![0u8; longest * self.size];
        world.all_gather_into(&own[..], &mut all[..]);
        let parts = all.chunks(longest).zip(&lengths);
        parts.map(|(part, &length)| part[..length as usize].to_vec()).collect()
    }
}
