//! The port of a program: a socket at which a native thread of ours answers. Opened and closed by
//! the extension on Ruby threads; in a forked child, and at the end, it is let go of.
//!
//! A program that nobody is attached to differs by this one thread, which sleeps, and by the
//! descriptors of the port. The thread takes no signal, and touches nothing of Ruby's.

mod connection;
mod descriptors;
mod facts;
mod listener;
mod server;

use crate::hello::Session;
use crate::place::{Place, PlaceError};
use descriptors::Guarded;
use listener::Listener;
use nix::sys::signal::{SigSet, SigmaskHow};
use server::Server;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use std::thread;

/// The name that the thread has in lists of native threads.
const THREAD_NAME: &str = "rperf-port";

/// Enough for a request and its answer, which are on the heap.
const STACK_SIZE: usize = 256 << 10;

/// What the extension knows of the program. The functions are called on the port's thread.
#[derive(Debug, Clone)]
pub struct Program {
    /// The version of Ruby.
    pub ruby: String,
    /// The profiling session that runs.
    pub session: fn() -> Option<Session>,
}

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its place can't be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The program has privileges that its user doesn't have.
    #[error("this program has more privileges than its user (set-uid or file capabilities)")]
    Privileged,
    /// Another thread is about to open it.
    #[error("another thread is opening the port")]
    Busy,
    /// The system gives no thread, or no descriptor.
    #[error("can't start the port's thread ({0})")]
    Io(#[from] io::Error),
}

/// A port of this process. It stays in memory as long as the process lives, since the thread and
/// the end of the program share it.
struct Port {
    place: Place,
    /// Where a byte wakes the thread.
    waker: Guarded<UnixStream>,
    /// The program ends.
    has_ended: AtomicBool,
    program: Program,
}

/// The port, once it is open; null before, and in forked children.
static PORT: AtomicPtr<Port> = AtomicPtr::new(ptr::null_mut());

/// A thread is opening it.
static OPENING: AtomicBool = AtomicBool::new(false);

fn port() -> Option<&'static Port> {
    // SAFETY: null, or a Port that is never freed.
    unsafe { PORT.load(SeqCst).as_ref() }
}

/// The path of this process's port, if it has one.
pub fn path() -> Option<PathBuf> {
    port().map(|port| port.place.path())
}

/// Opens the port: in the user's folder, or in `folder`. Returns its path; if it is open already,
/// that is all that happens. May wait a moment for the folder's lock, so without the GVL.
pub fn open(folder: Option<&Path>, program: Program) -> Result<PathBuf, OpenError> {
    if has_more_privileges() {
        return Err(OpenError::Privileged);
    }
    if let Some(path) = path() {
        return Ok(path);
    }
    if OPENING.swap(true, SeqCst) {
        return Err(OpenError::Busy);
    }
    let result = open_at(Place::own(folder), program);
    OPENING.store(false, SeqCst);
    result
}

fn open_at(place: Result<Place, PlaceError>, program: Program) -> Result<PathBuf, OpenError> {
    let place = place?;
    let path = place.path();
    let listener = Listener::bind(&place)?;
    start(place, program, move || Ok(listener))?;
    Ok(path)
}

/// What a forked child takes over of its parent's port.
pub struct Inherited {
    place: Place,
    program: Program,
}

/// In a forked child, before Ruby runs: the port is the parent's, so its descriptors are closed
/// here. Async-signal-safe: only atomics and system calls.
pub fn forget_in_child() {
    descriptors::close_in_child();
    OPENING.store(false, SeqCst);
    let parents = PORT.swap(ptr::null_mut(), SeqCst);
    if !parents.is_null() {
        PARENTS.store(parents, SeqCst);
    }
}

/// The port of the process that forked this one.
static PARENTS: AtomicPtr<Port> = AtomicPtr::new(ptr::null_mut());

/// In a forked child, on the Ruby thread that forked: what the parent's port was, if it had one.
/// Given once.
pub fn inherited() -> Option<Inherited> {
    let parents = PARENTS.swap(ptr::null_mut(), SeqCst);
    // SAFETY: null, or the parent's Port, which is never freed; the child has its own copy, of
    // which no thread changes anything.
    let port = unsafe { parents.as_ref() }?;
    Some(Inherited {
        place: port.place.of_child(),
        program: port.program.clone(),
    })
}

/// Opens a port of this process's own, as its parent had one. Waits for nothing: the thread does
/// the rest. If it can't, the child runs on without a port.
pub fn open_as_parent(inherited: Inherited) -> io::Result<()> {
    let Inherited { place, program } = inherited;
    let own = place.clone();
    start(place, program, move || {
        Listener::bind(&own).map_err(io::Error::other)
    })
}

/// The program ends: the socket is removed, and the thread ends. Waits for nothing.
pub fn close() {
    let Some(port) = port() else { return };
    if port.leave() {
        port.has_ended.store(true, SeqCst);
        listener::remove_socket(&port.place.path());
        port.wake();
    }
}

impl Port {
    /// It is this process's port no longer. Returns whether it was until now.
    fn leave(&'static self) -> bool {
        let own = ptr::from_ref(self).cast_mut();
        let left = PORT.compare_exchange(own, ptr::null_mut(), SeqCst, SeqCst);
        left.is_ok()
    }

    fn wake(&self) {
        if self.waker.is_ours() {
            // If there is no room, bytes are there to wake it.
            let _ = (&*self.waker).write(&[0]);
        }
    }
}

/// Starts the thread of a port whose listener `listen` gives, there.
fn start(
    place: Place,
    program: Program,
    listen: impl FnOnce() -> io::Result<Listener> + Send + 'static,
) -> io::Result<()> {
    let (waker, wakened) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    wakened.set_nonblocking(true)?;
    let port: &'static Port = Box::leak(Box::new(Port {
        place,
        waker: Guarded::new(waker),
        has_ended: AtomicBool::new(false),
        program,
    }));
    let wakened = Guarded::new(wakened);
    let serve = move || {
        if let Ok(listener) = listen() {
            Server::new(port, listener, wakened).run();
        }
        port.leave();
    };
    let thread = thread::Builder::new()
        .name(THREAD_NAME.into())
        .stack_size(STACK_SIZE);
    // It inherits the mask: no signal of the program's may come to it.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    PORT.store(ptr::from_ref(port).cast_mut(), SeqCst);
    let started = thread.spawn(serve);
    mask.thread_set_mask()?;
    if let Err(error) = started {
        port.leave();
        return Err(error);
    }
    Ok(())
}

/// Whether the program was given privileges by its file: then its environment is not to be trusted.
fn has_more_privileges() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: reads a number that the kernel gave the process at its start.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(target_os = "macos")]
    // SAFETY: only asks.
    return unsafe { libc::issetugid() } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return false;
}

#[cfg(test)]
mod tests;
