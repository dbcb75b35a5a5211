//! Workers that train one model together: data parallelism.
//!
//! Among W workers each has a *rank*, 0 to W − 1, as in MPI. That rank has nothing to do with the rank of a matrix.
//! [`Alone`] is one worker; `Mpi` (feature `mpi`) is one of those that `mpirun` or `srun` started.

/// What workers do together. All of them call the same operations in the same order; each returns once all have called it.
/// A worker that dies ends the others, so no operation fails.
pub trait Workers: Sync {
    /// Which worker this is: 0 ≤ rank < size.
    fn rank(&self) -> usize;

    /// How many workers there are.
    fn size(&self) -> usize;

    /// Replaces each number by its sum over all workers: the same bits for all, and for two workers those of a + b.
    fn sum(&self, numbers: &mut [f32]);

    /// The messages of all workers, by rank.
    fn gather(&self, message: &[u8]) -> Vec<Vec<u8>>;
}

impl dyn Workers + '_ {
    /// Whether any worker says yes.
    pub(crate) fn any(&self, this: bool) -> bool {
        self.gather(&[u8::from(this)]).iter().any(|said| said == &[1])
    }

    /// The numbers of all workers, by rank. Workers may give different counts.
    pub(crate) fn gather_numbers(&self, numbers: &[f64]) -> Vec<Vec<f64>> {
        let all = self.gather(bytemuck::cast_slice(numbers));
        all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect()
    }
}

/// One worker without others.
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
