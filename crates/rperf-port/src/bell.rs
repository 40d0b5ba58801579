//! What wakes a helper that waits for questions all the time: a pair of sockets. The port's thread
//! writes to one, and the helper, a Ruby thread, waits for the other to be readable.

use crate::socket::descriptors::Guarded;
use nix::sys::socket::{MsgFlags, recv};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

struct Bell {
    rings: Guarded<UnixStream>,
    heard: Guarded<UnixStream>,
}

/// The bell, which stays in memory, as the port's thread and Ruby threads share it. Null without one.
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

/// After its descriptor was readable: takes in what has been rung. False if the program has closed one
/// of the descriptors: its number may be that of another file by now, of which nothing is taken. On a
/// Ruby thread.
pub fn hear() -> bool {
    let Some(bell) = current().filter(|bell| bell.heard.is_ours()) else {
        return false;
    };
    // It doesn't wait, and fails where there is no socket.
    let heard = recv(
        bell.heard.as_fd().as_raw_fd(),
        &mut [0; 64],
        MsgFlags::MSG_DONTWAIT,
    );
    heard != Ok(0)
}

/// In a forked child, where the descriptors are closed.
pub(super) fn forget() {
    BELL.store(ptr::null_mut(), SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn nothing_is_taken_of_a_file_that_has_come_to_have_its_number() {
        let number = hang().expect("a bell");
        assert_eq!(hang().expect("the same"), number);
        ring();
        assert!(hear());
        let (mut sends, mut receives) = UnixStream::pair().expect("a pair");
        sends.write_all(b"x").expect("room");
        // SAFETY: as a program does that closes descriptors that it doesn't know, and opens others.
        let other = unsafe {
            assert_eq!(libc::dup2(receives.as_raw_fd(), number), number);
            UnixStream::from_raw_fd(number)
        };
        assert!(!hear());
        ring();
        receives.set_nonblocking(true).expect("a flag");
        let mut bytes = [0; 9];
        assert_eq!(receives.read(&mut bytes).expect("what was sent"), 1);
        drop(other);
        assert_ne!(hang().expect("another"), -1);
        assert!(hear());

        let bell = current().expect("a bell");
        bell.rings
            .shutdown(std::net::Shutdown::Both)
            .expect("a socket");
        assert!(!hear(), "it would be readable for ever");
    }
}
