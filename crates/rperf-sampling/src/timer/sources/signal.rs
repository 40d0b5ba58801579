//! The POSIX timer: a signal to the worker thread at each tick. The handler runs
//! on the worker only and touches nothing but atomics, its own schedule and
//! `timer_settime`, all async-signal-safe. nix has no real-time signals, so this
//! is libc.

use super::schedule::Schedule;
use super::source::Source;
use crate::timer::ticks::{AfterTick, Ticks};
use rperf_vm::system_calls::{Calls, may};
use rperf_vm::{NativeId, clock};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// The timer whose ticks the handler serves; null between sessions.
static ACTIVE: AtomicPtr<SignalTimer> = AtomicPtr::new(ptr::null_mut());

/// The worker that ACTIVE belongs to. Anybody may send the signal to any thread:
/// only this one looks at ACTIVE, and only it ends it.
static WORKER: AtomicU32 = AtomicU32::new(0);

/// The default signal: SIGRTMIN+8.
pub fn default_signal() -> i32 {
    libc::SIGRTMIN() + 8
}

/// Whether `signal` is a real-time signal, which no program gets by default.
pub fn is_usable(signal: i32) -> bool {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
}

/// A one-shot POSIX timer that its handler arms again for the next deadline.
#[derive(Debug)]
pub struct SignalTimer {
    ticks: Arc<Ticks>,
    /// Belongs to the owner of the timer ([`TimerState`](crate::timer::timer_state::TimerState)).
    schedule: UnsafeCell<Schedule>,
    timer: libc::timer_t,
    signal: i32,
    previous_action: libc::sigaction,
}

// SAFETY: `timer` is an id, not memory; `schedule` has one owner at a time, the timer's, which is
// passed on by SeqCst exchanges.
unsafe impl Send for SignalTimer {}
// SAFETY: as for Send.
unsafe impl Sync for SignalTimer {}

impl SignalTimer {
    /// Makes the timer, at rest, for the calling thread (the worker), and installs
    /// the handler. Fails if the signal has a handler already.
    pub fn open(
        signal: i32,
        schedule: Schedule,
        ticks: Arc<Ticks>,
    ) -> io::Result<Arc<SignalTimer>> {
        let previous_action = install_handler(signal)?;
        let worker = clock::thread_id();
        let timer = match create_timer(signal, worker) {
            Ok(timer) => timer,
            Err(error) => {
                restore_handler(signal, &previous_action);
                return Err(error);
            }
        };
        let timer = Arc::new(SignalTimer {
            ticks,
            schedule: UnsafeCell::new(schedule),
            timer,
            signal,
            previous_action,
        });
        ACTIVE.store(Arc::as_ptr(&timer).cast_mut(), SeqCst);
        WORKER.store(worker.0, SeqCst);
        set_blocked(signal, false);
        Ok(timer)
    }

    /// The timer has expired: ticks, and starts it again. In the handler.
    fn expired(&self) {
        if let AfterTick::GoOn { in_slices } = self.ticks.tick() {
            // SAFETY: the timer goes on, so the handler owns it.
            let deadline = unsafe { &mut *self.schedule.get() }.advance(in_slices);
            self.set(deadline);
            // Last: who stops it from here on stops what was set.
            self.ticks.timer().set();
        }
    }

    /// 0 stops it.
    fn set(&self, deadline: u64) {
        let value = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                // The crate libc deprecates the type's name for musl.
                tv_sec: (deadline / 1_000_000_000) as _,
                tv_nsec: (deadline % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: `value` is a valid itimerspec and the timer exists until `stop`.
        unsafe {
            libc::timer_settime(
                self.timer,
                libc::TIMER_ABSTIME,
                &raw const value,
                ptr::null_mut(),
            )
        };
    }
}

impl Source for SignalTimer {
    fn arm(&self) {
        let timer = self.ticks.timer();
        // SAFETY: this caller has ended the timer's rest, so it owns the timer.
        let schedule = unsafe { &mut *self.schedule.get() };
        let deadline = schedule.restart();
        timer.note_start(schedule.interval());
        // First: a tick would be none before. Who stops the timer meanwhile is late, and it expires for
        // nobody, once.
        timer.set();
        self.set(deadline);
    }

    fn stop_ticks(&self, now: u64) {
        let timer = self.ticks.timer();
        if !timer.take() {
            return;
        }
        timer.note_stop(now);
        // SAFETY: this caller has taken the timer, so it owns it.
        unsafe { &mut *self.schedule.get() }.stop(now);
        self.set(0);
        if !self.ticks.comes_to_rest() {
            self.arm();
        }
    }

    /// The handler does it all. It interrupts the worker's wait without ending it.
    fn poll(&self) -> Option<Duration> {
        None
    }

