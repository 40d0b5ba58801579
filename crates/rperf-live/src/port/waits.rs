//! What the threads of this process do as the kernel sees them: a process may always ask that of
//! itself. On the port's thread; nothing where there is no /proc.

use super::descriptors::Guarded;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, UnixAddr, getpeername};
use nix::sys::stat::Mode;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Has the native threads of this process.
const TASKS: &str = "/proc/self/task";

/// Room for a line: ten numbers.
const LINE: usize = 256;

/// The beginning of a pollfd: the descriptor.
const POLLFD: usize = 4;

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
    threads.sort_by_key(|thread| thread.tid);
    threads
}

/// One of them; `None` if it has ended.
pub fn native_thread(tid: i32) -> Option<NativeThread> {
    seen(tid, &Waits::begin())
}

fn seen(tid: i32, waits: &Waits) -> Option<NativeThread> {
    let stat = fs::read_to_string(format!("{TASKS}/{tid}/stat")).ok()?;
    let (head, state) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    Some(NativeThread {
        tid,
        name: name.into(),
        is_running: state.starts_with('R'),
        waits_in: waits.of(tid),
    })
}

/// What native threads wait for now. The kernel has a file for each, of which there may be thousands:
/// they are looked up in their folder, and read at once.
struct Waits {
    tasks: Option<Guarded<OwnedFd>>,
}

impl Waits {
    /// For some threads in a row.
    fn begin() -> Self {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let tasks = open(TASKS, flags, Mode::empty());
        Waits {
            tasks: tasks.ok().map(Guarded::new),
        }
    }

    /// The system call in which the native thread of this number waits, and on what; empty if it
    /// doesn't, or there is no such thread.
    fn of(&self, tid: i32) -> String {
        self.line(tid).map_or_else(String::new, |it| described(&it))
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
pub struct Seen(HashMap<i32, String>);

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

/// Of the kernel's line: the number of the call, and its arguments in hexadecimal.
fn described(line: &str) -> String {
    let mut words = line.split_ascii_whitespace();
    let number: Option<libc::c_long> = words.next().and_then(|word| word.parse().ok());
    let Some(number) = number else {
        return String::new();
    };
    let arguments: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let first = arguments.first().copied().unwrap_or(0);
    let Some((name, what)) = call(number) else {
        return format!("system call {number}");
    };
    match what {
        What::Descriptor => with(name, &descriptor(first as i32)),
        What::Polled if arguments.get(1) == Some(&1) => with(name, &polled(first)),
        What::Polled | What::Nothing => name.into(),
    }
}

fn with(name: &str, what: &str) -> String {
    match what {
        "" => name.into(),
        what => format!("{name}: {what}"),
    }
}

/// What a call's first argument is.
#[derive(Clone, Copy)]
enum What {
    Descriptor,
    /// An array of descriptors; the second argument is their number.
    Polled,
    Nothing,
}

#[cfg(target_os = "linux")]
fn call(number: libc::c_long) -> Option<(&'static str, What)> {
    use What::{Descriptor, Nothing, Polled};
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
        (libc::SYS_pselect6, "select", Nothing),
        (libc::SYS_epoll_pwait, "epoll", Nothing),
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
        (libc::SYS_select, "select", Nothing),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll", Nothing),
    ];
    let found = known.into_iter().find(|it| it.0 == number);
    found.map(|(_, name, what)| (name, what))
}

/// Numbers of calls are not told.
#[cfg(not(target_os = "linux"))]
fn call(_: libc::c_long) -> Option<(&'static str, What)> {
    None
}

/// The descriptor at an address of this process. The kernel reads it, as the thread may have gone
/// on, and its stack with it.
fn polled(address: u64) -> String {
    let mut bytes = [0; POLLFD];
    let memory = File::open("/proc/self/mem");
    let read = memory.and_then(|memory| memory.read_exact_at(&mut bytes, address));
    read.map_or_else(
        |_| String::new(),
        |()| descriptor(i32::from_ne_bytes(bytes)),
    )
}

/// The other end of a socket, or what the descriptor is called.
fn descriptor(number: i32) -> String {
    let Ok(link) = fs::read_link(format!("/proc/self/fd/{number}")) else {
        return String::new();
    };
    let name = link.to_string_lossy().into_owned();
    if !name.starts_with("socket:") {
        return name;
    }
    peer(number).unwrap_or_else(|| "socket".into())
}

fn peer(number: i32) -> Option<String> {
    let four = getpeername::<SockaddrIn>(number).map(|peer| peer.to_string());
    let six = || getpeername::<SockaddrIn6>(number).map(|peer| peer.to_string());
    if let Ok(address) = four.or_else(|_| six()) {
        return Some(address);
    }
    let unix = getpeername::<UnixAddr>(number).ok()?;
    unix.path().map(|path| path.display().to_string())
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
                described(line).is_empty() || line.starts_with("-1"),
                "{line}"
            );
        }
        assert_eq!(described("100000 0x1 0x2"), "system call 100000");
        let futex = libc::SYS_futex;
        assert_eq!(described(&format!("{futex} 0x1 0x80")), "waits to be woken");
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
