//! The objects of a program: the graph that a copy of it sends, and what is told of that. On the command's
//! thread.

use crate::client::reach;
use crate::connection::{Connection, Questions};
use crate::failure::{AskError, Failure};
use crate::patience::{HEAP, HELLO, WHOLE_HEAP};
use rperf_heap::answer::{self, Asked};
use rperf_heap::file::{HeapFacts, HeapFile};
use rperf_heap::graph::Graph;
use rperf_heap::read::{ReadError, read};
use rperf_protocol::ask::Ask;
use rperf_protocol::refusal::Code;
use rperf_session::kernel_text::bytes_in;
use rperf_session::process_id::ProcessId;
use std::io::{self, BufReader, ErrorKind, Read};
use std::time::{Instant, SystemTime};

/// Bytes of a graph at most.
const MOST: u64 = 4 << 30;

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Why there is no graph.
#[derive(Debug)]
pub enum HeapError {
    /// The program can't be asked, or refuses.
    Failure(Failure),
    /// Its rperf knows no such question.
    TooOld,
    /// The copy was ended before it had sent all objects.
    Ended,
    /// There is more than this command reads: so many bytes.
    TooLong(u64),
    /// What came is no graph.
    Unreadable(ReadError),
}

impl HeapError {
    /// Whether another look at the program is under way, or was over too short a time ago: it answers later.
    pub fn is_too_soon(&self) -> bool {
        match self {
            HeapError::Failure(Failure::Asking(AskError::Refused(it))) => it.code == Code::TooSoon,
            _ => false,
        }
    }
}

impl From<AskError> for HeapError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused(refusal) if refusal.code == Code::NotFound => HeapError::TooOld,
            error => HeapError::Failure(error.into()),
        }
    }
}

/// How it is taken.
#[derive(Debug, Clone, Copy)]
pub struct How<'a> {
    /// However little memory is free, and however soon after the last one.
    pub force: bool,
    /// The main thread may be woken for it.
    pub may_wake: bool,
    /// What is told beside what always is.
    pub asked: Asked<'a>,
    /// So many classes are told at most, those first whose instances have most bytes; and the one that is asked for.
    pub classes: usize,
}

/// Takes the objects of a program.
pub fn take(process: ProcessId, how: How<'_>) -> Result<HeapFile, HeapError> {
    let began = Instant::now();
    let mut client = reach(process).map_err(HeapError::Failure)?;
    let hello = client.hello_within(false, HELLO)?;
    let ask = Ask::Heap {
        force: how.force,
        may_wake: how.may_wake,
    };
    client.ask(ask, HELLO)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let stream = client.stream(HEAP, WHOLE_HEAP);
    let stream = stream.map_err(|error| match error {
        AskError::Closed if process.is_alive() => HeapError::Ended,
        error => error.into(),
    })?;
    let graph = graph(stream, MOST)?;
    let facts = HeapFacts {
        pid: process.pid,
        started: hello.start,
        program: hello.program,
        ruby: hello.ruby,
        time_ns: now.map_or(0, |it| it.as_nanos() as u64),
        elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
    };
    let mut file = answer::of(&graph, facts, how.asked);
    let mut place = 0;
    file.classes.retain(|it| {
        place += 1;
        place <= how.classes || how.asked.class == Some(&*it.name)
    });
    Ok(file)
}

/// The graph in a stream of which so many bytes are read.
fn graph(stream: impl Read, most: u64) -> Result<Graph, HeapError> {
    let mut stream = BufReader::with_capacity(PIECE, stream.take(most));
    let graph = read(&mut stream, free_memory());
    // What it says then is of where it was cut here, not of the copy.
    let is_short = match &graph {
        Ok(graph) => !graph.is_whole,
        Err(error) => matches!(error, ReadError::Short),
    };
    if is_short && stream.get_ref().limit() == 0 {
        return Err(HeapError::TooLong(most));
    }
    let graph = graph.map_err(|error| match error {
        ReadError::Short => HeapError::Ended,
        ReadError::Io(error) if error.kind() == ErrorKind::TimedOut => AskError::Silent.into(),
        error => HeapError::Unreadable(error),
    })?;
    // The copy ends then: another one can be asked for.
    let _ = io::copy(&mut stream, &mut io::sink());
    match graph.roots.is_empty() {
        true => Err(HeapError::Ended),
        false => Ok(graph),
    }
}

/// Bytes of memory that this machine has free; no bound where that isn't known.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn free_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    bytes_in(&text, "MemAvailable:").unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_protocol::heap::kind::Kind;
    use rperf_protocol::heap::write::{Object, Sink, Writer};

    struct Bytes<'a>(&'a mut Vec<u8>);

    impl Sink for Bytes<'_> {
        fn take(&mut self, bytes: &[u8]) -> bool {
            self.0.extend_from_slice(bytes);
            true
        }
    }

    #[test]
    fn a_stream_that_is_cut_says_by_whom() {
        let mut sent = Vec::new();
        let mut writer = Writer::begin(Bytes(&mut sent), 1);
        assert!(writer.object(&Object {
            kind: Kind(Kind::OBJECT),
            class: None,
            bytes: 40,
            named: &[],
            others: &[],
        }));
        assert!(writer.end_objects() && writer.root(0, 0, 0));
        assert!(writer.begin_globals() && writer.end());
        let all = sent.len() as u64;
        assert!(graph(&sent[..], all).is_ok_and(|it| it.is_whole));
        for most in 0..all {
            let read = graph(&sent[..], most);
            assert!(
                matches!(read, Err(HeapError::TooLong(it)) if it == most),
                "{read:?}"
            );
        }
        // Behind the last two bytes there is nothing but global variables.
        for end in 0..sent.len() - 2 {
            let read = graph(&sent[..end], all);
            assert!(matches!(read, Err(HeapError::Ended)), "{end}: {read:?}");
        }
    }
}
