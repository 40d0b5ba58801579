//! What the threads of this process do as the kernel sees them: a process may always ask that of
//! itself. On the port's thread; nothing where there is no /proc.

#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's files, which nobody can exchange"
)]

pub(crate) mod sockets;

use crate::socket::descriptors::Guarded;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use rperf_model::Order;
use rperf_protocol::stacks::SystemCall;
use rperf_session::kernel_text::name_and_fields;
use sockets::Sockets;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

/// Has the native threads of this process.
const TASKS: &str = "/proc/self/task";

/// Room for a line: ten numbers.
const LINE: usize = 256;

/// Descriptors that are told of a thread that waits for several.
const MOST: usize = 3;

/// Bytes of a pollfd, which begins with the descriptor.
const POLLFD: usize = size_of::<libc::pollfd>();

/// Descriptors that are looked for in the sets of a `select`.
const SET: u64 = 1 << 14;

/// Bytes that are read at most of what the kernel says of an epoll descriptor.
const EPOLL: u64 = 4096;

/// A native thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeThread {
    /// Its number.
    pub tid: i32,
    /// Its name.
    pub name: String,
    /// Whether it runs, or is ready to.
    pub is_running: bool,
    /// The system call in which it waits, and on what; empty if it doesn't.
    pub waits_in: String,
}

/// All native threads.
pub fn native_threads() -> Vec<NativeThread> {
    let entries = fs::read_dir(TASKS).into_iter().flatten();
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let waits = Waits::begin();
    let threads = numbers.filter_map(|tid| seen(tid, &waits));
    let mut threads: Vec<_> = threads.collect();
    threads.order_by_key(|thread| thread.tid);
    threads
}

/// The native thread of this number; `None` if it has ended.
pub fn native_thread(tid: i32) -> Option<NativeThread> {
    seen(tid, &Waits::begin())
}

fn seen(tid: i32, waits: &Waits) -> Option<NativeThread> {
    let stat = fs::read_to_string(format!("{TASKS}/{tid}/stat")).ok()?;
    let (name, fields) = name_and_fields(&stat)?;
    Some(NativeThread {
        tid,
        name: name.into(),
        is_running: fields.starts_with('R'),
        waits_in: waits.of(tid),
    })
}

/// What native threads wait for now. The kernel has a file for each, of which there may be thousands:
/// they are looked up in their directory, and read at once.
struct Waits {
    tasks: Option<Guarded<OwnedFd>>,
    sockets: Sockets,
}

impl Waits {
    /// For some threads in a row.
    fn begin() -> Self {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let tasks = open(TASKS, flags, Mode::empty());
        Waits {
            tasks: tasks.ok().map(Guarded::new),
            sockets: Sockets::default(),
        }
    }

    /// The system call in which the native thread of this number waits, and on what; empty if it
    /// doesn't, or there is no such thread.
    fn of(&self, tid: i32) -> String {
        let line = self.line(tid);
        line.map_or_else(String::new, |it| described(&it, &self.sockets))
    }

    fn line(&self, tid: i32) -> Option<String> {
        let path = format!("{tid}/syscall");
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = openat(&**self.tasks.as_ref()?, &*path, flags, Mode::empty());
        let mut line = [0; LINE];
        let length = File::from(file.ok()?).read(&mut line).ok()?;
        String::from_utf8(line[..length].into()).ok()
    }
}

/// What native threads waited for just after their stacks were taken.
#[derive(Default)]
pub struct Seen(pub(super) HashMap<i32, String>);

impl Seen {
    /// Looks now.
    pub fn look(&mut self, tids: &[i32]) {
        let waits = Waits::begin();
        self.0.extend(tids.iter().map(|&tid| (tid, waits.of(tid))));
    }

    /// What the thread of this number waited for, as [`Waits::of`] has it.
    pub fn of(&self, tid: i32) -> &str {
        self.0.get(&tid).map_or("", |it| it)
    }
}

/// What a thread waits in and on, in words. The kernel's `line` has the number of the call, and its
/// arguments in hexadecimal.
fn described(line: &str, sockets: &Sockets) -> String {
    let mut words = line.split_ascii_whitespace();
    let number: Option<libc::c_long> = words.next().and_then(|word| word.parse().ok());
    let Some(number) = number else {
        return String::new();
    };
    let arguments: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let argument = |place: usize| arguments.get(place).copied().unwrap_or(0);
    let Some((name, what)) = call(number) else {
        return format!("system call {number}");
    };
    let descriptors = match what {
        What::Descriptor => vec![argument(0) as RawFd],
        What::Polled => polled(argument(0), argument(1)),
        What::Selected => selected(argument(0), &[argument(1), argument(2)]),
        What::Epoll => registered(argument(0) as RawFd),
        What::Nothing => Vec::new(),
    };
    let known = descriptors.iter().map(|&it| sockets.describe(it));
    let mut known: Vec<_> = known.take(MOST).filter(|it| !it.is_empty()).collect();
    known.dedup();
    let more = if descriptors.len() > MOST {
        " and more"
    } else {
        ""
    };
    let target = &(known.join(", ") + more);
    SystemCall { name, target }.to_string()
}

/// What a call's first argument is.
#[derive(Clone, Copy)]
enum What {
    Descriptor,
    /// An array of descriptors; the second argument is their number.
    Polled,
    /// More than the largest descriptor; sets of descriptors follow.
    Selected,
    /// An epoll descriptor.
    Epoll,
    Nothing,
}

