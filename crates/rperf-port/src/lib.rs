//! The port of a program: a socket at which a native thread of ours answers. Opened and closed by
//! the extension on Ruby threads; in a forked child, and at the end, it is let go of.
//!
//! A program that nobody is attached to differs by this one thread, which sleeps, and by the
//! descriptors of the port. The thread takes no signal, and touches nothing of Ruby's. Nothing here
//! links Ruby or samples: `wake.rs` calls the function with which Ruby handles signals by its address.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod bell;
mod connection;
mod copies;
mod facts;
pub mod memory;
mod profiling;
pub mod pull;
mod pulls;
mod questions;
mod refusals;
pub mod request;
mod route;
mod server;
mod session;
mod socket;
pub mod stacks;
mod state;
mod step;
pub mod task;
mod waits;
pub mod wake;

pub use copies::handed_over;
pub use state::{Program, Running};

use nix::sys::signal::{SigSet, SigmaskHow};
use rperf_session::os;
use rperf_session::place::{Place, PlaceError};
use rperf_session::privileges;
use server::Server;
use socket::descriptors::Guarded;
use socket::holder::Holder as NumberHolder;
use socket::listener::Listener;
use socket::tcp::{Tcp, TcpError};
use state::Port;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use step::Holder;
use task::{Message, ProfileUpTo, Why};

/// The name that the thread has in lists of native threads.
const THREAD_NAME: &str = "rperf-port";

/// Enough for a request and its answer, which are on the heap.
const STACK_SIZE: usize = 256 << 10;

/// How long the program's end may wait for clients.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its place can't be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The port can't be at the TCP address that was asked for, or there is no token.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The port is open already, but not over TCP.
    #[error("it is open already, without TCP; ask for TCP where it is opened first")]
    WithoutTcp,
    /// The program has privileges that its user doesn't have.
    #[error("this program has more privileges than its user (set-uid or file capabilities)")]
    Privileged,
    /// The system gives no thread, or no descriptor.
    #[error("can't start the port's thread ({0})")]
    Io(#[from] io::Error),
}

/// The path of this process's port, if it has one.
pub fn path() -> Option<PathBuf> {
    Port::current().map(|port| port.place.path())
}

/// The number of its TCP port, if it has one.
pub fn number() -> Option<u16> {
    Port::current().and_then(|port| port.number)
}

/// Opens the port: in the user's directory, or in `directory`; and at the loopback address with the number
/// `tcp`, if there is one (0: any that is free). Returns its path; if it is open already, that is all
/// that happens. Waits for nothing. With the GVL: so no other thread forks, or changes the
/// environment, meanwhile.
pub fn open(
    directory: Option<&Path>,
    tcp: Option<u16>,
    program: Program,
) -> Result<PathBuf, OpenError> {
    if privileges::are_of_file() {
        return Err(OpenError::Privileged);
    }
    if let Some(port) = Port::current() {
        return match tcp.is_some() && port.number.is_none() {
            true => Err(OpenError::WithoutTcp),
            false => Ok(port.place.path()),
        };
    }
    let tcp = tcp.map(Tcp::at).transpose().map_err(TcpError::from)?;
    let place = Place::own(directory)?;
    let path = place.path();
    open_at(place, tcp, false, program)?;
    Ok(path)
}

/// The path of a port for which the environment asks. Where the number is taken, there is no TCP, and
/// `tell` gets the reason: clients could take whoever has it for this program, and send the token
/// there. A program hands its environment on to those that it starts, so if one of those above this
/// one has the number, that is as it was meant.
pub fn open_as_inherited(
    directory: Option<&Path>,
    tcp: u16,
    program: Program,
    tell: impl FnOnce(String),
) -> Result<PathBuf, OpenError> {
    match open(directory, Some(tcp), program.clone()) {
        Err(OpenError::Tcp(error)) if error.is_taken() => {
            let holder = NumberHolder::of(tcp);
            if !holder.as_ref().is_some_and(NumberHolder::is_of_ancestor) {
                let user = holder.map(|it| format!(", which a process of uid {} has", it.uid));
                let user = user.unwrap_or_default();
                tell(format!("{error}{user}; the port is a socket alone"));
            }
            open(directory, None, program)
        }
        result => result,
    }
}

