//! Processes that train one model together: how they meet, add up their numbers, and learn of each other's end.
//!
//! In the words of MPI and NCCL a process among W is known by its *rank*, 0 to W − 1, and W is the *world size*; a
//! *collective* is an operation that every rank takes part in, all of them in the same order. That rank has nothing to
//! do with a matrix's, of which the rest of this library tells.
//!
//! [`Collective`] is all that a trainer needs: to add up gradients, and to tell each other small things. [`Tcp`] does it
//! over sockets, between processes of one machine or of several, and [`Alone`] is one process by itself.

mod alone;
mod control;
mod error;
mod meeting;
mod place;
mod ring;
mod tcp;
#[cfg(test)]
mod tests;

pub use alone::Alone;
pub use error::CollectiveError;
pub use meeting::Meeting;
pub use tcp::Tcp;

/// What processes do together. Each rank calls the same operations in the same order, and an operation returns once
/// every rank has called it.
pub trait Collective: Sync {
    /// Which of the processes this is: 0 ≤ rank < world.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn world(&self) -> usize;

    /// Puts in place of each number its sum over all ranks: the same bits on every rank, and of two ranks those of an
    /// ordinary addition. Of more, the order of additions depends on the number's place.
    ///
    /// # Errors
    /// A rank that is gone, has ended, or says nothing.
    fn sum(&self, numbers: &mut [f32]) -> Result<(), CollectiveError>;

    /// What each rank gave, by rank.
    ///
    /// # Errors
    /// As [`Self::sum`].
    fn gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, CollectiveError>;
}

impl dyn Collective + '_ {
    /// Whether any rank says so.
    ///
    /// # Errors
    /// As [`Collective::sum`].
    pub(crate) fn any(&self, this: bool) -> Result<bool, CollectiveError> {
        Ok(self.gather(&[u8::from(this)])?.iter().any(|said| said == &[1]))
    }

    /// The numbers that each rank gave, by rank; every rank gives as many as it likes.
    ///
    /// # Errors
    /// As [`Collective::sum`].
    pub(crate) fn gather_numbers(&self, numbers: &[f64]) -> Result<Vec<Vec<f64>>, CollectiveError> {
        let all = self.gather(bytemuck::cast_slice(numbers))?;
        Ok(all.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect())
    }
}
