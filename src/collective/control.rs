//! Who is still there: beside the ring, each rank has a connection to rank 0, over which nothing is said but how a
//! process ended. So every rank names the one that was lost first, not its own neighbour that left because of it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::CollectiveError;

/// How long a rank whose neighbour is gone waits for word of who left first.
const WORD: Duration = Duration::from_secs(5);
/// The most that is said of why a process ended.
const LONGEST: usize = 4096;

// What a message says first.
const DONE: u8 = b'D';
const ENDED: u8 = b'E';
const GONE: u8 = b'G';

/// What was said over a connection.
enum Said {
    Done,
    Lost(CollectiveError),
}

/// The connections, and what was heard over them.
pub(super) struct Control {
    rank: usize,
    /// To rank 0, or of rank 0 to all others, by rank.
    peers: Vec<(usize, TcpStream)>,
    /// The ring's sockets, closed once a rank is lost, so that nobody waits on them any longer.
    ring: [TcpStream; 2],
    /// What ended the work, once something has.
    cause: Mutex<Option<CollectiveError>>,
    heard: Condvar,
}

impl Control {
    /// Listens to all `peers`.
    pub fn start(
        rank: usize,
        peers: Vec<(usize, TcpStream)>,
        ring: [TcpStream; 2],
    ) -> io::Result<Arc<Self>> {
        let control =
            Arc::new(Self { rank, peers, ring, cause: Mutex::new(None), heard: Condvar::new() });
        for (at, (_, stream)) in control.peers.iter().enumerate() {
            let (control, stream) = (Arc::clone(&control), stream.try_clone()?);
            std::thread::Builder::new()
                .name("processes".to_owned())
                .spawn(move || control.listen(at, stream))?;
        }
        Ok(control)
    }

    /// Hears how the peer at `at` ends, and passes it on.
    fn listen(&self, at: usize, mut stream: TcpStream) {
        let rank = self.peers[at].0;
        match read(&mut stream) {
            Ok(Said::Done) => {}
            Ok(Said::Lost(cause)) => self.lost(cause, at),
            Err(_) => self.lost(CollectiveError::Gone { rank }, at),
        }
    }

    fn lost(&self, cause: CollectiveError, heard_from: usize) {
        let mut kept = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_some() {
            return;
        }
        for (_, peer) in self.peers.iter().enumerate().filter(|(at, _)| *at != heard_from) {
            // Who cannot be told any more is gone itself.
            let _ = write(&peer.1, &cause);
        }
        *kept = Some(cause);
        self.heard.notify_all();
        for socket in &self.ring {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Why the work ended: what was heard soon, or else `otherwise`.
    pub fn cause(&self, otherwise: CollectiveError) -> CollectiveError {
        let end = Instant::now() + WORD;
        let mut cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        while cause.is_none() {
            let Some(left) = end.checked_duration_since(Instant::now()) else { break };
            let waited = self.heard.wait_timeout(cause, left);
            (cause, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        cause.clone().unwrap_or(otherwise)
    }

    /// Tells the others that this process has ended, and why where it failed: what it was told by them, or of itself.
    pub fn leave(&self, failure: Option<&str>) {
        let mut cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = cause.clone();
        if let (Some(why), None) = (failure, &heard) {
            // Those who end because of it have nothing new to say.
            *cause = Some(CollectiveError::Ended { rank: self.rank, why: why.to_owned() });
        }
        drop(cause);
        for (_, peer) in &self.peers {
            let said = match (failure, &heard) {
                (None, _) => io::Write::write_all(&mut &*peer, &[DONE]),
                (Some(_), Some(cause)) => write(peer, cause),
                (Some(why), None) => {
                    let why = why.to_owned();
                    write(peer, &CollectiveError::Ended { rank: self.rank, why })
                }
            };
            // Who is gone need not know.
            drop(said);
        }
    }

    /// Closes everything, so that the listeners end.
    pub fn close(&self) {
        // What the others do once the first of them notices is not to be passed on.
        let mut cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        cause.get_or_insert(CollectiveError::Gone { rank: self.rank });
        drop(cause);
        for socket in self.peers.iter().map(|(_, peer)| peer).chain(&self.ring) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn write(mut peer: &TcpStream, cause: &CollectiveError) -> io::Result<()> {
    let (tag, rank, why) = match cause {
        CollectiveError::Ended { rank, why } => (ENDED, *rank, why.as_str()),
        CollectiveError::Gone { rank } => (GONE, *rank, ""),
        _ => return Ok(()),
    };
    let why = &why.as_bytes()[..why.len().min(LONGEST)];
    let mut message = vec![tag];
    message.extend((rank as u32).to_le_bytes());
    message.extend((why.len() as u32).to_le_bytes());
    message.extend(why);
    peer.write_all(&message)
}

fn read(peer: &mut TcpStream) -> io::Result<Said> {
    let mut tag = [0];
    peer.read_exact(&mut tag)?;
    if tag == [DONE] {
        return Ok(Said::Done);
    }
    let mut numbers = [0; 8];
    peer.read_exact(&mut numbers)?;
    let [rank, length] = [0, 4].map(|at| {
        let bytes = [numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]];
        u32::from_le_bytes(bytes) as usize
    });
    if ![ENDED, GONE].contains(&tag[0]) || length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut why = vec![0; length];
    peer.read_exact(&mut why)?;
    Ok(Said::Lost(match tag {
        [GONE] => CollectiveError::Gone { rank },
        _ => CollectiveError::Ended { rank, why: String::from_utf8_lossy(&why).into_owned() },
    }))
}
