//! A port of this test's own process, asked as a client would.

use super::*;
use crate::task::Reply;
use rperf_model::Mode;
use rperf_protocol::hello::{Beginner, Session};
use rperf_protocol::refusal::{Code, Refusal};
use rperf_protocol::stacks::{Source, ThreadState};
use rperf_session::place::finished;
use rperf_watch::client::Client;
use rperf_watch::connection::{Connection as _, Questions as _};
use rperf_watch::failure::AskError;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

mod sessions;
mod tcp;
mod watching;

/// A process has one port.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Opened {
    path: PathBuf,
    _directory: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        close();
    }
}

fn program() -> Program {
    Program {
        ruby: "3.4.5".into(),
        roots: vec!["/srv/shop".into()],
        rperf_directories: Vec::new(),
        session: || {
            let session = Session {
                frequency: 99,
                mode: Mode::Wall.into(),
            };
            let beginner = Beginner::Program;
            Some(Running { session, beginner })
        },
        ask: || {},
    }
}

fn opened() -> Opened {
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let path = open(Some(directory.path()), None, program()).expect("opened");
    Opened {
        path,
        _directory: directory,
        _turn: turn,
    }
}

/// All that comes back until the port ends the connection.
fn talk(path: &Path, text: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("connected");
    // It may have ended the connection before it took all of it.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn it_says_what_it_is() {
    let port = opened();
    let mut client = Client::connect(&port.path).expect("connected");
    for _ in 0..3 {
        let hello = client.hello().expect("an answer");
        assert_eq!(hello.pid, std::process::id() as i32);
        assert_eq!((&*hello.ruby, hello.clients), ("3.4.5", 1));
        assert_eq!(hello.session.map(|session| session.frequency), Some(99));
        assert!(hello.cpu_ns > 0 && hello.clock_ns > 0);
        let is_short = |uptime| uptime < 86_400 * 1_000_000_000;
        assert!(hello.uptime_ns.is_none_or(is_short));
        assert!(!hello.program.is_empty());
    }
}

