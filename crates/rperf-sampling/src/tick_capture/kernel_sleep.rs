//! Whether a thread sleeps in the kernel. A signal would end some of its system calls
//! early: sleeps and polls that are never restarted, and any call on some file systems.
//! Called by the timer, in its signal handler, on one thread at a time.

use crate::timer::other_holders::Found;
use libc::c_int;
use rperf_vm::{NativeId, clock};
use std::array;
use std::io;
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The least number that one of the first files gets. A process has a table for 64 files at first. For
/// a number beyond it the kernel makes a larger one, and who asks for that waits for all
/// CPUs: 5 to 16 ms, many ticks.
const HIGH: c_int = 48;

/// The least number that a further file gets: the larger table is made once, for the first of
/// these files.
const HIGHER: c_int = 192;

/// In place of a system call: the thread is in none, or runs in one.
const RUNNING: libc::c_long = -1;

/// Threads whose files are kept open. Where threads hand the GVL on all the time, each tick
/// finds another one, and to open a file takes some ten times as long as to read it.
const FILES: usize = 64;

/// So many of them have their place in the table of 64.
const FEW: usize = 8;

/// Looks at one thread at a time.
#[derive(Debug)]
pub struct KernelSleep {
    files: [ThreadFile; FILES],
    /// The file that has made room for another thread's.
    old: OpenFile,
    /// How many files there may be.
    most: AtomicUsize,
    /// The one that makes room next.
    next: AtomicUsize,
}

/// The file of a thread that was looked at.
#[derive(Debug)]
struct ThreadFile {
    thread: AtomicU32,
    file: OpenFile,
}

/// A file that we have opened.
#[derive(Debug)]
struct OpenFile {
    /// -1 if there is none.
    number: AtomicI32,
    /// Device and inode of the file. A program may close all files that it doesn't know,
    /// and then another one has the number.
    device: AtomicU64,
    inode: AtomicU64,
}

impl KernelSleep {
    pub fn new() -> Self {
        Self {
            files: array::from_fn(|_| ThreadFile::none()),
            old: OpenFile::none(),
            most: AtomicUsize::new(FILES),
            next: AtomicUsize::new(0),
        }
    }

    /// Whether the kernel tells what threads are at. The file of the calling thread stays open, so that
    /// ticks find one when the process may have no more. Fails if the file can't be opened or read
    /// whatever else is open, as in a sandbox without `/proc`.
    pub fn probe(&self) -> io::Result<()> {
        let file = self.file_of(clock::thread_id());
        let error = io::Error::last_os_error();
        let is_short_of_files = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        if system_call(file).is_some() || (file < 0 && is_short_of_files) {
            return Ok(());
        }
        let message = "the system doesn't tell whether a thread waits (/proc/thread-self/syscall)";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    /// Whether thread `tid` of this process may sleep in the kernel. The kernel
    /// says "running", or the system call that the thread is in (proc(5)). Of one that it says nothing
    /// of, because the process has no room for another file, or the thread is gone, that is
    /// assumed: a signal could end its sleep early.
    /// Async-signal-safe.
    pub fn look(&self, tid: NativeId) -> Found {
        if is_on_cpu(tid) {
            return Found::Awake;
        }
        let call = system_call(self.file_of(tid)).or_else(|| {
            // It is of a thread that has ended, and this one has got its number.
            if let Some(file) = self.files.iter().find(|file| file.is_of(tid)) {
                file.close();
            }
            system_call(self.file_of(tid))
        });
        match call {
            Some(RUNNING) => Found::Awake,
            Some(libc::SYS_futex) => Found::Stopped,
            Some(_) | None => Found::Asleep,
        }
    }

    /// The file of thread `tid`, which is opened if there is none.
    fn file_of(&self, tid: NativeId) -> c_int {
        let files = &self.files[..self.most.load(SeqCst)];
        let known = files.iter().position(|file| file.is_of(tid));
        let free = || files.iter().position(ThreadFile::is_free);
        let place = known
            .or_else(free)
            .unwrap_or_else(|| self.next.fetch_add(1, SeqCst) % files.len());
        let least = if place < FEW { HIGH } else { HIGHER };
        files[place].of(tid, &self.old, least).unwrap_or_else(|| {
            // The process may not have as many files.
            self.most.store(FEW, SeqCst);
            let place = self.next.fetch_add(1, SeqCst) % FEW;
            files[place].of(tid, &self.old, HIGH).unwrap_or(-1)
        })
    }

    /// Closes what was left open, as it takes as long as to open a file: whoever runs for less
    /// would be gone before its signal. After each look, once its signal is sent.
    /// Async-signal-safe.
    pub fn tidy(&self) {
        self.old.close();
    }

    /// Closes all files. Async-signal-safe; while nobody asks.
    pub fn close(&self) {
        self.files.iter().for_each(ThreadFile::close);
        self.old.close();
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
            thread: AtomicU32::new(0),
            file: OpenFile::none(),
        }
    }

