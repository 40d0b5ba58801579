//! The tables that rows refer to: methods, frames, stacks, threads and label sets of all programs,
//! each once. Whatever finds no room in them is `None`.

use super::reading::{Reading, STRING_CAP, TEXT_CAP};
use super::{MORE, Process, Sums, Thread};
use rperf_model::{Frame, FrameId, LabelSet, Node, NodeId, StringId};
use std::sync::Arc;

impl Sums {
    /// A program comes in. Returns its place.
    pub fn add_process(&mut self, pid: i32, program: &str) -> u32 {
        self.let_go_of_ended();
        self.processes.push(Process {
            pid,
            program: program.into(),
            ..Process::default()
        });
        self.intake.readings.push(Reading::default());
        self.processes.len() as u32 - 1
    }

    /// Notes the directories of a program, and those of rperf's files in it.
    pub fn add_directories(&mut self, roots: &[String], rperf_directories: &[String]) {
        self.directories.add(roots, rperf_directories);
    }

    /// Whether methods came in whose paths are as they were recorded.
    pub fn has_new_methods(&self) -> bool {
        self.methods.has_new()
    }

    /// Gives all methods the paths that people see: what comes in may make others ambiguous.
    pub fn shorten(&mut self, short: impl Fn(&str) -> Arc<str>) {
        self.methods.shorten(short);
    }

    /// The number of a text.
    pub(super) fn string(&mut self, text: &str) -> Option<StringId> {
        let strings = &mut self.strings;
        let has_room = strings.len() < STRING_CAP && strings.text_len() + text.len() <= TEXT_CAP;
        match has_room {
            true => Some(strings.intern(text)),
            false => strings.find(text),
        }
    }

    /// The number of a frame.
    pub fn frame(&mut self, name: &str, path: &str, first_line: u32) -> Option<FrameId> {
        let (name, path) = (self.string(name)?, self.string(path)?);
        self.frame_of(Frame {
            name,
            path,
            first_line,
        })
    }

    pub(super) fn frame_of(&mut self, frame: Frame) -> Option<FrameId> {
        let (strings, shown) = (&self.strings, &mut self.intake.shown);
        let texts = || (shown.of(strings, frame.name), shown.of(strings, frame.path));
        self.methods.frame(frame, texts, &mut self.intake.methods)
    }

    /// The name and the path of a frame, as the program has them.
    pub(super) fn frame_text(&self, id: FrameId) -> Option<(&str, &str)> {
        let frame = self.methods.frames.get(id)?;
        Some((self.strings.get(frame.name), self.strings.get(frame.path)))
    }

    /// The number of the stack in which `frame` is called by `caller`, at `line`.
    pub fn stack(&mut self, caller: u32, frame: FrameId, line: u32) -> Option<u32> {
        let stack = Node {
            parent: NodeId(caller),
            frame,
            line,
        };
        let method = self.methods.of_frame(frame);
        self.nodes.stack(stack, method, &mut self.intake.nodes)
    }

    /// The number of a thread; that of thread 0 if there is no room for it.
    pub fn thread(&mut self, process: u32, seq: u32) -> u32 {
        let thread = Thread { process, seq };
        self.threads.number(thread, &mut self.intake.threads)
    }

    /// The number of a label set.
    pub fn label_set<'a>(
        &mut self,
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<u32> {
        let texts = pairs.map(|(key, value)| Some((self.string(key)?, self.string(value)?)));
        let set = texts.collect::<Option<LabelSet>>()?;
        self.label_set_of(set)
    }

    pub(super) fn label_set_of(&mut self, set: LabelSet) -> Option<u32> {
        let (strings, shown) = (&self.strings, &mut self.intake.shown);
        self.labels.set(set, |id| shown.of(strings, id))
    }

    /// The label set of time without room.
    pub(super) fn label_set_of_more(&mut self) -> u32 {
        let [key, value] = [MORE, ""].map(|text| self.strings.intern(text));
        self.labels.set_of_more(key, value)
    }
}
