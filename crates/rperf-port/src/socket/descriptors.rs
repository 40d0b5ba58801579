//! The descriptors of the port. A program may close descriptors that it doesn't know, and open
//! others with the same numbers; and a forked child inherits ours. So each is used and closed only
//! while it is the same file. Any thread; in a forked child before Ruby runs.

use nix::sys::stat::fstat;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};

/// More than the port ever has.
const COUNT: usize = 24;
/// No descriptor.
const FREE: i32 = -1;
/// About to be one.
const TAKEN: i32 = -2;
/// Where a child looks for a connection that was being taken in.
const LOOKED_AT: RawFd = 4096;

/// A descriptor for the child to close.
struct Entry {
    number: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static OPEN: [Entry; COUNT] = [const {
    Entry {
        number: AtomicI32::new(FREE),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; COUNT];

/// A connection is being taken in: it has a descriptor, but no entry yet.
static ACCEPTING: AtomicBool = AtomicBool::new(false);

/// Which file a descriptor is.
type Identity = (u64, u64);

/// A descriptor of the port, closed with this, and in forked children.
pub struct Guarded<T: AsFd> {
    io: ManuallyDrop<T>,
    identity: Option<Identity>,
    entry: Option<&'static Entry>,
}

impl<T: AsFd> Guarded<T> {
    /// Takes it over.
    pub fn new(io: T) -> Self {
        let identity = identity_of(&io);
        let is_free = |entry: &&Entry| {
            let taken = entry.number.compare_exchange(FREE, TAKEN, SeqCst, SeqCst);
            taken.is_ok()
        };
        let entry = OPEN.iter().find(is_free);
        if let (Some(entry), Some((device, inode))) = (entry, identity) {
            entry.device.store(device, SeqCst);
            entry.inode.store(inode, SeqCst);
            entry.number.store(io.as_fd().as_raw_fd(), SeqCst);
        }
        Guarded {
            io: ManuallyDrop::new(io),
            identity,
            entry,
        }
    }

    /// Takes one over that forked children keep.
    pub fn unlisted(io: T) -> Self {
        Guarded {
            identity: identity_of(&io),
            io: ManuallyDrop::new(io),
            entry: None,
        }
    }

    /// Whether the descriptor is the one that was opened, and open.
    pub fn is_ours(&self) -> bool {
        self.identity.is_some() && identity_of(&*self.io) == self.identity
    }
}

impl<T: AsFd> Deref for Guarded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.io
    }
}

impl<T: AsFd> Drop for Guarded<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: it isn't used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.io) };
        }
        if let Some(entry) = self.entry {
            entry.number.store(FREE, SeqCst);
        }
    }
}

fn identity_of(io: &impl AsFd) -> Option<Identity> {
    let found = fstat(io).ok()?;
    Some((found.st_dev as u64, found.st_ino as u64))
}

/// While `accept` takes in a connection.
pub fn taking_in<T>(accept: impl FnOnce() -> T) -> T {
    ACCEPTING.store(true, SeqCst);
    let accepted = accept();
    ACCEPTING.store(false, SeqCst);
    accepted
}

/// In a forked child: closes what it has inherited. Only atomics and system calls.
pub fn close_in_child() {
    if ACCEPTING.swap(false, SeqCst) {
        close_unknown_connection();
    }
    for entry in &OPEN {
        let number = entry.number.swap(FREE, SeqCst);
        let identity = (entry.device.load(SeqCst), entry.inode.load(SeqCst));
        if number >= 0 && raw_identity(number) == Some(identity) {
            close(number);
        }
    }
}

/// A connection has the name of the socket that it came to, which no other descriptor has.
fn close_unknown_connection() {
    for entry in &OPEN {
        let listener = entry.number.load(SeqCst);
        let identity = (entry.device.load(SeqCst), entry.inode.load(SeqCst));
        let Some(name) = name_of(listener).filter(|_| raw_identity(listener) == Some(identity))
        else {
            continue;
        };
        for number in 3..LOOKED_AT {
            let is_known = OPEN.iter().any(|it| it.number.load(SeqCst) == number);
            if !is_known && name_of(number) == Some(name) {
                close(number);
            }
        }
    }
}

/// The bytes of a socket's own name, if it has one.
fn name_of(descriptor: RawFd) -> Option<[u8; 128]> {
    let mut name = [0_u8; 128];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes.
    let result =
        unsafe { libc::getsockname(descriptor, name.as_mut_ptr().cast(), &raw mut length) };
    // Without a path there is only the family.
    (result == 0 && length > 3).then_some(name)
}

fn raw_identity(descriptor: RawFd) -> Option<Identity> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills it in; all fields are numbers, which may be zero, too.
    let found = unsafe {
        if libc::fstat(descriptor, found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    Some((found.st_dev as u64, found.st_ino as u64))
}

fn close(descriptor: RawFd) {
    // SAFETY: it is the parent's copy of a descriptor of ours, which nothing here uses.
    unsafe { libc::close(descriptor) };
}
