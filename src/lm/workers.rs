//! Workers that train one model together: data parallelism.
//!
//! Each of W workers has a *rank*, 0 to W − 1, as in MPI; it is unrelated to the rank of a matrix.
//! [`Alone`] is a single worker; `Mpi` (feature `mpi`) is one of those that `mpirun` or `srun` started.

/// Collective operations of workers. All workers call the same operations in the same order; each call returns once all have
/// called it. If a worker fails, all workers are ended, so operations return no errors.
pub trait Workers: Sync {
    /// The index of this worker: 0 ≤ rank < size.
    fn rank(&self) -> usize;

    /// The number of workers.
    fn size(&self) -> usize;

    /// Replaces each number by its sum over all workers. All get the same bits; for two workers, those of a + b.
    fn sum(&self, numbers: &mut [f32]);

    /// Returns the messages of all workers, by rank.
    fn gather(&self, message: &[u8]) -> Vec<Vec<u8>>;
}

impl dyn Workers + '_ {
    /// Whether `this` is true for any worker.
    pub(crate) fn any(&self, this: bool) -> bool {
        self.gather(&[u8::from(this)]).iter().any(|said| said == &[1])
    }

    /// Returns the numbers of all workers, by rank. Their counts may differ.
    pub(crate) fn gather_numbers(&self, numbers: &[f64]) -> Vec<Vec<f64>> {
        let all = self.gather(bytemuck::cast_slice(numbers));
        all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect()
    }
}

/// A single worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Workers for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn sum(&self, _numbers: &mut [f32]) {}

    fn gather(&self, message: &[u8]) -> Vec<Vec<u8>> {
        vec![message.to_vec()]
    }
}