    fn is_of(&self, tid: NativeId) -> bool {
        self.thread.load(SeqCst) == tid.0
    }

    fn is_free(&self) -> bool {
        self.is_of(NativeId::NONE)
    }

    /// The file of thread `tid`, with this number at least; if it is another thread's, that one becomes
    /// `old`. `None` if there is no such number.
    fn of(&self, tid: NativeId, old: &OpenFile, least: c_int) -> Option<c_int> {
        if self.is_of(tid) && self.file.is_ours() {
            return Some(self.file.number.load(SeqCst));
        }
        self.thread.store(NativeId::NONE.0, SeqCst);
        old.take(&self.file);
        let mut path = [0u8; 48];
        // It fits, and writing a number into a buffer allocates nothing.
        let _ = write!(&mut path[..], "/proc/self/task/{}/syscall", tid.0);
        // SAFETY: the path ends with a zero byte; async-signal-safe.
        let file = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if file < 0 {
            return Some(file);
        }
        let file = out_of_the_way(file, least)?;
        self.file.set(file);
        self.thread.store(tid.0, SeqCst);
        Some(file)
    }

    fn close(&self) {
        self.thread.store(0, SeqCst);
        self.file.close();
    }
}

impl OpenFile {
    fn none() -> Self {
        Self {
            number: AtomicI32::new(-1),
            device: AtomicU64::new(0),
            inode: AtomicU64::new(0),
        }
    }

    /// Sets the file to this one, which has just been opened.
    fn set(&self, number: c_int) {
        let (device, inode) = identity(number).unwrap_or_default();
        self.device.store(device, SeqCst);
        self.inode.store(inode, SeqCst);
        self.number.store(number, SeqCst);
    }

    /// Closes the file and becomes what `other` is, which is none then.
    fn take(&self, other: &OpenFile) {
        self.close();
        self.device.store(other.device.load(SeqCst), SeqCst);
        self.inode.store(other.inode.load(SeqCst), SeqCst);
        self.number.store(other.number.swap(-1, SeqCst), SeqCst);
    }

    fn is_ours(&self) -> bool {
        self.is(self.number.load(SeqCst))
    }

    fn is(&self, number: c_int) -> bool {
        identity(number) == Some((self.device.load(SeqCst), self.inode.load(SeqCst)))
    }