/// All but the answers is done here, on the Ruby thread: on another one it would go on while the
/// program forks, or closes descriptors that it doesn't know.
fn open_at(
    place: Place,
    tcp: Option<Tcp>,
    parent_ends: bool,
    program: Program,
) -> Result<(), OpenError> {
    // First: others may have its number.
    let of_tcp = tcp
        .as_ref()
        .map(|tcp| Listener::bind_tcp(tcp, parent_ends))
        .transpose()?;
    let mut listeners = vec![Listener::bind(&place)?];
    listeners.extend(of_tcp);
    let told = tcp.as_ref().and_then(|tcp| tcp.token.to_tell());
    told.map_or(Ok(()), |token| place.tell(&token).map(drop))
        .inspect_err(|_| place.clear())?;
    start(place.clone(), tcp, program, listeners).inspect_err(|_| place.clear())?;
    Ok(())
}

/// In a forked child, before Ruby runs: the port is the parent's, so its descriptors are closed
/// here. Async-signal-safe: only atomics and system calls.
pub fn forget_in_child() {
    socket::descriptors::close_in_child();
    bell::forget();
    handed_over::forget();
    request::forget_in_child();
    pull::forget();
    Port::become_parents();
}

/// In a forked child, on the Ruby thread that forked: opens a port of its own, if its parent had
/// one. If the parent has ended with the fork, as for a daemon, its socket is removed, and its
/// number over TCP taken over; else all is waited for nothing. Without that number it has no TCP.
pub fn open_as_parent(parent_has_ended: bool) -> Result<(), OpenError> {
    let Some(parents) = Port::take_parents() else {
        return Ok(());
    };
    if parent_has_ended {
        parents.place.clear();
    }
    let tcp = parents.tcp.as_ref();
    let tcp = tcp.and_then(|tcp| tcp.of_child(parent_has_ended));
    let open = |tcp| {
        let place = parents.place.of_child();
        open_at(place, tcp, parent_has_ended, parents.program.clone())
    };
    match tcp {
        Some(tcp) => open(Some(tcp)).or_else(|_| open(None)),
        None => open(None),
    }
}

/// The program ends: the socket is removed, and the thread ends. It asks the VM nothing any more,
/// which may be gone soon; else nothing is waited for.
pub fn close() {
    if let Some(port) = Port::current().filter(|port| port.leave()) {
        port.end();
        request::withdraw_all();
        port.place.clear();
        port.wake();
    }
}

/// A session has begun that knows which thread has the GVL: `holder` tells that, on the port's
/// thread, as long as the session runs. On a Ruby thread.
pub fn session_begun(holder: Holder) {
    if let Some(port) = Port::current() {
        port.hand_over(Message::Holder(holder));
    }
}

/// The session has ended, by the program: its profile goes to the clients that have begun it, or
/// watched it. Waits for nobody. On a Ruby thread.
pub fn session_ended(why: Why, profile: ProfileUpTo) {
    if let Some(port) = Port::current() {
        port.hand_over(Message::Ended(why, profile));
    }
}

/// Before the program ends: lets the profile go out that was just handed over, if the clients take
/// it at once. Without the GVL.
pub fn let_go_out() {
    let began = Instant::now();
    while Port::current().is_some_and(Port::owes) && began.elapsed() < LAST_PATIENCE {
        os::sleep(Duration::from_millis(1));
    }
}

/// Starts the thread of a port.
fn start(
    place: Place,
    tcp: Option<Tcp>,
    program: Program,
    listeners: Vec<Listener>,
) -> io::Result<()> {
    let (waker, wakened) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    wakened.set_nonblocking(true)?;
    let wakened = Guarded::new(wakened);
    let (sender, messages) = channel();
    let (step_sender, steps) = channel();
    let number = listeners.iter().find_map(Listener::number);
    let port = Port::leak(place, tcp, number, program, waker, sender, step_sender);
    let serve = move || {
        let mut server = Server::new(port, listeners, wakened, messages, steps);
        server.run();
        server.end_watch();
        if !port.has_ended.load(SeqCst) {
            port.place.clear();
        }
        port.owes_nothing();
        // Before the descriptors are closed: nobody writes to this thread any more.
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

#[cfg(test)]
mod tests;
