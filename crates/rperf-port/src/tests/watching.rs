//! Clients that watch a session, which the test stands in for.

use super::*;
use rperf_model::shared_sums::{Cursor, SharedSums, SumsValues};
use rperf_model::{LabelSetId, Mode, Node, NodeId, SessionMode, State, WeightKey};
use rperf_protocol::ask::Ask;
use rperf_protocol::delta::Delta;
use rperf_protocol::hello::{AnyMode, Beginner};
use rperf_protocol::limits::MAX_DELTA;
use rperf_watch::sums::Sums;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const WAIT: Duration = Duration::from_millis(500);

/// A session that is brought up to now whenever somebody wants that, and grows by 10 ns each time.
struct Watched {
    table: pull::SharedTable,
    node: NodeId,
}

impl Watched {
    fn new() -> Self {
        let mut table = SharedSums::default();
        table.facts.mode = Mode::Wall;
        let frame = table.frame("Order#total", "order.rb", 3);
        let node = Node {
            parent: NodeId::ROOT,
            frame,
            line: 4,
        };
        let node = table.node(node).expect("room");
        Self {
            table: Arc::new(Mutex::new(table)),
            node,
        }
    }

    fn step(&self) {
        let key = WeightKey {
            node: self.node,
            thread: 1,
            labels: LabelSetId::default(),
            state: State::Running,
        };
        let values = SumsValues {
            count: 1,
            wall_ns: 10,
            cpu_ns: 5,
            blame_ns: 0,
        };
        let mut table = self.table.lock().expect("no panic");
        table.add(key, values);
        table.facts.as_of_ns += 1;
        drop(table);
        let table = Arc::clone(&self.table);
        let is_complete = true;
        pull::answer(pull::Step {
            table,
            is_complete,
            holder: None,
        });
    }

    /// Steps as they are wanted, until `work` is done.
    fn during<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let work = scope.spawn(work);
            while !work.is_finished() {
                if pull::take_wanted() {
                    self.step();
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            work.join().expect("no panic")
        })
    }
}

/// The page of what has changed since `cursor`.
fn page(client: &mut Client, cursor: Cursor, wait: Duration) -> Result<Delta, AskError> {
    let reply = client.answer(Ask::Delta { cursor, wait }, MAX_DELTA, 10 * WAIT)?;
    Ok(Delta::from_bytes(&reply.body)?)
}

/// A client with what it has of the session.
struct Puller {
    client: Client,
    cursor: Cursor,
    sums: Sums,
}

impl Puller {
    fn new(path: &Path) -> Self {
        let mut sums = Sums::default();
        sums.add_process(1, "watched");
        Puller {
            client: Client::connect(path).expect("connected"),
            cursor: Cursor::default(),
            sums,
        }
    }

    /// The time that it has.
    fn sum(&self) -> u64 {
        self.sums.rows.iter().map(|row| row.seen.wall_ns).sum()
    }

    /// Returns by how much that has grown.
    fn pull(&mut self) -> u64 {
        let before = self.sum();
        let delta = page(&mut self.client, self.cursor, WAIT).expect("an answer");
        assert!(delta.freshness.is_fresh);
        self.cursor = delta.changes.cursor;
        self.sums.take(0, delta).expect("a page");
        self.sum() - before
    }
}

#[test]
fn clients_see_what_has_changed_since_each_of_them_asked() {
    let port = opened();
    let watched = Watched::new();
    let sums = watched.during(|| {
        let (mut one, mut other) = (Puller::new(&port.path), Puller::new(&port.path));
        for _ in 0..5 {
            assert!(one.pull() >= 10);
        }
        other.pull();
        one.pull();
        assert!(pull::is_watched());
        (one.sum(), other.sum())
    });
    assert!(sums.0 >= sums.1 && sums.1 >= 60, "{sums:?}");
    let began = Instant::now();
    while pull::is_watched() {
        assert!(began.elapsed() < Duration::from_secs(10), "nobody watches");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn if_the_vm_says_nothing_there_is_what_was_known_before() {
    let port = opened();
    let watched = Watched::new();
    let mut puller = Puller::new(&port.path);
    watched.during(|| puller.pull());
    let Puller { client, cursor, .. } = &mut puller;
    let delta = page(client, *cursor, Duration::ZERO).expect("an answer");
    assert!(!delta.freshness.is_fresh && delta.changes.rows.is_empty());
    let delta = page(client, Cursor::default(), Duration::ZERO).expect("an answer");
    assert_eq!((delta.changes.reset, delta.changes.rows.len()), (true, 1));
    // Another one comes who has nothing, and gets the same.
    let mut late = Client::connect(&port.path).expect("connected");
    let delta = page(&mut late, Cursor::default(), Duration::ZERO).expect("an answer");
    assert_eq!(delta.changes.rows.len(), 1);
}

#[test]
fn before_there_is_anything_it_says_so_after_a_while() {
    let port = opened();
    let mut client = Client::connect(&port.path).expect("connected");
    let began = Instant::now();
    let error = page(&mut client, Cursor::default(), WAIT).expect_err("nothing");
    assert!(
        matches!(
            error,
            AskError::Refused(Refusal {
                code: Code::Silent,
                ..
            })
        ),
        "{error:?}"
    );
    assert!(began.elapsed() >= Duration::from_secs(2));
    client.hello().expect("an answer");
}

#[test]
fn where_no_session_runs_there_is_nothing_to_be_watched() {
    static IS_TRACE: AtomicBool = AtomicBool::new(false);
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let session = || {
        let session = Session {
            frequency: 0,
            mode: AnyMode::Known(SessionMode::Trace),
        };
        let beginner = Beginner::Program;
        IS_TRACE
            .load(SeqCst)
            .then_some(Running { session, beginner })
    };
    let path = open(
        Some(directory.path()),
        None,
        Program {
            session,
            ..program()
        },
    )
    .expect("opened");
    let mut client = Client::connect(&path).expect("connected");
    for (is_trace, expected, text) in [
        (false, Code::NoSession, "isn't being profiled"),
        (true, Code::Tracing, "traces calls"),
    ] {
        IS_TRACE.store(is_trace, SeqCst);
        let error = page(&mut client, Cursor::default(), WAIT).expect_err("refused");
        let AskError::Refused(refusal) = error else {
            panic!("{error:?}");
        };
        assert!(refusal.error.contains(text), "{refusal}");
        assert!(refusal.code == expected && refusal.code.lacks_session());
    }
    close();
    drop(turn);
}

#[test]
fn odd_cursors_are_refused_and_others_begin_anew() {
    let port = opened();
    let watched = Watched::new();
    let ask = |query: &str| {
        let end = "Connection: close\r\n\r\n";
        talk(
            &port.path,
            &format!("GET /v1/delta{query} HTTP/1.1\r\n{end}"),
        )
    };
    watched.during(|| {
        for query in [
            "?at=x",
            "?at=1.2",
            "?wait_ms=-1",
            "?at=1.1.1.1.1.1.1.-1",
            "?at=",
        ] {
            assert!(ask(query).starts_with("HTTP/1.1 400"), "{query}");
        }
        let huge = u64::MAX.to_string();
        let cursor = vec![huge; 8].join(".");
        let mut stream = UnixStream::connect(&port.path).expect("connected");
        let text = format!("GET /v1/delta?at={cursor}&new=1 HTTP/1.1\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        assert!(answer.windows(14).any(|part| part == b"\"reset\":true,\""));
    });
}
