//! The socket at which the port is found. Bound on the Ruby thread that opens the port; then on the
//! port's thread.

use super::descriptors::{self, Guarded};
use crate::peer::Peer;
use crate::place::{Place, PlaceError, with_short};
use nix::unistd::Uid;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

/// Only its user.
const PRIVATE: u32 = 0o600;

/// The listening socket.
pub struct Listener(Guarded<UnixListener>);

/// Who has connected.
pub enum Accepted {
    /// Somebody who may ask.
    Client(Guarded<UnixStream>),
    /// Somebody else.
    Stranger(Guarded<UnixStream>),
    /// Nobody now.
    Nobody,
    /// The system has no descriptor, or the like.
    Failed,
}

impl Listener {
    /// Binds it.
    pub fn bind(place: &Place) -> Result<Self, PlaceError> {
        let listener = place.made(|path| {
            let listener = with_short(path, |short| UnixListener::bind(short))?;
            fs::set_permissions(path, Permissions::from_mode(PRIVATE))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })?;
        Ok(Listener(Guarded::new(listener)))
    }

    /// The socket.
    pub fn socket(&self) -> &Guarded<UnixListener> {
        &self.0
    }

    /// Takes in who waits.
    pub fn accept(&self) -> Accepted {
        match descriptors::accept(&self.0) {
            Ok(stream) if stream.set_nonblocking(true).is_err() => Accepted::Failed,
            Ok(stream) if may_ask(&stream) => Accepted::Client(stream),
            Ok(stream) => Accepted::Stranger(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Accepted::Nobody,
            // Whoever it was has gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Accepted::Nobody,
            Err(_) => Accepted::Failed,
        }
    }
}

/// The user may be another one than when the port was opened.
fn may_ask(stream: &UnixStream) -> bool {
    let own = Uid::effective().as_raw();
    Peer::of(stream).is_ok_and(|peer| peer.is_trusted_by(own))
}
