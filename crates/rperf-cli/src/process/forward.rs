//! Passes signals that are sent to `rperf` on to the program that it runs.
//!
//! Our handlers only ever touch atomics and send a signal. Called by `process`, on the main thread;
//! the handlers run on any thread.

use nix::errno::Errno;
use rperf_session::output;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// What people and supervisors send to end a program.
const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// What a terminal stops programs with, and some programs use for other ends.
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// What they send to reload a program, to ask it something, or to tell it.
const OTHERS: [i32; 5] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// The program's process id; 0 before it runs and after it has ended.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// Whether the program has ended: who sends a signal to end us then waits for what we write.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// The signals that came while no program ran, a bit for each.
static EARLY: AtomicU64 = AtomicU64::new(0);
/// Whether one of [`ENDS`] came.
static CAME_TO_END_US: AtomicBool = AtomicBool::new(false);
/// Whether we were continued since this was last asked.
static CONTINUED: AtomicBool = AtomicBool::new(false);

/// Whether somebody asked us to stop since this was last asked. The program was asked, too.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The signals that were ignored when we were started, a bit for each.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Notes whether SIGPIPE is ignored. Before `main`, because Rust's library has it ignored then.
extern "C" fn note_pipe() {
    if is_ignored(libc::SIGPIPE).unwrap_or(false) {
        IGNORED.fetch_or(1 << libc::SIGPIPE, Ordering::SeqCst);
    }
}

/// What the system's loader calls before `main`.
// SAFETY: the section is a list of functions without arguments that is made to be added to; this one needs
// nothing that `main` sets up.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = note_pipe;

/// Installs the handlers. The program of `command` gets the default ones. A signal that is ignored, as
/// by nohup or in what a script starts in the background, stays ignored, here and in the program; but
/// if it is sent to us, it is passed on: the program may handle it by now.
pub fn install(command: &mut Command) -> io::Result<()> {
    for signal in ENDS.into_iter().chain(OTHERS) {
        if is_ignored(signal)? {
            IGNORED.fetch_or(1 << signal, Ordering::SeqCst);
        }
        handle(signal)?;
    }
    for signal in STOPS {
        if !is_ignored(signal)? {
            handle(signal)?;
        }
    }
    // While it is ignored, the system keeps no status of a child for us. Nobody has to be told of it.
    if is_ignored(libc::SIGCHLD)? {
        IGNORED.fetch_or(1 << libc::SIGCHLD, Ordering::SeqCst);
        set_action(libc::SIGCHLD, libc::SIG_DFL)?;
    }
    let ignored = IGNORED.load(Ordering::SeqCst);
    if ignored != 0 {
        let ignore = move || signals_in(ignored).try_for_each(|it| set_action(it, libc::SIG_IGN));
        // SAFETY: between fork and exec it calls sigaction(2) only, on memory of its own.
        unsafe { command.pre_exec(ignore) };
    }
    Ok(())
}

fn signals_in(mask: u64) -> impl Iterator<Item = i32> {
    (1..64).filter(move |signal| mask & (1 << signal) != 0)
}

/// Whether a signal came that ends a program, be it from somebody who sent it to us
/// alone, or to others, too.
pub fn came_to_end_us() -> bool {
    CAME_TO_END_US.load(Ordering::SeqCst)
}

/// Whether this process was continued since this was last asked: the terminal may be another
/// program's picture now.
pub fn was_continued() -> bool {
    CONTINUED.swap(false, Ordering::SeqCst)
}

/// Whether somebody has sent this process a signal that stops programs since this was last asked.
/// The program has got it.
pub fn was_stopped() -> bool {
    STOPPED.swap(false, Ordering::SeqCst)
}

/// From now on signals go to this process.
pub fn to_program(pid: i32) {
    PROGRAM.store(pid, Ordering::SeqCst);
    let early = EARLY.swap(0, Ordering::SeqCst);
    signals_in(early).for_each(|signal| send(pid, signal));
}

/// From now on signals go nowhere. To be called before the process id can be
/// given to another process.
pub fn to_nobody() {
    PROGRAM.store(0, Ordering::SeqCst);
    HAS_ENDED.store(true, Ordering::SeqCst);
}

/// Gives `signal` its default action back and lets it through.
pub fn restore_default(signal: i32) -> io::Result<()> {
    set_action(signal, libc::SIG_DFL)?;
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is writable, and zeroed memory is a valid sigset_t; `signal`
    // has come, or was the cause of a process's end, so it is a signal number.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
    Ok(())
}

fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: as in `set_action`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is writable; with no new action given, none is set.
    let result = unsafe { libc::sigaction(signal, ptr::null(), &mut action) };
    if result == 0 {
        Ok(action.sa_sigaction == libc::SIG_IGN)
    } else {
        Err(io::Error::last_os_error())
    }
}

fn handle(signal: i32) -> io::Result<()> {
    set_action(signal, on_signal as *const () as libc::sighandler_t)
}

fn set_action(signal: i32, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all fields of sigaction are integers or an optional function
    // pointer, for which zero bytes are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    if [libc::SIG_DFL, libc::SIG_IGN].contains(&handler) {
        action.sa_flags = 0;
    }
    // SAFETY: `action` is initialised, and its handler is SIG_DFL, SIG_IGN or
    // `on_signal`, which has the signature that SA_SIGINFO asks for and does
    // only what is allowed in a handler.
    let result = unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Async-signal-safe: atomics, kill(2) and sigaction(2) only, and errno as it was.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // The interrupted code may be about to read it.
    let errno = Errno::last_raw();
    if ENDS.contains(&signal) {
        CAME_TO_END_US.store(true, Ordering::SeqCst);
        if HAS_ENDED.load(Ordering::SeqCst) {
            output::hurry();
        }
    }
    if signal == libc::SIGCONT {
        CONTINUED.store(true, Ordering::SeqCst);
    }
    // SAFETY: the kernel passes a valid siginfo_t to a handler with SA_SIGINFO.
    let from_kernel = unsafe { (*info).si_code } > 0;
    // Ctrl-C and the like come from the terminal, which tells the program too.
    if !from_kernel || signal == libc::SIGALRM {
        if STOPS.contains(&signal) {
            STOPPED.store(true, Ordering::SeqCst);
        }
        pass_on(signal);
    } else if STOPS.contains(&signal) {
        stop(signal);
    }
    Errno::set_raw(errno);
}

fn pass_on(signal: i32) {
    match PROGRAM.load(Ordering::SeqCst) {
        pid if pid > 0 => send(pid, signal),
        _ => _ = EARLY.fetch_or(1 << signal, Ordering::SeqCst),
    }
}

/// Stops this process as `signal` would without a handler, until it is continued.
fn stop(signal: i32) {
    let _ = restore_default(signal);
    // SAFETY: raise(3) touches no memory of ours; the signal stops us in this call.
    unsafe { libc::raise(signal) };
    let _ = handle(signal);
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes any numbers and touches no memory of ours. The
    // program isn't reaped while PROGRAM names it, so the id is still its own.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handler_leaves_errno_alone() {
        // Nobody has this id, so that kill(2) fails; SIGURG would harm nobody.
        to_program(i32::MAX);
        // SAFETY: all fields of siginfo_t are integers and pointers, for which
        // zero bytes are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        Errno::set_raw(libc::EINTR);
        on_signal(libc::SIGURG, &mut info, ptr::null_mut());
        assert_eq!(Errno::last_raw(), libc::EINTR);
        to_nobody();
    }
}
