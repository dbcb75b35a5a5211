//! Collectives over sockets.

use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::control::Control;
use super::ring::{Failure, Ring, Side};
use super::{Collective, CollectiveError};

/// A machine that answers nothing is given up after about so long.
const KEEPALIVE: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// A process among several that are connected: what [`Meeting::hold`](super::Meeting::hold) ends with.
pub struct Tcp {
    rank: usize,
    world: usize,
    patience: Duration,
    ring: Mutex<Ring>,
    control: Arc<Control>,
}

impl Tcp {
    /// Of sockets that are connected: to the rank before, to the rank after, and `control` to rank 0, or of rank 0 to
    /// all others.
    pub(super) fn new(
        [rank, world]: [usize; 2],
        [left, right]: [TcpStream; 2],
        control: Vec<(usize, TcpStream)>,
        patience: Duration,
    ) -> Result<Self, CollectiveError> {
        let made = || -> io::Result<Self> {
            for socket in [&left, &right].into_iter().chain(control.iter().map(|(_, to)| to)) {
                socket.set_nodelay(true)?;
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
                #[cfg(unix)]
                let keepalive = keepalive.with_retries(PROBES);
                SockRef::from(socket).set_tcp_keepalive(&keepalive)?;
                socket.set_read_timeout(None)?;
            }
            left.set_read_timeout(Some(patience))?;
            right.set_write_timeout(Some(patience))?;
            let control = Control::start(rank, control, [left.try_clone()?, right.try_clone()?])?;
            let ring = Mutex::new(Ring::new(left, right));
            Ok(Self { rank, world, patience, ring, control })
        };
        made().map_err(|error| CollectiveError::io("the sockets between the processes", &error))
    }

    /// Says to the others how this process ends: well, or by a failure of which they are told.
    pub fn leave(&self, failure: Option<&str>) {
        self.control.leave(failure);
    }

    /// An operation on the ring; what went wrong with it is what was first lost.
    fn on_ring<T>(
        &self,
        work: impl FnOnce(&mut Ring) -> Result<T, Failure>,
    ) -> Result<T, CollectiveError> {
        let Ok(mut ring) = self.ring.lock() else {
            return Err(CollectiveError::OutOfStep { rank: self.rank });
        };
        work(&mut ring).map_err(|(side, error)| {
            let rank = match side {
                Side::Left => (self.rank + self.world - 1) % self.world,
                Side::Right => (self.rank + 1) % self.world,
            };
            self.control.cause(match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                    CollectiveError::Silent { rank, seconds: self.patience.as_secs() }
                }
                io::ErrorKind::InvalidData => CollectiveError::OutOfStep { rank },
                _ => CollectiveError::Gone { rank },
            })
        })
    }
}

impl Collective for Tcp {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn sum(&self, numbers: &mut [f32]) -> Result<(), CollectiveError> {
        self.on_ring(|ring| ring.sum(self.rank, self.world, numbers))
    }

    fn gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, CollectiveError> {
        self.on_ring(|ring| ring.gather(self.rank, self.world, message))
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.control.close();
    }
}
