//! The ring that numbers go round: each rank sends to the next and receives from the one before.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// What precedes every message: the operation's number and the bytes that follow, eight bytes each.
const HEADER: usize = 16;
/// So many bytes are sent without a thread of their own: every system's sockets hold them until they are read.
const SMALL: usize = 4096;
/// More than any rank has to say in one message; a length above it is none.
const MOST: u64 = 1 << 36;

/// Which neighbour a failure was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The rank before, from which is received.
    Left,
    /// The rank after, to which is sent.
    Right,
}

/// A failure and where it was.
pub(super) type Failure = (Side, io::Error);

/// The sockets to both neighbours.
pub(super) struct Ring {
    left: TcpStream,
    right: TcpStream,
    /// Messages so far: both ends count them, so that none is taken for another.
    count: u64,
    scratch: Vec<f32>,
}

impl Ring {
    pub fn new(left: TcpStream, right: TcpStream) -> Self {
        Self { left, right, count: 0, scratch: Vec::new() }
    }

    /// Reduce-scatter, then all-gather (Patarasuk and Yuan 2009, doi 10.1016/j.jpdc.2008.09.002): every rank sends and
    /// receives 2 (W − 1)/W of the numbers, which is the least there is. A number's sum is made at one rank alone and
    /// passed on, so all have the same bits.
    pub fn sum(&mut self, rank: usize, world: usize, numbers: &mut [f32]) -> Result<(), Failure> {
        let count = numbers.len();
        let part = |index: usize| {
            let index = index % world;
            count * index / world..count * (index + 1) / world
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        for step in 0..2 * (world - 1) {
            let sent = part(rank + 2 * world - step);
            let received = part(rank + 2 * world - step - 1);
            scratch.resize(received.len(), 0.0);
            let bytes = bytemuck::cast_slice_mut(&mut scratch);
            self.exchange(bytemuck::cast_slice(&numbers[sent]), bytes)?;
            let mine = &mut numbers[received];
            if step < world - 1 {
                mine.iter_mut().zip(&scratch).for_each(|(mine, theirs)| *mine += theirs);
            } else {
                mine.copy_from_slice(&scratch);
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    /// What each rank gave, by rank: W − 1 times, each passes on what it received last.
    pub fn gather(
        &mut self,
        rank: usize,
        world: usize,
        message: &[u8],
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let mut all = vec![Vec::new(); world];
        all[rank] = message.to_vec();
        for step in 0..world - 1 {
            let sent = (rank + world - step) % world;
            let received = (rank + world - step - 1) % world;
            let mut lengths = [0; 8];
            self.exchange(&(all[sent].len() as u64).to_le_bytes(), &mut lengths)?;
            let length = u64::from_le_bytes(lengths);
            if length > MOST {
                return Err((Side::Left, io::ErrorKind::InvalidData.into()));
            }
            let mut bytes = vec![0; length as usize];
            self.exchange(&all[sent], &mut bytes)?;
            all[received] = bytes;
        }
        Ok(all)
    }

    /// Sends to the right and receives from the left, both at once.
    fn exchange(&mut self, sent: &[u8], received: &mut [u8]) -> Result<(), Failure> {
        self.count += 1;
        let count = self.count;
        let (mut left, mut right) = (&self.left, &self.right);
        let mut send = move || {
            let mut header = [0; HEADER];
            header[..8].copy_from_slice(&count.to_le_bytes());
            header[8..].copy_from_slice(&(sent.len() as u64).to_le_bytes());
            right.write_all(&header)?;
            right.write_all(sent)
        };
        let mut receive = move || {
            let mut header = [0; HEADER];
            left.read_exact(&mut header)?;
            if header[..8] != count.to_le_bytes()
                || header[8..] != (received.len() as u64).to_le_bytes()
            {
                return Err(io::ErrorKind::InvalidData.into());
            }
            left.read_exact(received)
        };
        let (sent, received) = if sent.len() <= SMALL {
            (send(), receive())
        } else {
            std::thread::scope(|scope| {
                let sending = scope.spawn(send);
                let received = receive();
                let sent = sending.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
                (sent, received)
            })
        };
        received.map_err(|error| (Side::Left, error))?;
        sent.map_err(|error| (Side::Right, error))
    }
}
