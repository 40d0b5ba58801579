//! The stacks as one JSON object, in which each thread has its frames. Called by `stacks`.

use rperf_protocol::hello::Hello;
use rperf_protocol::limits::MAX_STACKS;
use rperf_protocol::stacks::{Fibers, Source, Stacks};
use rperf_report::CodePaths;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::io::{self, Write};

#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    facts: Value,
    threads: Vec<ThreadObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fibers: Option<Fibers<'a, Frames<'a>>>,
}

#[derive(Serialize)]
struct ThreadObject<'a> {
    #[serde(flatten)]
    facts: Value,
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

/// Room for [`MAX_STACKS`] bytes: frames are repeated.
struct Room(Vec<u8>);

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.len() + bytes.len() > MAX_STACKS {
            true => Err(io::ErrorKind::OutOfMemory.into()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text; `None` if there is too much of it.
pub fn as_json(pid: i32, hello: &Hello, answer: &Stacks<'_>, paths: &CodePaths) -> Option<String> {
    let all = answer.frames.iter().map(|frame| FrameObject {
        line: frame.line,
        name: &frame.name,
        path: &frame.path,
        short_path: paths.short(&frame.path),
    });
    let all: Vec<_> = all.collect();
    let with_frames = |places| Frames { all: &all, places };
    let threads = answer.threads.iter().map(|it| {
        let mut facts = json!({
            "name": it.name,
            "number": it.number,
            "state": it.state,
            "state_ns": it.state_ns,
            "state_or_longer": it.state_or_longer,
            "tid": it.tid,
            "waits_in": it.waits_in,
        });
        if answer.source == Source::Vm {
            facts["labels"] = json!(it.labels);
            facts["profile_thread"] = json!(it.profile_thread);
        }
        let frames = with_frames(&it.frames);
        ThreadObject { facts, frames }
    });
    let object = Object {
        facts: json!({
            "version": 1,
            "pid": pid,
            "program": hello.program,
            "ruby": hello.ruby,
            "source": answer.source,
            "note": answer.note,
            "woken": answer.woken,
            "elapsed_ns": answer.elapsed_ns,
            "other_ractors": answer.other_ractors,
            "stacks_left_out": answer.stacks_left_out,
        }),
        threads: threads.collect(),
        fibers: answer
            .fibers
            .as_ref()
            .map(|it| it.map(|it| with_frames(it))),
    };
    let mut room = Room(Vec::new());
    serde_json::to_writer(&mut room, &object).ok()?;
    room.0.push(b'\n');
    String::from_utf8(room.0).ok()
}
