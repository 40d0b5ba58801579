//! The sockets at which the port is found: one with a name, and one at a loopback address if the
//! program wants that. Bound on the Ruby thread that opens the port; then on the port's thread.

use crate::socket::Socket;
use crate::socket::descriptors::{self, Guarded};
use crate::socket::tcp::{Tcp, TcpError};
use nix::unistd::Uid;
use rperf_session::peer::Peer;
use rperf_session::place::{Place, PlaceError, with_short};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
#[cfg(target_os = "linux")]
use {
    nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr},
    nix::sys::stat::{Mode, fchmod},
    std::os::fd::AsRawFd,
};

/// A listening socket.
pub struct Listener(Guarded<Listening>);

/// What listens.
pub enum Listening {
    /// At a path.
    Unix(UnixListener),
    /// At a loopback address.
    Tcp(TcpListener),
}

/// Listens at `path`, for its user only. On Linux the socket has the mode before the file is there: so what
/// another user may have put in its place by then keeps its own.
#[cfg(target_os = "linux")]
fn private(path: &Path) -> io::Result<UnixListener> {
    let socket = socket::socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR)?;
    socket::bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// Listens at `path`, for its user only.
#[cfg(not(target_os = "linux"))]
#[expect(
    clippy::disallowed_methods,
    reason = "nobody else can exchange the socket: `place::checked`"
)]
fn private(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listening::Unix(listener) => listener.as_fd(),
            Listening::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Who has connected.
pub enum Accepted {
    /// Somebody who may ask.
    Client(Guarded<Socket>),
    /// Somebody who may ask with the token.
    Unknown(Guarded<Socket>),
    /// Somebody else.
    Stranger(Guarded<Socket>),
    /// Nobody now.
    Nobody,
    /// The system has no descriptor, or the like.
    Failed,
}

impl Listener {
    /// Binds the one with a name.
    pub fn bind(place: &Place) -> Result<Self, PlaceError> {
        let listener = place.made(|path| {
            let listener = with_short(path, private)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })?;
        Ok(Listener(Guarded::new(Listening::Unix(listener))))
    }

    /// Binds the other one. If the process that had its number `ends`, it is waited for, for a moment.
    pub fn bind_tcp(tcp: &Tcp, ends: bool) -> Result<Self, TcpError> {
        Ok(Listener(Guarded::new(Listening::Tcp(tcp.bind(ends)?))))
    }

    /// The number of its port, if it is at an address.
    pub fn number(&self) -> Option<u16> {
        match &*self.0 {
            Listening::Unix(_) => None,
            Listening::Tcp(listener) => listener.local_addr().ok().map(|it| it.port()),
        }
    }

    /// The socket.
    pub fn socket(&self) -> &Guarded<Listening> {
        &self.0
    }

    /// Takes in who waits.
    pub fn accept(&self) -> Accepted {
        let accepted = descriptors::taking_in(|| {
            io::Result::Ok(Guarded::new(match &*self.0 {
                Listening::Unix(listener) => Socket::Unix(listener.accept()?.0),
                Listening::Tcp(listener) => Socket::Tcp(listener.accept()?.0),
            }))
        });
        match accepted {
            Ok(socket) if socket.prepare().is_err() => Accepted::Failed,
            Ok(socket) => match &*socket {
                Socket::Tcp(_) => Accepted::Unknown(socket),
                Socket::Unix(stream) if may_ask(stream) => Accepted::Client(socket),
                Socket::Unix(_) => Accepted::Stranger(socket),
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Accepted::Nobody,
            // Whoever it was has gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Accepted::Nobody,
            Err(_) => Accepted::Failed,
        }
    }
}

/// The user may be another one than when the port was opened.
fn may_ask(stream: &impl AsFd) -> bool {
    let own = Uid::effective().as_raw();
    Peer::of(stream).is_ok_and(|peer| peer.is_trusted_by(own))
}
