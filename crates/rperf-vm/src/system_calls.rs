//! Which of our system calls a filter (seccomp) ends the process for. A filter can't be read, so a child
//! process tries the calls as the extension is loaded, when the program is small still. On Linux; any
//! thread.

use std::ffi::{c_int, c_void};
use std::fs;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

/// System calls that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// `getpriority`, `sched_setattr` and `prctl`.
    ShortSlices,
    /// `timer_create` and `timer_settime`.
    Timer,
    /// What makes a copy of the process that the program doesn't see: a process that shares its memory, and
    /// a fork of that.
    Copy,
}

/// What was learnt.
struct Learnt {
    /// How many filters there were, if that could be known.
    filters: Option<u32>,
    short_slices: bool,
    timer: bool,
    copy: bool,
}

static LEARNT: OnceLock<Learnt> = OnceLock::new();

/// Has a child process try the calls, if there is a filter, or may be one.
pub fn learn() {
    let filters = filters();
    LEARNT.get_or_init(|| {
        let none = filters == Some(0);
        let all = none || survives(make_all);
        Learnt {
            filters,
            short_slices: all || survives(make_short_slices),
            timer: all || survives(make_timer),
            copy: none || survives(make_copy),
        }
    });
}

/// Whether this thread may make the calls: no filter has come since that may end it for them. Where that
/// can't be known just now, none has.
pub fn may(calls: Calls) -> bool {
    let filters = filters();
    let is_known = |it: &&Learnt| filters.is_none() || it.filters == filters;
    match (LEARNT.get().filter(is_known), calls) {
        (None, _) => filters == Some(0),
        (Some(learnt), Calls::ShortSlices) => learnt.short_slices,
        (Some(learnt), Calls::Timer) => learnt.timer,
        (Some(learnt), Calls::Copy) => learnt.copy,
    }
}

/// How many filters the calling thread has; 1 for some of an unknown number, and `None` if that can't be
/// known.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn filters() -> Option<u32> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    Some(filters_in(&status))
}

fn filters_in(status: &str) -> u32 {
    let field = |name: &str| {
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().parse::<u32>().ok()
    };
    match field("Seccomp") {
        // Kernels before 5.9 don't say how many.
        Some(2) => field("Seccomp_filters").unwrap_or(1),
        _ => 0,
    }
}

/// Whether a child process that makes these calls lives on; false if there can be no child.
fn survives(calls: fn()) -> bool {
    // SAFETY: a copy of this process, without its other threads, as fork makes it. It makes system calls
    // only, and ends. It sends no signal at its end, so the program doesn't hear of it, nor do its waits.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    if child == 0 {
        // SAFETY: only sets what a signal does in this process, in which the program's own handler doesn't
        // run, and that no core is written: it would be one of the whole program. Ruby itself uses prctl.
        unsafe {
            libc::signal(libc::SIGSYS, libc::SIG_DFL);
            libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong, 0, 0, 0);
        }
        calls();
        // SAFETY: ends this process at once.
        unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    }
    child > 0 && ends_well(child as libc::pid_t)
}

/// Whether the child ends by itself, and well.
fn ends_well(child: libc::pid_t) -> bool {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for the call. A child without a signal is waited for by __WALL only.
        let waited = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if waited == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return false;
        }
    }
}

