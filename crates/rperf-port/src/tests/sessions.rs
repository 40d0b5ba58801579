//! Sessions and profiles for clients, with a VM that is made up.

use super::*;
use crate::task::{ProfileUpTo, Question, Reply, Task, Why};
use rperf_model::Mode;
use rperf_model::State;
use rperf_model::test_profile::TestProfile;
use rperf_protocol::ask::{Ask, Sampling, Wanted};
use rperf_protocol::measure::Measure;
use rperf_protocol::message::parse_reply;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Answers what is asked, until it is dropped: notes the tasks.
struct MadeUpVm {
    over: Arc<AtomicBool>,
    tasks: Arc<Mutex<Vec<Task>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl MadeUpVm {
    fn new(answer: impl Fn(Task) -> Reply + Send + 'static) -> Self {
        let (over, tasks) = (
            Arc::<AtomicBool>::default(),
            Arc::<Mutex<Vec<Task>>>::default(),
        );
        let (is_over, noted) = (Arc::clone(&over), Arc::clone(&tasks));
        let serve = move |question: Question| {
            noted.lock().expect("tasks").push(question.task);
            request::answer(question, answer(question.task));
        };
        let thread = std::thread::spawn(move || {
            while !is_over.load(SeqCst) {
                request::open()
                    .map_or_else(|| std::thread::sleep(Duration::from_millis(1)), &serve);
            }
        });
        MadeUpVm {
            over,
            tasks,
            thread: Some(thread),
        }
    }

    fn tasks(&self) -> Vec<Task> {
        self.tasks.lock().expect("tasks").clone()
    }

    fn wait_for(&self, task: Task) {
        let began = Instant::now();
        while self.tasks().last() != Some(&task) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{:?}",
                self.tasks()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for MadeUpVm {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Two threads, of which the second is the helper.
fn taken(ns: i64) -> ProfileUpTo {
    let profile = TestProfile::wall().with(&["work"], 1, State::Running, ns);
    let mut profile = profile.with(&["help"], 2, State::Running, 5).profile;
    profile.meta.start_time_ns = 1;
    profile.meta.duration_ns = ns as u64;
    ProfileUpTo {
        profile: Arc::new(profile),
        helper: Some(2),
    }
}

fn willing(task: Task) -> Reply {
    match task {
        Task::Begin => Reply::Begun,
        Task::End => Reply::Profile(taken(30)),
        Task::Snapshot => Reply::Profile(taken(10)),
        Task::Look => Reply::Here,
        Task::Stacks | Task::Fibers | Task::Memory | Task::Objects | Task::Heap => {
            Reply::Failed("no".into())
        }
    }
}

fn opened_with(session: fn() -> Option<Running>) -> Opened {
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let program = Program {
        session,
        ..program()
    };
    let path = open(Some(directory.path()), None, program).expect("opened");
    Opened {
        path,
        _directory: directory,
        _turn: turn,
    }
}

/// A client that has asked for a profile of so many seconds.
fn asked(port: &Opened, seconds: f64) -> Client {
    let mut client = Client::connect(&port.path).expect("connected");
    let ask = Ask::Profile(Wanted {
        time: Duration::from_secs_f64(seconds),
        sampling: Sampling {
            mode: Mode::Wall,
            frequency: 1000,
            measure: Measure::NOTHING,
        },
    });
    client.ask(ask, SOON).expect("sent");
    client
}

const SOON: Duration = Duration::from_secs(20);

fn total(content: &[u8]) -> i64 {
    let profile = rperf_format::pprof::read(&mut &*content).expect("a profile");
    profile.sum(profile.schema.default_column())
}

#[test]
fn a_profile_is_a_session_of_so_long_without_the_helper() {
    let port = opened_with(|| None);
    let vm = MadeUpVm::new(willing);
    let began = Instant::now();
    let reply = asked(&port, 0.2).reply(1 << 20, SOON);
    let reply = reply.expect("a profile");
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!((total(&reply.body), reply.ended), (30, None));
    assert_eq!(vm.tasks(), [Task::Begin, Task::End]);
}

#[test]
fn it_ends_when_the_client_says_no_more_and_with_the_client() {
    let port = opened_with(|| None);
    let vm = MadeUpVm::new(willing);
    let mut go = UnixStream::connect(&port.path).expect("connected");
    go.write_all(b"GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\n\r\n")
        .expect("sent");
    vm.wait_for(Task::Begin);
    go.shutdown(std::net::Shutdown::Write).expect("ended");
    let mut reply = Vec::new();
    go.read_to_end(&mut reply).expect("a profile");
    let head = parse_reply(&reply).expect("a reply").expect("whole");
    assert_eq!(total(&reply[head.length..]), 30);
    let client = asked(&port, 600.0);
    vm.wait_for(Task::Begin);
    drop(client);
    vm.wait_for(Task::End);
}

#[test]
fn of_a_session_that_runs_already_it_is_the_difference() {
    let port = opened_with(|| None);
    let vm = MadeUpVm::new(willing);
    let first = asked(&port, 600.0);
    vm.wait_for(Task::Begin);
    let mut second = asked(&port, 600.0);
    vm.wait_for(Task::Snapshot);
    drop(first);
    std::thread::sleep(Duration::from_millis(50));
    second.end_asking();
    let reply = second.reply(1 << 20, SOON).expect("a profile");
    assert_eq!(total(&reply.body), 20);
    assert_eq!(vm.tasks(), [Task::Begin, Task::Snapshot, Task::End]);
}

#[test]
fn if_the_program_ends_the_session_the_profile_comes_with_the_reason() {
    let port = opened_with(|| None);
    let vm = MadeUpVm::new(willing);
    let mut client = asked(&port, 600.0);
    vm.wait_for(Task::Begin);
    std::thread::sleep(Duration::from_millis(50));
    session_ended(Why::BeginsOwn, taken(7));
    let reply = client.reply(1 << 20, SOON).expect("a profile");
    assert_eq!(total(&reply.body), 7);
    assert_eq!(reply.ended.as_deref(), Some(Why::BeginsOwn.text()));
    assert_eq!(vm.tasks(), [Task::Begin]);
}

#[test]
fn a_session_is_held_by_connections_and_the_programs_own_is_not_touched() {
    let port = opened_with(|| None);
    let vm = MadeUpVm::new(willing);
    let post = "POST /v1/session?frequency=99 HTTP/1.1\r\n\r\n";
    let hold = || {
        let mut stream = UnixStream::connect(&port.path).expect("connected");
        stream.write_all(post.as_bytes()).expect("sent");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
        stream
    };
    let (first, second) = (hold(), hold());
    let body = talk(&port.path, "POST /v1/session?frequency=99 HTTP/1.0\r\n\r\n");
    let golden = include_str!("../../../rperf-protocol/golden/session.json");
    assert!(body.ends_with(&format!("\r\n\r\n{golden}")), "{body}");
    let other = talk(&port.path, "POST /v1/session HTTP/1.0\r\n\r\n");
    assert!(
        other.starts_with("HTTP/1.1 409 ") && other.contains("(wall, 99 Hz)"),
        "{other}"
    );
    drop(first);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(vm.tasks(), [Task::Begin]);
    drop(second);
    vm.wait_for(Task::End);
    drop((vm, port));
    let port = opened();
    let refused = talk(&port.path, "POST /v1/session HTTP/1.0\r\n\r\n");
    assert!(
        refused.contains("profiled already (wall, 99 Hz)"),
        "{refused}"
    );
}

#[test]
fn what_the_vm_does_not_give_is_refused() {
    let port = opened_with(|| None);
    let _vm = MadeUpVm::new(|task| match task {
        Task::Begin => Reply::Failed("no timer".into()),
        _ => Reply::NotNow,
    });
    for (request, expected) in [
        ("GET /v1/snapshot", "409"),
        ("GET /v1/profile?seconds=1", "503"),
        ("GET /v1/profile?seconds=0", "400"),
        ("GET /v1/profile?seconds=x", "400"),
        ("GET /v1/profile?frequency=9999", "400"),
        ("POST /v1/session?mode=trace", "400"),
        ("GET /v1/session", "405"),
        ("POST /v1/profile", "405"),
        ("GET /debug/pprof/heap", "501"),
        ("GET /debug/pprof/cmdline", "200"),
        ("GET /debug/pprof/", "200"),
    ] {
        let answer = talk(&port.path, &format!("{request} HTTP/1.0\r\n\r\n"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{answer} to {request}"
        );
    }
}
