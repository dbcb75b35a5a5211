//! How processes find each other: by a file in a folder that all of them see.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::RngExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::place::{Place, listen, number};
use super::{CollectiveError, Tcp};
use crate::system::{disk, machine, write_whole_private};

/// The file by which they find process 0; it is there until all have come.
const FILE: &str = ".meeting.toml";
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a caller of whom nothing is known may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// No message of a meeting is longer.
const LONGEST: u32 = 1 << 20;

/// A meeting of the processes of one run. Process 0 listens, and writes where, with a word that nobody else knows, into
/// a file; the others read it and call. A file that an earlier launch left behind leads to nobody, and is read again
/// until the new one is there.
pub struct Meeting<'a> {
    /// This process.
    pub rank: usize,
    /// How many there are to be, two or more.
    pub world: usize,
    /// Where the file is.
    pub folder: &'a Path,
    /// What the processes of one launch have in common, so that none meets those of another; may be empty.
    pub launch: &'a str,
    /// Whether all are on this machine: then nobody else can call.
    pub on_this_machine: bool,
    /// Another address of this machine than its name, by which the others reach it.
    pub address: Option<&'a str>,
    /// What must be the same of all, in words: the version of the program, how it computes.
    pub kind: &'a str,
    /// How long the others are waited for, now and in every operation.
    pub patience: Duration,
    /// Asked while waiting; a reason not to wait any longer ends the meeting.
    pub meanwhile: &'a dyn Fn() -> Result<(), String>,
}

/// What the file says.
#[derive(Deserialize, Serialize)]
struct Notice {
    launch: String,
    word: String,
    on_this_machine: bool,
    place: Place,
}

/// What a caller says.
#[derive(Deserialize, Serialize)]
struct Hello {
    word: String,
    rank: usize,
    world: usize,
    kind: String,
    place: Place,
}

/// What it is told.
#[derive(Deserialize, Serialize)]
enum Answer {
    /// All have come, and are there.
    Welcome(Vec<Place>),
    /// It cannot take part.
    Refused(String),
    /// It has come to another meeting.
    Elsewhere,
}

