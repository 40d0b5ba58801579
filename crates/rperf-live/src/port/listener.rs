//! The socket at which the port is found. Bound by whoever opens the port; then on the port's
//! thread.

use super::descriptors::{self, Guarded};
use crate::peer::Peer;
use crate::place::{Place, PlaceError, with_short};
use nix::unistd::Uid;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

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
    /// Binds it. May wait for the folder's lock for a moment.
    pub fn bind(place: &Place) -> Result<Self, PlaceError> {
        let listener = place.locked(|path| {
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

/// Removes the socket. The folder goes, too, if it is the user's and nothing else is in it.
pub fn remove_socket(path: &Path) {
    let _ = fs::remove_file(path);
    let users = rperf_session::directory::existing_users();
    if let Some(folder) = path
        .parent()
        .filter(|&folder| users.as_deref() == Some(folder))
    {
        let _ = fs::remove_dir(folder);
    }
}