#[test]
fn what_the_vm_answers_goes_to_all_who_wait() {
    use crate::stacks::frames::FrameName;
    use crate::stacks::{Stacks, ThreadStack};
    let port = opened();
    let answered = std::thread::scope(|scope| {
        let ask = || {
            let mut client = Client::connect(&port.path).expect("connected");
            client.stacks(false, true).expect("an answer")
        };
        let clients = [scope.spawn(ask), scope.spawn(ask)];
        let thread = ThreadStack {
            name: "worker".into(),
            status: "run".into(),
            tid: None,
            has_gvl: true,
            waiting: None,
            profile_thread: None,
            labels: Default::default(),
            stack: Some(0),
        };
        let stacks = Stacks {
            threads: vec![thread],
            stacks: vec![vec![(0, 3)]],
            left_out: 0,
            names: vec![FrameName {
                name: "Order#total".into(),
                path: Some("order.rb".into()),
            }],
            ractors: 2,
            fibers: None,
        };
        while clients.iter().any(|client| !client.is_finished()) {
            if let Some(question) = request::open() {
                request::answer(question, Reply::Stacks(stacks.clone()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        clients.map(|client| client.join().expect("an answer"))
    });
    for answer in answered {
        assert_eq!((answer.source, answer.other_ractors), (Source::Vm, Some(2)));
        assert_eq!(answer.threads[0].state, ThreadState::Running);
        assert_eq!(answer.frames[0].line, 3);
    }
    assert_eq!(request::open(), None);
}

#[test]
fn if_the_vm_says_nothing_there_is_what_the_system_knows() {
    let port = opened();
    let mut client = Client::connect(&port.path).expect("connected");
    let began = Instant::now();
    let answer = client.stacks(false, true).expect("an answer");
    assert!(began.elapsed() >= Duration::from_secs(2));
    assert_eq!(answer.source, Source::System);
    let note = answer.note.expect("a note");
    assert!(note.contains("doesn't answer"), "{note}");
    assert_eq!(request::open(), None);
    client.hello().expect("an answer");
}

#[test]
fn once_the_program_ends_the_vm_is_asked_no_more() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let ask = || {
        ASKED.fetch_add(1, SeqCst);
    };
    let path = open(Some(directory.path()), None, Program { ask, ..program() }).expect("opened");
    let mut client = UnixStream::connect(&path).expect("connected");
    client
        .write_all(
            b"GET /v1/stacks HTTP/1.1

",
        )
        .expect("sent");
    let began = Instant::now();
    while ASKED.load(SeqCst) < 3 {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    close();
    let asked = ASKED.load(SeqCst);
    assert_eq!(request::open(), None);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(ASKED.load(SeqCst), asked);
    drop(turn);
}

/// [`Port::end`] and the port's thread agree on who was first, each by what the other has stored.
#[test]
fn whenever_the_program_ends_the_vm_is_not_asked_afterwards() {
    static IS_GONE: AtomicBool = AtomicBool::new(false);
    static IN_TIME: AtomicUsize = AtomicUsize::new(0);
    static LATE: AtomicUsize = AtomicUsize::new(0);
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let ask = || {
        (0..50).for_each(|_| std::hint::spin_loop());
        let is_gone = IS_GONE.load(SeqCst);
        let count = if is_gone { &LATE } else { &IN_TIME };
        count.fetch_add(1, SeqCst);
    };
    open(Some(directory.path()), None, Program { ask, ..program() }).expect("opened");
    let port = Port::current().expect("a port");
    for round in 0..2000 {
        IS_GONE.store(false, SeqCst);
        port.has_ended.store(false, SeqCst);
        let before = IN_TIME.load(SeqCst);
        std::thread::scope(|scope| {
            // As the port's thread does, which has nobody to ask for now.
            scope.spawn(|| {
                while !port.has_ended.load(SeqCst) {
                    port.ask_vm();
                }
            });
            while IN_TIME.load(SeqCst) == before {
                std::thread::yield_now();
            }
            (0..round % 100).for_each(|_| std::hint::spin_loop());
            port.end();
            IS_GONE.store(true, SeqCst);
        });
    }
    close();
    assert_eq!(LATE.load(SeqCst), 0);
    drop(turn);
}

#[test]
fn opened_twice_it_is_the_same_and_closed_it_is_gone() {
    let port = opened();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let again = open(Some(elsewhere.path()), None, program()).expect("open already");
    assert_eq!((&again, path().as_ref()), (&port.path, Some(&port.path)));
    close();
    close();
    assert_eq!((path(), port.path.exists()), (None, false));
    assert!(matches!(Client::connect(&port.path), Err(AskError::Closed)));
}

#[test]
fn only_its_user_may_open_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let port = opened();
    let mode = std::fs::metadata(&port.path)
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn odd_requests_get_an_answer_and_good_ones_after_them_too() {
    let port = opened();
    let end = "Connection: close\r\n\r\n";
    for (text, expected) in [
        (
            format!("GET /v1/hello HTTP/1.1\r\n{end}"),
            "HTTP/1.1 200 OK\r\n",
        ),
        (format!("POST /v1/hello HTTP/1.1\r\n{end}"), "HTTP/1.1 405 "),
        (
            format!("GET /v1/kittens HTTP/1.1\r\n{end}"),
            "HTTP/1.1 404 ",
        ),
        (format!("GET /v2/hello HTTP/1.1\r\n{end}"), "HTTP/1.1 404 "),
        ("\u{16}\u{3}\u{1}".into(), "HTTP/1.1 400 "),
        ("x".repeat(10 << 20), "HTTP/1.1 "),
        (
            format!("GET /{} HTTP/1.1\r\n{end}", "x".repeat(9000)),
            "HTTP/1.1 431 ",
        ),
        (
            format!("POST /v1/hello HTTP/1.1\r\nContent-Length: 1\r\n{end}a"),
            "HTTP/1.1 413 ",
        ),
    ] {
        let answer = talk(&port.path, &text);
        assert!(answer.starts_with(expected), "{answer} for {text:.60}");
        assert!(answer.contains("\"hint\"") || answer.contains("\"pid\""));
    }
    let hello = "GET /v1/hello HTTP/1.1\r\n\r\n";
    let answer = talk(
        &port.path,
        &format!("{hello}{hello}GET /v1/x HTTP/1.1\r\n{end}"),
    );
    let lines: Vec<_> = answer
        .lines()
        .filter(|line| line.starts_with("HTTP/"))
        .collect();
    assert_eq!(
        lines,
        [
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 404 Not Found"
        ]
    );
}

#[test]
fn half_a_request_gets_two_seconds_and_holds_up_nobody() {
    let port = opened();
    let began = Instant::now();
    let mut slow = UnixStream::connect(&port.path).expect("connected");
    slow.write_all(b"GET /v1/hello HT").expect("sent");
    let mut client = Client::connect(&port.path).expect("connected");
    client.hello().expect("an answer");
    assert!(began.elapsed() < Duration::from_secs(2));
    let mut answer = String::new();
    slow.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[test]
fn the_ninth_client_is_told_so_and_one_that_leaves_makes_room() {
    let port = opened();
    let mut clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::connect(&port.path).expect("connected");
            client.hello().expect("an answer");
            client
        })
        .collect();
    let mut ninth = Client::connect(&port.path).expect("connected");
    let error = ninth.hello().expect_err("refused");
    assert!(
        matches!(
            error,
            AskError::Refused(Refusal {
                code: Code::Busy,
                ..
            })
        ),
        "{error:?}"
    );
    clients.pop();
    let began = Instant::now();
    loop {
        let mut next = Client::connect(&port.path).expect("connected");
        if next.hello().is_ok() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_client_that_reads_nothing_costs_little() {
    let port = opened();
    let mut silent = UnixStream::connect(&port.path).expect("connected");
    silent.set_nonblocking(true).expect("set");
    let requests = "GET /v1/hello HTTP/1.1\r\n\r\n".repeat(1000);
    let began = Instant::now();
    // Until the port takes in no more.
    while silent.write(requests.as_bytes()).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
    let mut client = Client::connect(&port.path).expect("connected");
    assert_eq!(client.hello().expect("an answer").clients, 2);
}

#[test]
fn without_clients_the_thread_sleeps() {
    let port = opened();
    Client::connect(&port.path)
        .and_then(|mut client| client.hello())
        .expect("an answer");
    assert!(switches().is_some() || !cfg!(target_os = "linux"));
    // It may be about to see that the client has left; or that of the last test, to end.
    let sleeps = || {
        let before = switches();
        std::thread::sleep(Duration::from_millis(500));
        switches() == before
    };
    assert!((0..20).any(|_| sleeps()));
}

/// How often the port's thread has been switched to, where the system tells.
fn switches() -> Option<String> {
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        // Threads of other tests end meanwhile.
        let path = format!("{}/status", task.path().display());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        if status.starts_with(&format!("Name:\t{THREAD_NAME}\n")) {
            let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
            return Some(lines.collect());
        }
    }
    None
}

#[test]
fn if_the_other_end_of_what_wakes_it_is_closed_the_thread_ends() {
    let port = opened();
    Port::current().expect("a port").shut_waker();
    let began = Instant::now();
    while path().is_some() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!port.path.exists());
}

#[test]
fn descriptors_that_the_program_closes_and_opens_again_are_left_alone() {
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd};
    let port = opened();
    let number = listening_descriptor(&port.path);
    let null = File::open("/dev/null").expect("a file");
    // SAFETY: this is what a program does that closes descriptors which it doesn't know, and opens
    // others. The port is ready for it, and the file owns the number from now on.
    let others = unsafe {
        libc::dup2(null.as_raw_fd(), number);
        File::from_raw_fd(number)
    };
    Port::current().expect("a port").wake();
    let began = Instant::now();
    while path().is_some() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(others.metadata().is_ok());
    assert!(Client::connect(&port.path).is_err());
}

fn listening_descriptor(path: &Path) -> i32 {
    use nix::sys::socket::{UnixAddr, getsockname};
    let is_ours = |&number: &i32| {
        let name = getsockname::<UnixAddr>(number);
        name.is_ok_and(|name| {
            name.path()
                .is_some_and(|name| finished(name.into()) == path)
        })
    };
    (3..1000).find(is_ours).expect("a listener")
}