    fn stop(&self) {
        set_blocked(self.signal, true);
        // SAFETY: the timer was made in `open` and is deleted once: the worker
        // calls this as it ends.
        unsafe { libc::timer_delete(self.timer) };
        WORKER.store(0, SeqCst);
        ACTIVE.store(ptr::null_mut(), SeqCst);
        restore_handler(self.signal, &self.previous_action);
    }
}

/// The handler. `errno` is saved, as for any handler that makes system calls.
extern "C" fn on_signal(_signal: libc::c_int) {
    // SAFETY: errno's address is valid on every thread.
    let errno = unsafe { *libc::__errno_location() };
    if clock::thread_id().0 == WORKER.load(SeqCst) {
        // SAFETY: this is the worker, so `stop`, which runs there too, isn't
        // running: ACTIVE is null or points to the timer that it has not ended.
        if let Some(timer) = unsafe { ACTIVE.load(SeqCst).as_ref() } {
            timer.expired();
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

fn install_handler(signal: i32) -> io::Result<libc::sigaction> {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only reads the present one into `previous`.
    if unsafe { libc::sigaction(signal, ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled in by the call above; all-zero bytes are valid as well.
    let previous = unsafe { previous.assume_init() };
    if previous.sa_sigaction != libc::SIG_DFL {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("signal {signal} has a handler already; pass another number as signal:"),
        ));
    }
    // SAFETY: a zeroed sigaction is valid: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_signal as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is valid and its handler async-signal-safe.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(previous)
}

/// In a forked child: the timer is gone, the handler goes. Async-signal-safe.
pub fn forget_in_child() {
    WORKER.store(0, SeqCst);
    let timer = ACTIVE.swap(ptr::null_mut(), SeqCst);
    // SAFETY: the child has a copy of the parent's memory, in which ACTIVE points
    // to a timer that nobody frees in the child.
    if let Some(timer) = unsafe { timer.as_ref() } {
        restore_handler(timer.signal, &timer.previous_action);
    }
}

fn restore_handler(signal: i32, previous: &libc::sigaction) {
    // SAFETY: `previous` is what the system gave for this signal.
    unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
}

fn create_timer(signal: i32, worker: NativeId) -> io::Result<libc::timer_t> {
    if !may(Calls::Timer) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: a zeroed sigevent is valid.
    let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_notify_thread_id = worker.0 as libc::c_int;
    let mut timer: libc::timer_t = ptr::null_mut();
    // SAFETY: `event` and `timer` are valid for the call.
    let failed =
        unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0;
    if failed {
        return Err(io::Error::last_os_error());
    }
    // A filter may refuse to start it, which nobody would notice later.
    let at_rest = MaybeUninit::<libc::itimerspec>::zeroed();
    // SAFETY: the timer exists, and a zeroed time is valid.
    if unsafe { libc::timer_settime(timer, 0, at_rest.as_ptr(), ptr::null_mut()) } == 0 {
        return Ok(timer);
    }
    let error = io::Error::last_os_error();
    // SAFETY: nobody else knows the timer.
    unsafe { libc::timer_delete(timer) };
    Err(error)
}

/// Blocks or unblocks `signal` for the calling thread.
fn set_blocked(signal: i32, blocked: bool) {
    let how = if blocked {
        libc::SIG_BLOCK
    } else {
        libc::SIG_UNBLOCK
    };
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises `set`, which the next two calls use.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick_capture::signal::HANDLERS;
    use crate::timer::pace::Pace;

    const INTERVAL: u64 = 10_000_000_000;
    const SEQ: u32 = 1;

    /// A thread takes the GVL. Returns whether that armed the timer.
    fn take_gvl(timer: &SignalTimer) -> bool {
        let arms = timer.ticks.set_holder(SEQ, clock::thread_id());
        if arms {
            timer.arm();
        }
        arms
    }

    /// Until it expires, in ns; 0 if it is stopped.
    fn left(timer: &SignalTimer) -> u64 {
        let mut value = MaybeUninit::<libc::itimerspec>::zeroed();
        // SAFETY: the timer exists, and `value` is valid for the call.
        let failed = unsafe { libc::timer_gettime(timer.timer, value.as_mut_ptr()) } != 0;
        assert!(!failed);
        // SAFETY: filled in; all-zero bytes are valid as well.
        let left = unsafe { value.assume_init() }.it_value;
        left.tv_sec as u64 * 1_000_000_000 + left.tv_nsec as u64
    }

    #[test]
    fn a_stop_keeps_what_is_left_of_the_gap() {
        let _one_at_a_time = HANDLERS.lock();
        let ticks = Arc::new(Ticks::new(|| (), |_, _| true));
        let schedule = Schedule::new(Arc::new(Pace::new(INTERVAL)), 3);
        let timer = SignalTimer::open(default_signal(), schedule, Arc::clone(&ticks));
        let timer = timer.expect("a timer");
        assert_eq!(left(&timer), 0);
        assert!(take_gvl(&timer));
        let first = left(&timer);
        assert!(
            first > INTERVAL / 100,
            "{first} ns are time enough for the test"
        );

        timer.stop_ticks(clock::monotonic_ns());
        assert!(ticks.armed() && left(&timer) > 0, "somebody has the GVL");

        ticks.clear_holder(SEQ);
        let stopped = clock::monotonic_ns();
        timer.stop_ticks(stopped);
        assert!(!ticks.armed());
        assert_eq!(left(&timer), 0);
        timer.stop_ticks(stopped);
        std::thread::sleep(Duration::from_millis(20));

        let before = clock::monotonic_ns();
        assert!(take_gvl(&timer) && !take_gvl(&timer));
        let after = clock::monotonic_ns();
        let rested = before - stopped;
        assert!(left(&timer) <= first, "no other gap");
        assert!(
            left(&timer) + (after - before) + rested >= first,
            "time at rest counts"
        );
        timer.stop();
    }
}