/// Makes the calls of [`Calls::ShortSlices`], and nothing else.
pub(crate) fn make_short_slices() {
    #[repr(C)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // The thread keeps the nice value it has inherited.
    // SAFETY: getpriority has no memory arguments; 0 means this thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: 100_000,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attr` is a valid sched_attr of the size it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    // SAFETY: sets this thread's timer slack (ns); no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Makes all calls, and nothing else.
fn make_all() {
    make_short_slices();
    make_timer();
}

/// Makes the calls of [`Calls::Timer`], and nothing else.
fn make_timer() {
    let mut event = MaybeUninit::<libc::sigevent>::zeroed();
    let mut timer: libc::c_int = 0;
    let at_rest = MaybeUninit::<libc::itimerspec>::zeroed();
    // SAFETY: all are valid for the calls; a zeroed event with no notification is valid, and so is a zeroed
    // time. The timer ends with the process.
    unsafe {
        (*event.as_mut_ptr()).sigev_notify = libc::SIGEV_NONE;
        libc::syscall(
            libc::SYS_timer_create,
            libc::CLOCK_MONOTONIC,
            event.as_mut_ptr(),
            ptr::from_mut(&mut timer),
        );
        let none = ptr::null_mut::<libc::itimerspec>();
        libc::syscall(libc::SYS_timer_settime, timer, 0, at_rest.as_ptr(), none);
    }
}

/// Makes the calls of [`Calls::Copy`], and ends the process with status 1 if one of the two that they make
/// is ended for them. System calls alone: fork(3) would want locks that other threads may have.
fn make_copy() {
    const STACK: usize = 64 << 10;
    extern "C" fn between(_: *mut c_void) -> c_int {
        // SAFETY: as fork makes it; the process makes system calls only, and ends.
        unsafe {
            let mut number: c_int = 0;
            let flags = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
            let place = &raw mut number;
            let copy = fork(flags, place);
            if copy == 0 {
                make_calls_of_copy();
                libc::syscall(libc::SYS_exit_group, 0);
            }
            c_int::from(copy > 0 && !ends_well(copy as libc::pid_t))
        }
    }
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory, on which only the process runs that is made here, while this one waits.
    let is_well = unsafe {
        // Its child's end is no news for a handler of the program's.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let stack = libc::mmap(ptr::null_mut(), STACK, access, kind, -1, 0);
        if stack == libc::MAP_FAILED {
            return;
        }
        let flags = libc::CLONE_VM | libc::CLONE_VFORK;
        let made = libc::clone(
            between,
            stack.wrapping_byte_add(STACK),
            flags,
            ptr::null_mut(),
        );
        // One that can't be made is an error then, too.
        made < 0 || ends_well(made)
    };
    if !is_well {
        // SAFETY: ends this process at once.
        unsafe { libc::syscall(libc::SYS_exit_group, 1) };
    }
}

/// The system call that fork(3) makes.
///
/// # Safety
/// The child makes system calls only.
unsafe fn fork(flags: c_int, number: *mut c_int) -> libc::c_long {
    let flags = libc::c_long::from(flags);
    // The last two arguments have another order on other machines.
    #[cfg(target_arch = "x86_64")]
    let (third, fourth) = (number.expose_provenance(), 0_usize);
    #[cfg(not(target_arch = "x86_64"))]
    let (third, fourth) = (0_usize, number.expose_provenance());
    // SAFETY: the number's place is the caller's.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, third, fourth) }
}

/// Makes the calls with which the copy shuts itself off. They have no effect beyond this process.
fn make_calls_of_copy() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: system calls on numbers, and on memory of this function.
    unsafe {
        libc::setsid();
        libc::syscall(
            libc::SYS_close_range,
            libc::c_uint::MAX,
            libc::c_uint::MAX,
            0,
        );
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
        libc::alarm(30);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_if_the_system_says_so() {
        for (status, count) in [
            ("Name:\truby\nSeccomp:\t0\nSeccomp_filters:\t0\n", 0),
            ("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n", 3),
            ("Seccomp:\t2\n", 1),
            ("", 0),
        ] {
            assert_eq!(filters_in(status), count, "{status:?}");
        }
    }

    #[test]
    fn a_child_tells_what_kills_it() {
        fn is_killed() {
            // SAFETY: ends the child, as a filter does.
            unsafe {
                libc::syscall(
                    libc::SYS_kill,
                    libc::syscall(libc::SYS_getpid),
                    libc::SIGSYS,
                )
            };
        }
        assert!(survives(|| {}));
        assert!(survives(make_timer));
        assert!(survives(make_short_slices));
        assert!(survives(make_copy));
        fn ends_ill() {
            // SAFETY: ends the child.
            unsafe { libc::syscall(libc::SYS_exit_group, 1) };
        }
        assert!(!survives(is_killed));
        assert!(!survives(ends_ill));
    }
}