impl Meeting<'_> {
    /// Waits for all, and connects them.
    ///
    /// # Errors
    /// Processes that do not come, or that are of another kind or number; a file or socket that does not serve.
    pub fn hold(&self) -> Result<Tcp, CollectiveError> {
        let until = Instant::now() + self.patience;
        match self.rank {
            0 => self.host(until),
            _ => self.attend(until),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn ask(&self) -> Result<(), CollectiveError> {
        (self.meanwhile)().map_err(CollectiveError::Refused)
    }

    fn listen(&self, on_this_machine: bool) -> Result<(TcpListener, Place), CollectiveError> {
        let listening = || -> io::Result<_> {
            let listener = listen(on_this_machine)?;
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        };
        let (listener, port) = listening()
            .map_err(|error| CollectiveError::io("cannot listen for other processes", &error))?;
        let machine = match self.address {
            Some(address) if !on_this_machine => address.to_owned(),
            _ => machine::name(),
        };
        Ok((listener, Place { addresses: vec![machine.clone()], machine, port }))
    }

    /// Process 0: takes in the others as they call.
    fn host(&self, until: Instant) -> Result<Tcp, CollectiveError> {
        let (listener, place) = self.listen(self.on_this_machine)?;
        let word = format!("{:032x}", rand::rng().random::<u128>());
        let notice = Notice {
            launch: self.launch.to_owned(),
            word: word.clone(),
            on_this_machine: self.on_this_machine,
            place: place.clone(),
        };
        let _notice = Posted::new(self.path(), &notice)?;
        let mut callers: Vec<Option<(TcpStream, Place)>> = (1..self.world).map(|_| None).collect();
        let result = self.await_all(&listener, &word, &mut callers, until);
        let came = callers.into_iter().enumerate();
        let came = came.filter_map(|(at, caller)| Some((at + 1, caller?)));
        let (mut control, mut places) = (Vec::new(), vec![place]);
        for (rank, (stream, place)) in came {
            places.push(place);
            control.push((rank, stream));
        }
        let answer = match &result {
            Ok(()) => Answer::Welcome(places.clone()),
            Err(error) => Answer::Refused(error.to_string()),
        };
        for (rank, stream) in &control {
            let sent = send(stream, &answer);
            if result.is_ok() {
                sent.map_err(|_| CollectiveError::Gone { rank: *rank })?;
            }
        }
        result?;
        self.join_ring(&listener, &word, &places, control, until)
    }

    fn await_all(
        &self,
        listener: &TcpListener,
        word: &str,
        callers: &mut [Option<(TcpStream, Place)>],
        until: Instant,
    ) -> Result<(), CollectiveError> {
        while callers.iter().any(Option::is_none) {
            let Some((stream, from)) = self.next_caller(listener, until)? else {
                let missing = callers.iter().zip(1..).filter(|(caller, _)| caller.is_none());
                let missing: Vec<_> =
                    missing.map(|(_, rank): (_, usize)| rank.to_string()).collect();
                return Err(CollectiveError::NotCome {
                    missing: format!("process {}", missing.join(", ")),
                    world: self.world,
                    seconds: self.patience.as_secs(),
                });
            };
            // Whoever does not say who it is is nobody of ours.
            let Ok(Hello { word: theirs, rank, world, kind, mut place }) = receive(&stream) else {
                continue;
            };
            if theirs != word {
                let _ = send(&stream, &Answer::Elsewhere);
                continue;
            }
            let why = if world != self.world || rank == 0 || rank >= world {
                format!(
                    "process {rank} was started as one of {world}, process 0 as one of {}; start all with the same number",
                    self.world
                )
            } else if kind != self.kind {
                format!(
                    "process {rank} is {kind}, but process 0 is {}; use the same program and \
                         instructions everywhere",
                    self.kind
                )
            } else {
                if callers[rank - 1].is_some() {
                    let why = format!("process {rank} was started twice; start each once");
                    let _ = send(&stream, &Answer::Refused(why));
                    continue;
                }
                place.addresses.splice(0..0, from);
                callers[rank - 1] = Some((stream, place));
                continue;
            };
            let _ = send(&stream, &Answer::Refused(why.clone()));
            return Err(CollectiveError::Refused(why));
        }
        Ok(())
    }

    /// Who calls next, ready to be read from, and its number; none where nobody does in time.
    fn next_caller(
        &self,
        listener: &TcpListener,
        until: Instant,
    ) -> Result<Option<(TcpStream, Option<String>)>, CollectiveError> {
        let failed = |error| CollectiveError::io("cannot accept another process", &error);
        loop {
            self.ask()?;
            match listener.accept() {
                Ok((stream, from)) => {
                    stream.set_nonblocking(false).map_err(failed)?;
                    stream.set_read_timeout(Some(INTRODUCTION)).map_err(failed)?;
                    return Ok(Some((stream, number(from))));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        return Ok(None);
                    }
                    sleep(PAUSE);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Every other process: looks for process 0 until it is found.
    fn attend(&self, until: Instant) -> Result<Tcp, CollectiveError> {
        let path = self.path();
        let mut why = format!("{} does not exist; start process 0 too", path.display());
        loop {
            self.ask()?;
            if Instant::now() >= until {
                return Err(CollectiveError::NoMeeting { seconds: self.patience.as_secs(), why });
            }
            match self.call(&path, until) {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => return Err(error),
                Err(Some(found)) => why = found,
                Err(None) => {}
            }
            sleep(PAUSE);
        }
    }

    /// Tries once to find process 0: what came of it, or what was found in its place, where anything was.
    fn call(
        &self,
        path: &Path,
        until: Instant,
    ) -> Result<Result<Tcp, CollectiveError>, Option<String>> {
        let text = std::fs::read_to_string(path).map_err(|_| None)?;
        let notice: Notice =
            toml::from_str(&text).map_err(|_| Some(format!("{} is cut off", path.display())))?;
        if notice.launch != self.launch {
            return Err(Some(format!("{} belongs to another launch", path.display())));
        }
        let (listener, place) = match self.listen(notice.on_this_machine) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let stream = notice.place.connect().map_err(|e| Some(e.to_string()))?;
        let hello = Hello {
            word: notice.word.clone(),
            rank: self.rank,
            world: self.world,
            kind: self.kind.to_owned(),
            place,
        };
        let waits = until.saturating_duration_since(Instant::now()).max(PAUSE);
        let answered = stream
            .set_read_timeout(Some(waits))
            .and_then(|()| send(&stream, &hello))
            .and_then(|()| receive(&stream));
        match answered {
            Ok(Answer::Welcome(mut places)) if places.len() == self.world => {
                // How process 0 was reached; and who is on its machine has no other number.
                let reached = stream.peer_addr().ok().and_then(number);
                for place in &mut places {
                    if place.machine == notice.place.machine {
                        place.addresses.splice(0..0, reached.clone());
                    }
                }
                let control = vec![(0, stream)];
                Ok(self.join_ring(&listener, &notice.word, &places, control, until))
            }
            Ok(Answer::Refused(why)) => Ok(Err(CollectiveError::Refused(why))),
            Ok(_) => Err(Some(format!("{} belongs to another training", path.display()))),
            Err(error) => Err(Some(format!("process 0 does not answer: {error}"))),
        }
    }

    /// Calls the next in the ring, and is called by the one before.
    fn join_ring(
        &self,
        listener: &TcpListener,
        word: &str,
        places: &[Place],
        control: Vec<(usize, TcpStream)>,
        until: Instant,
    ) -> Result<Tcp, CollectiveError> {
        let next = (self.rank + 1) % self.world;
        let before = (self.rank + self.world - 1) % self.world;
        let calling = format!("process {next} on {}", places[next].machine);
        let right = places[next].connect().map_err(|e| CollectiveError::io(&calling, &e))?;
        send(&right, &(word, self.rank)).map_err(|e| CollectiveError::io(&calling, &e))?;
        loop {
            let Some((left, _)) = self.next_caller(listener, until)? else {
                return Err(CollectiveError::NotCome {
                    missing: format!("process {before}"),
                    world: self.world,
                    seconds: self.patience.as_secs(),
                });
            };
            if receive::<(String, usize)>(&left).is_ok_and(|who| who == (word.to_owned(), before)) {
                return Tcp::new([self.rank, self.world], [left, right], control, self.patience);
            }
        }
    }
}

/// The file that says where the meeting is, for as long as it is held.
struct Posted(PathBuf);

impl Posted {
    fn new(path: PathBuf, notice: &Notice) -> Result<Self, CollectiveError> {
        let written = || -> io::Result<()> {
            let text = toml::to_string(notice).map_err(io::Error::other)?;
            // Who reads it could take part.
            write_whole_private(&path, text.as_bytes())
        };
        written().map_err(|error| CollectiveError::file("write", &path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        // One that stays leads to nobody.
        let _ = disk::remove_file(&self.0);
    }
}

fn send(mut stream: &TcpStream, message: &impl Serialize) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    stream.write_all(&(bytes.len() as u32).to_le_bytes())?;
    stream.write_all(&bytes)
}

fn receive<T: DeserializeOwned>(mut stream: &TcpStream) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}
