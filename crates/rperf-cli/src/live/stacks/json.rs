//! The stacks as one JSON object, in which each thread has its frames. Called by `stacks`.

use super::{MOST, StacksArgs, code_paths};
use rperf_protocol::hello::Hello;
use rperf_protocol::stacks::{FiberStack, Fibers, Source, Stacks, ThreadState};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

#[derive(Serialize)]
struct Object<'a> {
    elapsed_ns: u64,
    note: Option<&'a str>,
    other_ractors: Option<u32>,
    pid: i32,
    program: &'a str,
    ruby: &'a str,
    source: Source,
    stacks_left_out: Option<u32>,
    version: u32,
    woken: bool,
    threads: Vec<ThreadObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fibers: Option<Fibers<'a, Frames<'a>>>,
}

/// A thread. Those of the system have no labels, and are in no profile.
#[derive(Serialize)]
struct ThreadObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    name: &'a str,
    number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile_thread: Option<Option<u32>>,
    state: &'a ThreadState,
    state_ns: Option<u64>,
    state_or_longer: bool,
    tid: Option<i32>,
    waits_in: Option<&'a str>,
    frames: Frames<'a>,
}

#[derive(Serialize)]
struct FrameObject<'a> {
    line: u32,
    name: &'a str,
    path: &'a str,
    short_path: Cow<'a, str>,
}

/// The frames at some places in the list of all.
struct Frames<'a> {
    all: &'a [FrameObject<'a>],
    places: &'a [u32],
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.places.iter();
        serializer.collect_seq(frames.filter_map(|&place| self.all.get(place as usize)))
    }
}

/// Takes [`MOST`] bytes: frames are repeated.
struct Room(Vec<u8>);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.len() + bytes.len() > MOST {
            true => Err(io::ErrorKind::OutOfMemory.into()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `None` if there is too much of it.
pub fn as_json(args: &StacksArgs, hello: &Hello, answer: &Stacks<'_>) -> Option<String> {
    let paths = code_paths(args, hello, answer);
    let frames = answer.frames.iter().map(|frame| FrameObject {
        line: frame.line,
        name: &frame.name,
        path: &frame.path,
        short_path: paths.short(&frame.path),
    });
    let all: Vec<_> = frames.collect();
    let with_frames = |places| Frames { all: &all, places };
    let is_of_vm = answer.source == Source::Vm;
    let threads = answer.threads.iter().map(|it| ThreadObject {
        labels: is_of_vm.then_some(&it.labels),
        name: &it.name,
        number: it.number,
        profile_thread: is_of_vm.then_some(it.profile_thread),
        state: &it.state,
        state_ns: it.state_ns,
        state_or_longer: it.state_or_longer,
        tid: it.tid,
        waits_in: it.waits_in.as_deref(),
        frames: with_frames(&it.frames),
    });
    let fibers = answer.fibers.as_ref().map(|fibers| {
        let stacks = fibers.stacks.iter().map(|it| FiberStack {
            block: it.block.clone(),
            count: it.count,
            state: it.state.clone(),
            frames: with_frames(&it.frames),
        });
        Fibers {
            elapsed_ns: fibers.elapsed_ns,
            left_out: fibers.left_out,
            note: fibers.note.clone(),
            walk_ns: fibers.walk_ns,
            stacks: stacks.collect(),
        }
    });
    let object = Object {
        elapsed_ns: answer.elapsed_ns,
        note: answer.note.as_deref(),
        other_ractors: answer.other_ractors,
        pid: args.pid,
        program: &hello.program,
        ruby: &hello.ruby,
        source: answer.source,
        stacks_left_out: answer.stacks_left_out,
        version: 1,
        woken: answer.woken,
        threads: threads.collect(),
        fibers,
    };
    let mut room = Room(Vec::new());
    serde_json::to_writer(&mut room, &object).ok()?;
    room.0.push(b'\n');
    String::from_utf8(room.0).ok()
}
