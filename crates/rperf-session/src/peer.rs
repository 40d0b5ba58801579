//! Who is at the other end of a Unix socket, as the system knows it. Used by the port and by the
//! client; any thread.

use std::io;
use std::os::fd::AsFd;

/// The process that connected, or that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its effective user at that time.
    pub uid: u32,
    /// Its number here; 0 if it has none here, as it is in another PID namespace.
    pub pid: i32,
}

impl Peer {
    /// The process at the other end of a connected socket.
    #[cfg(target_os = "linux")]
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        let credentials = getsockopt(socket, PeerCredentials)?;
        Ok(Peer {
            uid: credentials.uid(),
            pid: credentials.pid(),
        })
    }

    /// The process at the other end of a connected socket.
    #[cfg(target_os = "macos")]
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        use nix::sys::socket::{getsockopt, sockopt::LocalPeerCred, sockopt::LocalPeerPid};
        let credentials = getsockopt(socket, LocalPeerCred)?;
        Ok(Peer {
            uid: credentials.uid(),
            pid: getsockopt(socket, LocalPeerPid)?,
        })
    }

    /// The process at the other end is unknown here: this system doesn't tell, so nobody is let in.
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    pub fn of(_: &impl AsFd) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a process of the user `uid` may talk to it: it is of the same user, or of root.
    pub fn is_trusted_by(self, uid: u32) -> bool {
        self.uid == uid || self.uid == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Uid;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_system_knows_who_it_is() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let peer = Peer::of(&one).expect("known");
        let own = Uid::effective().as_raw();
        assert_eq!((peer.uid, peer.pid), (own, std::process::id() as i32));
        assert!(peer.is_trusted_by(own));
    }

    #[test]
    fn only_the_same_user_and_root_are_trusted() {
        let of = |uid| Peer { uid, pid: 1 };
        assert!(of(5).is_trusted_by(5) && of(0).is_trusted_by(5));
        assert!(!of(6).is_trusted_by(5) && !of(6).is_trusted_by(0));
    }
}
