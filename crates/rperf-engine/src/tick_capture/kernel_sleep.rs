//! Whether a thread sleeps in the kernel. A signal would end some of its system calls
//! early: sleeps and polls that are never restarted, and any call on some file systems.
//! Called by the timer, in its signal handler, on one thread at a time.

use crate::clock;
use crate::ids::NativeId;
use crate::other_holders::Found;
use libc::c_int;
use std::array;
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The least number that our file gets. A process has a table for 64 files at first. For a
/// number beyond it the kernel makes a larger one, and who asks for that waits for all
/// CPUs: 5 to 16 ms, many ticks.
const HIGH: c_int = 48;

/// In place of a system call: the thread is in none, or runs in one.
const RUNNING: libc::c_long = -1;

/// Threads whose files are kept open. Where threads hand the GVL on all the time, each tick
/// finds another one, and to open a file takes some ten times as long as to read it.
const FILES: usize = 8;

/// Looks at one thread at a time.
#[derive(Debug)]
pub struct KernelSleep {
    files: [ThreadFile; FILES],
}

/// The file of a thread that was looked at.
#[derive(Debug)]
struct ThreadFile {
    /// The file that is open, -1 if none is, and the thread that it tells of.
    file: AtomicI32,
    thread: AtomicU32,
    /// Device and inode of the file. A program may close all files that it doesn't know,
    /// and then another one has the number.
    device: AtomicU64,
    inode: AtomicU64,
}

impl KernelSleep {
    pub fn new() -> Self {
        Self {
            files: array::from_fn(|_| ThreadFile::none()),
        }
    }

    /// Whether thread `tid` of this process is known to sleep in the kernel. The kernel
    /// says "running", or the system call that the thread is in (proc(5)).
    /// Async-signal-safe.
    pub fn look(&self, tid: NativeId) -> Found {
        if is_on_cpu(tid) {
            return Found::Awake;
        }
        let file = &self.files[tid.0 as usize % FILES];
        let call = system_call(file.of(tid)).or_else(|| {
            // It is of a thread that has ended, and this one has got its number.
            file.close();
            system_call(file.of(tid))
        });
        match call {
            None | Some(RUNNING) => Found::Awake,
            Some(libc::SYS_futex) => Found::Stopped,
            Some(_) => Found::Asleep,
        }
    }

    /// Closes all files. Async-signal-safe; while nobody asks.
    pub fn close(&self) {
        self.files.iter().for_each(ThreadFile::close);
    }
}

impl Drop for KernelSleep {
    fn drop(&mut self) {
        self.close();
    }
}

impl ThreadFile {
    fn none() -> Self {
        Self {
            file: AtomicI32::new(-1),
            thread: AtomicU32::new(0),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    /// The file of thread `tid`.
    fn of(&self, tid: NativeId) -> c_int {
        let file = self.file.load(SeqCst);
        if self.thread.load(SeqCst) == tid.0 && self.is_ours(file) {
            return file;
        }
        self.close();
        let mut path = [0u8; 48];
        // It fits, and writing a number into a buffer allocates nothing.
        let _ = write!(&mut path[..], "/proc/self/task/{}/syscall", tid.0);
        // SAFETY: the path ends with a zero byte; async-signal-safe.
        let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
        let file = out_of_the_way(file);
        let (device, inode) = identity(file).unwrap_or_default();
        self.device.store(device, SeqCst);
        self.inode.store(inode, SeqCst);
        self.file.store(file, SeqCst);
        self.thread.store(tid.0, SeqCst);
        file
    }

    fn is_ours(&self, file: c_int) -> bool {
        identity(file) == Some((self.device.load(SeqCst), self.inode.load(SeqCst)))
    }

    fn close(&self) {
        self.thread.store(0, SeqCst);
        let file = self.file.swap(-1, SeqCst);
        if self.is_ours(file) {
            // SAFETY: the swap makes this the only one to close it.
            unsafe { libc::close(file) };
        }
    }
}

/// Whether thread `tid` is on a CPU: then its clock moves. Two readings of it take half a
/// microsecond. To open a thread's file takes some ten, and what runs for less than that before it
/// gives the GVL up would have none of its ticks.
fn is_on_cpu(tid: NativeId) -> bool {
    let before = clock::thread_cpu_of(tid);
    before.is_some() && before < clock::thread_cpu_of(tid)
}

/// What `file` begins with, if it can be read.
fn system_call(file: c_int) -> Option<libc::c_long> {
    let mut text = [0u8; 8];
    // SAFETY: reads into `text`; a file that isn't open is an error.
    let read = unsafe { libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0) };
    if read < 1 {
        return None;
    }
    if text[0] == b'r' {
        return Some(RUNNING);
    }
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |sum, byte| sum * 10 + libc::c_long::from(byte - b'0')))
}

