//! How a VM is woken in which all threads wait: the port's thread calls the function with which Ruby
//! handles signals, as if a signal had come for which nothing is to be done. No signal is sent, no
//! disposition is changed, and no trap stays.
//!
//! The function counts the signal and wakes Ruby's timer thread, which has the main thread look for
//! interrupts. There it finds the callback that the port has asked for, and then that nothing is to
//! be done for the signal, and waits on. The number is one that nobody uses: had the program a trap
//! for it, that would run.

#[cfg(target_os = "linux")]
use rperf_session::kernel_text::name_and_fields;
#[cfg(target_os = "linux")]
use std::{
    fs, mem, process, ptr,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};

/// The address of Ruby's function; 0: unknown, or not to be called.
#[cfg(target_os = "linux")]
static HANDLER: AtomicUsize = AtomicUsize::new(0);

/// The first number: SIGRTMIN and so many.
#[cfg(target_os = "linux")]
const FIRST: i32 = 9;

/// A signal that this process does nothing special for.
#[cfg(target_os = "linux")]
pub fn unused_signal() -> Option<i32> {
    let mut numbers = libc::SIGRTMIN() + FIRST..=libc::SIGRTMAX();
    numbers.find(|&number| handler_of(number) == Some(libc::SIG_DFL))
}

/// While Ruby handles the signal `number`: notes by which function. With the GVL.
#[cfg(target_os = "linux")]
pub fn learn(number: i32) {
    let handler = handler_of(number).unwrap_or(libc::SIG_DFL);
    if ![libc::SIG_DFL, libc::SIG_IGN, libc::SIG_ERR].contains(&handler) {
        HANDLER.store(handler, SeqCst);
    }
}

/// Wakes the main thread if it waits; whether it was woken. On the port's thread, and only while
/// there is a VM.
#[cfg(target_os = "linux")]
pub(super) fn wake() -> bool {
    let handler = HANDLER.load(SeqCst);
    if handler == 0 || !main_thread_waits() {
        return false;
    }
    let Some(number) = unused_signal() else {
        return false;
    };
    // SAFETY: the address is that of the function that Ruby has put into a signal's action, which
    // is `void sighandler(int)` for all signals that are trapped. It stays where it is. It is made
    // for any thread at any moment: it saves errno, changes two atomic counts, writes to an eventfd,
    // sets a bit of the main thread's execution context, and calls that thread's function for
    // unblocking if that is declared to be fit for signal handlers and no other Ruby thread lives
    // (zlib, and division of huge numbers: both run, while `main_thread_waits` has just seen that
    // thread wait). There is a VM, since `Port::end` waits until the port's thread asks no more.
    unsafe {
        let handler = mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler);
        handler(number);
    }
    true
}

/// Whether [`wake`] can wake a main thread that waits.
#[cfg(target_os = "linux")]
pub(super) fn is_possible() -> bool {
    HANDLER.load(SeqCst) != 0 && unused_signal().is_some()
}

/// Whether the main thread waits and can be interrupted. One that runs, is stopped or waits for a
/// disk isn't to be disturbed, and couldn't be.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn main_thread_waits() -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", process::id()));
    let stat = stat.unwrap_or_default();
    name_and_fields(&stat).is_some_and(|(_, fields)| fields.starts_with('S'))
}

#[cfg(target_os = "linux")]
fn handler_of(number: i32) -> Option<usize> {
    // SAFETY: all fields are numbers or sets of bits, which may be zero. The kernel only fills the
    // struct in: without a new action nothing changes.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        let result = libc::sigaction(number, ptr::null(), &raw mut action);
        (result == 0).then_some(action.sa_sigaction)
    }
}

/// Elsewhere no signal is known to be unused.
#[cfg(not(target_os = "linux"))]
pub fn unused_signal() -> Option<i32> {
    None
}

/// Never called without a signal.
#[cfg(not(target_os = "linux"))]
pub fn learn(_: i32) {}

/// Whether [`wake`] can wake a main thread that waits: elsewhere it can't.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_possible() -> bool {
    false
}

/// Nothing is woken.
#[cfg(not(target_os = "linux"))]
pub(super) fn wake() -> bool {
    false
}
