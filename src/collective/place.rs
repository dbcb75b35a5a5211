//! Where a process listens, and how others get there.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::system::machine;

/// How long one address is tried.
const TRY: Duration = Duration::from_secs(2);

/// The addresses of a process, best first: names of machines or numbers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Place {
    /// The name of its machine.
    pub machine: String,
    /// By what others reach it.
    pub addresses: Vec<String>,
    /// Where it listens.
    pub port: u16,
}

impl Place {
    /// Connects to the first address that answers; one of this machine at once.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let local = (self.machine == machine::name()).then(|| Ipv4Addr::LOCALHOST.to_string());
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address found");
        for address in local.iter().chain(&self.addresses) {
            let found = match (address.as_str(), self.port).to_socket_addrs() {
                Ok(found) => found,
                Err(error) => {
                    last = named(address, &error);
                    continue;
                }
            };
            for socket in found {
                match TcpStream::connect_timeout(&socket, TRY) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = named(&socket.to_string(), &error),
                }
            }
        }
        Err(last)
    }
}

fn named(address: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{address}: {error}"))
}

/// Listens on a free port: of this machine alone, or of all its addresses.
pub(super) fn listen(on_this_machine: bool) -> io::Result<TcpListener> {
    if on_this_machine {
        return TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    }
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

/// The number that a connection comes from, where others can use it too.
pub(super) fn number(address: SocketAddr) -> Option<String> {
    let number: IpAddr = address.ip().to_canonical();
    (!number.is_loopback()).then(|| number.to_string())
}
