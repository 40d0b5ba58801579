//! A copy of this process that the program doesn't see: no method of it waits for it, and no SIGCHLD comes.
//! On Linux.
//!
//! It is made by fork(3), because that has the locks of malloc in a known state in the child, as those of
//! all that registers with pthread_atfork(3). But the child of a plain fork is the program's, whose
//! `Process.wait` would wait for it. So fork is called by a process of our own that shares this one's memory
//! (clone(2) with CLONE_VM and CLONE_VFORK, as posix_spawn(3) does it), while the calling thread waits for
//! it: to fork's locks the two are one thread, as they have the same thread pointer. That process ends at
//! once, so the copy has no parent here. It has no exit signal: the kernel sends none at its end, and
//! wait(2) leaves it to those who ask for such children (__WCLONE), as we do.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Bytes of the stack that the copy runs on: marking functions of extensions run there.
const STACK: usize = 1 << 20;

/// Seconds after which the copy is ended.
const LIMIT: u32 = 30;

/// What the process in between needs, and what it tells.
struct Stage<'a> {
    work: &'a mut dyn FnMut(),
    /// The descriptor that the copy keeps.
    kept: c_int,
    pid: libc::pid_t,
    error: c_int,
}

/// The C library, if it is one in which no copy can be made: in glibc before 2.25, clone(2) overwrites the
/// caller's numbers where memory is shared.
pub fn unfit_library() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: text that stays.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        let version = version.to_string_lossy();
        (!is_fit(&version)).then(|| format!("glibc {version}"))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Whether it is glibc 2.25 or a later one.
#[cfg(target_env = "gnu")]
fn is_fit(version: &str) -> bool {
    let mut numbers = version.split('.').map(|it| it.parse::<u32>().ok());
    let number = (numbers.next().flatten(), numbers.next().flatten());
    matches!(number, (Some(major), Some(minor)) if (major, minor) >= (2, 25))
}

/// Makes the copy, in which `work` runs, and nothing after it: with the descriptor `kept` and no other one,
/// and for half a minute at most. Its number. With the GVL; what `work` may use is what a thread with the
/// GVL may, but it doesn't run Ruby code, has no other threads, and isn't on this thread's stack.
pub fn make(kept: c_int, work: &mut dyn FnMut()) -> io::Result<libc::pid_t> {
    let stack = Stack::new()?;
    let mut stage = Stage {
        work,
        kept,
        pid: -1,
        error: 0,
    };
    let previous = block_signals();
    // SAFETY: the stack is there, and ours, until the call returns, which it does when the process that it
    // makes has ended (CLONE_VFORK): until then this thread doesn't run, so `stage` has one user.
    let made = unsafe {
        libc::clone(
            begin,
            stack.top(),
            libc::CLONE_VM | libc::CLONE_VFORK,
            (&raw mut stage).cast(),
        )
    };
    let failed = io::Error::last_os_error();
    let status = if made > 0 { await_end(made) } else { 0 };
    // SAFETY: the set is that which was in force.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const previous, ptr::null_mut()) };
    match (made, stage.pid) {
        (..0, _) => Err(failed),
        (_, ..=0) if libc::WIFSIGNALED(status) => {
            let signal = libc::WTERMSIG(status);
            let error = format!("the process that was to make it was ended by signal {signal}");
            Err(io::Error::other(error))
        }
        (_, ..=0) => Err(io::Error::from_raw_os_error(stage.error)),
        (_, pid) => Ok(pid),
    }
}

/// The process in between.
extern "C" fn begin(stage: *mut c_void) -> c_int {
    // SAFETY: what `make` has handed over, which waits.
    let stage = unsafe { &mut *stage.cast::<Stage<'_>>() };
    // SAFETY: as far as fork is concerned this is the thread that waits for us.
    match unsafe { libc::fork() } {
        0 => {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                shut_off(stage.kept);
                (stage.work)();
            }));
            // SAFETY: ends the process, without anything that was registered for its end.
            unsafe { libc::_exit(0) }
        }
        pid => {
            stage.pid = pid;
            stage.error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        }
    }
    0
}

/// Takes the process in between from the kernel, which has ended. Its status.
fn await_end(pid: libc::pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: it is a child of ours that nobody else knows.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::__WCLONE) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    status
}

/// Blocks all signals, so that the process in between runs no handler of the program. Those that were
/// blocked before.
fn block_signals() -> libc::sigset_t {
    let (mut all, mut previous) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: sigfillset initialises `all`, and pthread_sigmask `previous`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), previous.as_mut_ptr());
        previous.assume_init()
    }
}

/// In the copy, before anything else: it reaches nobody but by `kept`, is in no group of processes that is
/// stopped together, has handlers of no signal, leaves no core (it has all that the program knows), takes no
/// CPU that others want, is the first one to go where memory gets short, and ends soon.
fn shut_off(kept: c_int) {
    // SAFETY: system calls on numbers, and on memory of this function.
    unsafe {
        libc::setsid();
        let prefer = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if prefer >= 0 {
            libc::write(prefer, c"1000".as_ptr().cast(), 4);
        }
        close_others(kept);
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut empty = MaybeUninit::uninit();
        libc::sigemptyset(empty.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, empty.as_ptr(), ptr::null_mut());
        libc::alarm(LIMIT);
    }
}

/// Closes all descriptors but this one.
///
/// # Safety
/// In a process in which nothing uses another one.
unsafe fn close_others(kept: c_int) {
    let close_range = |first: c_int, last: libc::c_uint| {
        // SAFETY: as the caller promises.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
    };
    let below = kept == 0 || close_range(0, (kept - 1) as libc::c_uint);
    if below && close_range(kept + 1, libc::c_uint::MAX) {
        return;
    }
    // Linux before 5.9.
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: as the caller promises.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for number in (0..limit.rlim_max.min(1 << 20) as c_int).filter(|it| *it != kept) {
            libc::close(number);
        }
    }
}

/// A stack for the copy.
struct Stack(*mut c_void);

impl Stack {
    fn new() -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
        );
        // SAFETY: new memory, whose lowest page is kept from use.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), STACK, access, kind, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::mprotect(start, 4096, libc::PROT_NONE);
            Ok(Stack(start))
        }
    }

    fn top(&self) -> *mut c_void {
        self.0.wrapping_byte_add(STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nobody runs on it any more.
        unsafe { libc::munmap(self.0, STACK) };
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::is_fit;

    #[test]
    fn old_libraries_are_told() {
        let fit = ["2.25", "2.36", "2.41.9000", "3.0"];
        assert!(fit.into_iter().all(is_fit));
        let unfit = ["2.24", "2.17", "1.99", "", "2"];
        assert!(!unfit.into_iter().any(is_fit));
    }
}
