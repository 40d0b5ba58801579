//! What wakes a helper that waits for questions all the time: a pair of sockets. The port's thread
//! writes to one, and the helper, a Ruby thread, waits for the other to be readable.

use super::descriptors::Guarded;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

struct Bell {
    rings: Guarded<UnixStream>,
    heard: Guarded<UnixStream>,
}

/// It stays in memory, as the port's thread and Ruby threads share it. Null without one.
static BELL: AtomicPtr<Bell> = AtomicPtr::new(ptr::null_mut());

fn current() -> Option<&'static Bell> {
    // SAFETY: null, or a Bell that is never freed.
    unsafe { BELL.load(SeqCst).as_ref() }
}

/// The descriptor at which a helper waits that is to stay. With the GVL.
pub fn hang() -> io::Result<RawFd> {
    if let Some(bell) = current().filter(|bell| bell.heard.is_ours()) {
        return Ok(bell.heard.as_fd().as_raw_fd());
    }
    let (rings, heard) = UnixStream::pair()?;
    rings.set_nonblocking(true)?;
    heard.set_nonblocking(true)?;
    let (rings, heard) = (Guarded::new(rings), Guarded::new(heard));
    let number = heard.as_fd().as_raw_fd();
    BELL.store(Box::into_raw(Box::new(Bell { rings, heard })), SeqCst);
    Ok(number)
}

/// Wakes the helper. On the port's thread.
pub(super) fn ring() {
    if let Some(bell) = current().filter(|bell| bell.rings.is_ours()) {
        // If there is no room, bytes are there to wake it.
        let _ = (&*bell.rings).write(&[0]);
    }
}

/// In a forked child, where the descriptors are closed.
pub(super) fn forget() {
    BELL.store(ptr::null_mut(), SeqCst);
}