    fn close(&self) {
        let number = self.number.swap(-1, SeqCst);
        if number >= 0 && self.is(number) {
            // SAFETY: the swap makes this the only one to close it.
            unsafe { libc::close(number) };
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
/// is free is given to the next file. `None`, and it is closed, if the process may have no such
/// number, which there is for the first files in any case.
fn out_of_the_way(file: c_int, least: c_int) -> Option<c_int> {
    // SAFETY: takes numbers; async-signal-safe.
    let moved = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, least) };
    if moved < 0 && least == HIGH {
        return Some(file);
    }
    // SAFETY: it was opened by the caller, who has the other number now, or none.
    unsafe { libc::close(file) };
    (moved >= 0).then_some(moved)
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
    use std::io::Read;
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::UnixStream;
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
            Found::Asleep,
            "nothing is known of it"
        );
    }

    #[test]
    fn a_system_that_tells_of_threads_passes_the_probe() {
        let sleep = KernelSleep::new();
        sleep.probe().expect("Linux has the file");
        assert!(number_of(&sleep, clock::thread_id()) >= HIGH);
    }

    fn number_of(sleep: &KernelSleep, tid: NativeId) -> c_int {
        let file = sleep.files.iter().find(|file| file.is_of(tid));
        file.map_or(-1, |file| file.file.number.load(SeqCst))
    }

    #[test]
    fn a_file_that_makes_room_is_closed_later() {
        let (one, wake_one, end_one) = thread();
        let (other, wake_other, end_other) = thread();
        let sleep = KernelSleep::new();
        sleep.most.store(1, SeqCst);
        assert!(becomes(&sleep, one, true));
        let first = number_of(&sleep, one);
        assert!(becomes(&sleep, other, true));
        assert_eq!(sleep.old.number.load(SeqCst), first);
        assert!(sleep.old.is_ours(), "open still");
        sleep.tidy();
        assert_eq!(sleep.old.number.load(SeqCst), -1);
        assert_eq!(number_of(&sleep, one), -1);
        assert!(identity(number_of(&sleep, other)).is_some());
        wake_one.send(()).expect("a listener");
        wake_other.send(()).expect("a listener");
        end_one();
        end_other();
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
        // It is joined before the kernel has done with it.
        let began = Instant::now();
        while clock::thread_cpu_of(tid).is_some() && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        assert!(!is_on_cpu(tid), "it has ended");
        assert!(!is_on_cpu(NativeId::NONE));
    }

    #[test]
    fn files_of_64_threads_that_are_looked_at_in_turn_stay_open() {
        let threads: Vec<_> = (0..FILES).map(|_| thread()).collect();
        let sleep = KernelSleep::new();
        let numbers = || {
            let numbers = threads.iter().map(|(tid, ..)| number_of(&sleep, *tid));
            numbers.collect::<Vec<_>>()
        };
        assert!(threads.iter().all(|(tid, ..)| becomes(&sleep, *tid, true)));
        let before = numbers();
        assert!(before[..FEW].iter().all(|it| (HIGH..64).contains(it)));
        assert!(before[FEW..].iter().all(|it| *it >= HIGHER));
        assert!(
            threads
                .iter()
                .rev()
                .all(|(tid, ..)| becomes(&sleep, *tid, true))
        );
        assert_eq!(numbers(), before);
        assert_eq!(sleep.old.number.load(SeqCst), -1, "none has made room");
        for (_, wake, end) in threads {
            wake.send(()).expect("a listener");
            end();
        }
    }

    #[test]
    fn a_file_that_can_have_no_high_number_is_closed() {
        let (ours, mut other) = UnixStream::pair().expect("a pair");
        assert_eq!(out_of_the_way(ours.into_raw_fd(), c_int::MAX), None);
        assert_eq!(other.read(&mut [0]).expect("an end"), 0);
    }

    #[test]
    fn its_file_has_a_high_number_that_needs_no_larger_table() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        let number = number_of(&sleep, tid);
        assert!((HIGH..64).contains(&number), "number {number}");
        wake.send(()).expect("a listener");
        end();
    }

    #[test]
    fn a_file_that_somebody_else_has_put_in_its_place_is_left_alone() {
        let (tid, wake, end) = thread();
        let sleep = KernelSleep::new();
        assert!(becomes(&sleep, tid, true));
        let ours = number_of(&sleep, tid);
        assert!(ours >= 0);
        let theirs = std::fs::File::open("/dev/zero").expect("readable");
        // SAFETY: puts another open file in the place of one that only `sleep` uses.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), ours) }, ours);
        assert!(becomes(&sleep, tid, true), "another file tells it");
        assert_ne!(number_of(&sleep, tid), ours);
        assert!(identity(ours).is_some(), "it is open still");
        // SAFETY: as above.
        unsafe { libc::close(ours) };
        drop(sleep);
        wake.send(()).expect("a listener");
        end();
    }
}
