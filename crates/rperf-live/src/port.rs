//! The port of a program: a socket at which a native thread of ours answers. Opened and closed by
//! the extension on Ruby threads; in a forked child, and at the end, it is let go of.
//!
//! A program that nobody is attached to differs by this one thread, which sleeps, and by the
//! descriptors of the port. The thread takes no signal, and touches nothing of Ruby's.

mod connection;
mod descriptors;
mod facts;
mod listener;
pub mod request;
mod server;
pub mod stacks;
mod state;
mod waits;

pub use state::Program;

use crate::place::{Place, PlaceError};
use descriptors::Guarded;
use listener::Listener;
use nix::sys::signal::{SigSet, SigmaskHow};
use server::Server;
use state::Port;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;

/// The name that the thread has in lists of native threads.
const THREAD_NAME: &str = "rperf-port";

/// Enough for a request and its answer, which are on the heap.
const STACK_SIZE: usize = 256 << 10;

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

/// A thread is opening the port.
static OPENING: AtomicBool = AtomicBool::new(false);

/// The path of this process's port, if it has one.
pub fn path() -> Option<PathBuf> {
    Port::current().map(|port| port.place.path())
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

/// In a forked child, before Ruby runs: the port is the parent's, so its descriptors are closed
/// here. Async-signal-safe: only atomics and system calls.
pub fn forget_in_child() {
    descriptors::close_in_child();
    OPENING.store(false, SeqCst);
    request::forget_in_child();
    Port::become_parents();
}

/// In a forked child, on the Ruby thread that forked: opens a port of its own, if its parent had
/// one. Waits for nothing: the thread does the rest, and if it can't, the child runs on without a
/// port. If the parent has ended with the fork, as for a daemon, its socket is removed.
pub fn open_as_parent(parent_has_ended: bool) -> io::Result<()> {
    let Some(parents) = Port::take_parents() else {
        return Ok(());
    };
    if parent_has_ended {
        listener::remove_socket(&parents.place.path());
    }
    let own = parents.place.of_child();
    let program = parents.program.clone();
    start(own.clone(), program, move || {
        Listener::bind(&own).map_err(io::Error::other)
    })
}

/// The program ends: the socket is removed, and the thread ends. Waits for nothing.
pub fn close() {
    if let Some(port) = Port::current().filter(|port| port.leave()) {
        port.has_ended.store(true, SeqCst);
        listener::remove_socket(&port.place.path());
        port.wake();
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
    let wakened = Guarded::new(wakened);
    let (sender, answers) = channel();
    let port = Port::leak(place, program, waker, sender);
    let serve = move || {
        if let Ok(listener) = listen() {
            Server::new(port, listener, wakened, answers).run();
        }
        port.leave();
    };
    let thread = thread::Builder::new().name(THREAD_NAME.into());
    // The thread inherits the mask: no signal of the program's may come to it.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    port.enter();
    let started = thread.stack_size(STACK_SIZE).spawn(serve);
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
