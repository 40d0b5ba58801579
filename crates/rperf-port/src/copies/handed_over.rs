//! The connection of the client that is to have the graph of all objects, which a copy of the process sends
//! by itself. It is handed from the port's thread to the helper; whoever takes it out closes it.

use crate::socket::Socket;
use crate::socket::descriptors::Guarded;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

/// Null if there is none.
static CLIENT: AtomicPtr<HandedOver> = AtomicPtr::new(ptr::null_mut());

/// A connection beside that of the port's thread.
pub struct HandedOver {
    /// Closed in children that the program forks.
    listed: Guarded<OwnedFd>,
}

/// The connection as the copy has it.
pub struct ForCopy {
    /// Its descriptor isn't in the list, as the copy is to keep it.
    io: Guarded<OwnedFd>,
}

impl ForCopy {
    /// Its number.
    pub fn descriptor(&self) -> RawFd {
        self.io.as_fd().as_raw_fd()
    }

    /// Whether it is still that of the client.
    pub fn is_ours(&self) -> bool {
        self.io.is_ours()
    }
}

/// Hands it over. On the port's thread.
pub(crate) fn put(socket: &Socket) -> std::io::Result<()> {
    let listed = Guarded::new(socket.as_fd().try_clone_to_owned()?);
    let client = Box::into_raw(Box::new(HandedOver { listed }));
    drop(taken(client));
    Ok(())
}

/// Nobody is to have it any more.
pub(crate) fn take_back() {
    drop(taken(ptr::null_mut()));
}

/// In a forked child, where it was closed.
pub(crate) fn forget() {
    CLIENT.store(ptr::null_mut(), SeqCst);
}

/// The connection, if there is one, and it still is that of the client. On the helper.
pub fn take() -> Option<ForCopy> {
    let client = taken(ptr::null_mut())?;
    let is_ours = client.listed.is_ours();
    let io = client.listed.as_fd().try_clone_to_owned();
    let io = io.ok().filter(|_| is_ours)?;
    let io = Guarded::unlisted(io);
    io.is_ours().then_some(ForCopy { io })
}

/// Puts this in the place of the one that is there.
fn taken(new: *mut HandedOver) -> Option<Box<HandedOver>> {
    let old = CLIENT.swap(new, SeqCst);
    // SAFETY: null, or made by `put`, and taken out by this thread alone.
    (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
}