#[cfg(target_os = "linux")]
fn call(number: libc::c_long) -> Option<(&'static str, What)> {
    use What::{Descriptor, Epoll, Nothing, Polled, Selected};
    let known = [
        (libc::SYS_read, "read", Descriptor),
        (libc::SYS_write, "write", Descriptor),
        (libc::SYS_readv, "read", Descriptor),
        (libc::SYS_writev, "write", Descriptor),
        (libc::SYS_recvfrom, "recv", Descriptor),
        (libc::SYS_recvmsg, "recv", Descriptor),
        (libc::SYS_sendto, "send", Descriptor),
        (libc::SYS_sendmsg, "send", Descriptor),
        (libc::SYS_accept, "accept", Descriptor),
        (libc::SYS_accept4, "accept", Descriptor),
        (libc::SYS_connect, "connect", Descriptor),
        (libc::SYS_flock, "lock of a file", Descriptor),
        (libc::SYS_fcntl, "lock of a file", Descriptor),
        (libc::SYS_openat, "open", Nothing),
        (libc::SYS_fsync, "sync", Descriptor),
        (libc::SYS_fdatasync, "sync", Descriptor),
        (libc::SYS_ppoll, "poll", Polled),
        (libc::SYS_pselect6, "select", Selected),
        (libc::SYS_epoll_pwait, "epoll", Epoll),
        (libc::SYS_futex, "waits to be woken", Nothing),
        (libc::SYS_nanosleep, "sleep", Nothing),
        (libc::SYS_clock_nanosleep, "sleep", Nothing),
        (libc::SYS_wait4, "waits for a child", Nothing),
        (libc::SYS_waitid, "waits for a child", Nothing),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, "open", Nothing),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, "poll", Polled),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, "select", Selected),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll", Epoll),
    ];
    let found = known.into_iter().find(|it| it.0 == number);
    found.map(|(_, name, what)| (name, what))
}

/// Numbers of calls are not told.
#[cfg(not(target_os = "linux"))]
fn call(_: libc::c_long) -> Option<(&'static str, What)> {
    None
}

/// The descriptors in an array of this process; one more than [`MOST`] if there are more.
fn polled(address: u64, count: u64) -> Vec<RawFd> {
    let mut bytes = [0; POLLFD * (MOST + 1)];
    let length = usize::try_from(count).map_or(bytes.len(), |it| POLLFD.saturating_mul(it));
    let array = &mut bytes[..length.min(POLLFD * (MOST + 1))];
    if !read_memory(address, array) {
        return Vec::new();
    }
    let elements = array.chunks_exact(POLLFD);
    let of = |it: &[u8]| it.first_chunk().map(|it| RawFd::from_ne_bytes(*it));
    elements.filter_map(of).collect()
}

/// The descriptors in the sets at these addresses; one more than [`MOST`] if there are more.
fn selected(bound: u64, sets: &[u64]) -> Vec<RawFd> {
    let words = bound.min(SET).div_ceil(u64::from(u64::BITS)) as usize;
    let mut found = Vec::new();
    for &address in sets.iter().filter(|&&it| it != 0) {
        let mut bytes = vec![0; words * size_of::<u64>()];
        if !read_memory(address, &mut bytes) {
            continue;
        }
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|it| u64::from_ne_bytes(*it));
        let places = (0..).step_by(u64::BITS as usize).zip(words);
        found.extend(places.flat_map(|(first, word)| {
            let set = (0..u64::BITS as RawFd).filter(move |it| word >> it & 1 == 1);
            set.map(move |it| first + it)
        }));
    }
    found.truncate(MOST + 1);
    found
}

/// The kernel reads it, as the thread may have gone on, and its stack with it.
fn read_memory(address: u64, bytes: &mut [u8]) -> bool {
    let memory = File::open("/proc/self/mem");
    let read = memory.and_then(|memory| memory.read_exact_at(bytes, address));
    read.is_ok()
}

/// The descriptors that an epoll descriptor is for; one more than [`MOST`] if there are more.
fn registered(number: RawFd) -> Vec<RawFd> {
    let mut text = String::new();
    let file = File::open(format!("/proc/self/fdinfo/{number}"));
    let _ = file.and_then(|file| file.take(EPOLL).read_to_string(&mut text));
    let lines = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    let numbers = lines.filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok());
    numbers.take(MOST + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    #[cfg(target_os = "linux")]
    fn lines_that_tell_no_call_are_no_wait() {
        for line in ["", "running\n", "-1 0x7ffc 0x7f00\n", "x y z"] {
            assert!(
                described(line, &Sockets::default()).is_empty() || line.starts_with("-1"),
                "{line}"
            );
        }
        assert_eq!(
            described("100000 0x1 0x2", &Sockets::default()),
            "system call 100000"
        );
        let futex = libc::SYS_futex;
        assert_eq!(
            described(&format!("{futex} 0x1 0x80"), &Sockets::default()),
            "waits to be woken"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_that_waits_for_a_peer_says_for_which() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("connected");
        let (server, _) = listener.accept().expect("a client");
        std::thread::scope(|scope| {
            scope.spawn(move || client.read(&mut [0]));
            let expected = format!("recv: {address}");
            let began = Instant::now();
            while !native_threads()
                .iter()
                .any(|thread| thread.waits_in == expected)
            {
                assert!(began.elapsed() < Duration::from_secs(20));
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(server);
        });
    }
}