/// `file` under a number that programs don't count on: they know that the lowest one that
/// is free is given to the next file.
fn out_of_the_way(file: c_int) -> c_int {
    // SAFETY: takes numbers; async-signal-safe.
    let moved = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, HIGH) };
    if moved < 0 {
        // No number is as high as that.
        return file;
    }
    // SAFETY: it was opened by the caller, who has the other number now.
    unsafe { libc::close(file) };
    moved
}

fn identity(file: c_int) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes to `status`; a file that isn't open is an error.
    let failed = unsafe { libc::fstat(file, status.as_mut_ptr()) } != 0;
    // SAFETY: filled in by the call if it has not failed.
    let status = (!failed).then(|| unsafe { status.assume_init() })?;
    Some((status.st_dev, status.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    fn becomes(sleep: &KernelSleep, tid: NativeId, asleep: bool) -> bool {
        let began = Instant::now();
        let is_asleep = || sleep.look(tid) != Found::Awake;
        while is_asleep() != asleep && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        is_asleep() == asleep
    }

    /// A thread that sleeps until it is told to compute, and ends when it is told to.
    fn thread() -> (NativeId, mpsc::Sender<()>, impl FnOnce()) {
        let (tell, told) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = thread::spawn(move || {
            tell.send(clock::thread_id()).expect("a listener");
            let _ = woken.recv();
            while !stop.load(SeqCst) {
                std::hint::spin_loop();
            }
        });
        let end = move || {
            over.store(true, SeqCst);
            thread.join().expect("no panic");
        };
        (told.recv().expect("the id"), wake, end)
    }

    #[test]
    fn a_thread_sleeps_in_a_system_call_and_not_while_it_computes() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        wake.send(()).expect("a listener");
        assert!(becomes(&sleep, tid, false));
        end();
        assert_eq!(
            sleep.look(NativeId(u32::MAX)),
            Found::Awake,
            "nothing is known of it"
        );
    }

    #[test]
    fn a_thread_on_a_cpu_needs_no_file() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        assert!((0..100).all(|_| !is_on_cpu(tid)));
        sleep.close();
        wake.send(()).expect("a listener");
        let began = Instant::now();
        while !is_on_cpu(tid) && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        assert!(began.elapsed() < Duration::from_secs(60));
        end();
        assert!(!is_on_cpu(tid), "it has ended");
        assert!(!is_on_cpu(NativeId::NONE));
    }

    #[test]
    fn files_of_threads_that_are_looked_at_in_turn_stay_open() {
        let (one, wake_one, end_one) = thread();
        let (mut other, mut wake_other, mut end_other) = thread();
        // Their files may have the same place.
        while other.0 as usize % FILES == one.0 as usize % FILES {
            wake_other.send(()).expect("a listener");
            end_other();
            (other, wake_other, end_other) = thread();
        }
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, one, true) && becomes(&sleep, other, true));
        let numbers =
            || [one, other].map(|tid| sleep.files[tid.0 as usize % FILES].file.load(SeqCst));
        let before = numbers();
        wake_one.send(()).expect("a listener");
        assert!(becomes(&sleep, one, false) && becomes(&sleep, other, true));
        assert_eq!(numbers(), before);
        wake_other.send(()).expect("a listener");
        assert!(becomes(&sleep, other, false));
        end_one();
        end_other();
    }

    #[test]
    fn its_file_has_a_high_number_that_needs_no_larger_table() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        let number = sleep.files[tid.0 as usize % FILES].file.load(SeqCst);
        assert!((HIGH..64).contains(&number), "number {number}");
        wake.send(()).expect("a listener");
        end();
    }

    #[test]
    fn a_file_that_somebody_else_has_put_in_its_place_is_left_alone() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        let file = &sleep.files[tid.0 as usize % FILES].file;
        let ours = file.load(SeqCst);
        assert!(ours >= 0);
        let theirs = std::fs::File::open("/dev/zero").expect("readable");
        // SAFETY: puts another open file in the place of one that only `sleep` uses.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), ours) }, ours);
        assert!(becomes(&sleep, tid, true), "another file tells it");
        assert_ne!(file.load(SeqCst), ours);
        assert!(identity(ours).is_some(), "it is open still");
        // SAFETY: as above.
        unsafe { libc::close(ours) };
        drop(sleep);
        wake.send(()).expect("a listener");
        end();
    }
}
