//! The tables that rows refer to: methods, frames, stacks, threads and label sets of all programs,
//! each once. Whatever finds no room in them is `None`.

use super::reading::{CAP, Reading, STRING_CAP, TEXT_CAP};
use super::{Label, MORE, Method, Node, Process, Sums, Thread};
use rperf_model::{Frame, FrameId, LabelSet, NodeId, StringId};
use rperf_report::terminal_text::shown;
use rustc_hash::FxHashMap;
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

    /// What is there before anything has come: the stack without frames, and the set without labels.
    fn add_root(&mut self) {
        if self.nodes.is_empty() {
            self.nodes.push(Node {
                parent: 0,
                method: u32::MAX,
                first_child: 0,
                next_sibling: 0,
            });
            self.stack_nodes.push(0);
            self.labels.push(Vec::new());
        }
    }

    /// Notes the directories of a program, and those of rperf's files in it.
    pub fn add_directories(&mut self, roots: &[String], rperf_directories: &[String]) {
        for (known, new) in [
            (&mut self.roots, roots),
            (&mut self.rperf_directories, rperf_directories),
        ] {
            for directory in new {
                if !known.contains(directory) {
                    known.push(directory.clone());
                }
            }
        }
    }

    /// Whether methods came in whose paths are as they were recorded.
    pub fn has_new_methods(&self) -> bool {
        self.shortened < self.methods.len()
    }

    /// Gives all methods the paths that people see: what comes in may make others ambiguous.
    pub fn shorten(&mut self, short: impl Fn(&str) -> Arc<str>) {
        let mut known: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
        for method in &mut self.methods {
            let path = Arc::clone(&method.path);
            let short = known.entry(path).or_insert_with_key(|path| short(path));
            method.short_path = Arc::clone(short);
        }
        self.shortened = self.methods.len();
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

    /// A text, fit for a terminal: one copy, however many have it.
    fn shown_text(&mut self, id: StringId) -> Arc<str> {
        let known = &mut self.intake.shown;
        let place = id.0 as usize;
        if known.len() <= place {
            known.resize(place + 1, None);
        }
        let text = || shown(self.strings.get(id)).into();
        Arc::clone(known[place].get_or_insert_with(text))
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
        if self.frames.len() >= CAP {
            return self.frames.find(&frame);
        }
        let id = self.frames.intern(frame);
        if id.0 as usize == self.frame_methods.len() {
            let key: Label = (self.shown_text(frame.name), self.shown_text(frame.path));
            let method = *self.intake.methods.entry(key).or_insert_with_key(|key| {
                self.methods.push(Method {
                    name: Arc::clone(&key.0),
                    path: Arc::clone(&key.1),
                    short_path: Arc::clone(&key.1),
                });
                self.methods.len() as u32 - 1
            });
            self.frame_methods.push(method);
        }
        Some(id)
    }

    /// The name and the path of a frame, as the program has them.
    pub(super) fn frame_text(&self, id: FrameId) -> Option<(&str, &str)> {
        let frame = self.frames.get(id)?;
        Some((self.strings.get(frame.name), self.strings.get(frame.path)))
    }

    /// The number of the stack in which `frame` is called by `caller`, at `line`.
    pub fn stack(&mut self, caller: u32, frame: FrameId, line: u32) -> Option<u32> {
        self.add_root();
        let node = rperf_model::Node {
            parent: NodeId(caller),
            frame,
            line,
        };
        if self.stacks.len() >= CAP {
            return self.stacks.find(&node).map(|it| it.0);
        }
        let id = self.stacks.intern(node).0;
        if id as usize == self.stack_nodes.len() {
            let caller = self.stack_nodes[caller as usize];
            let node = self.node(caller, self.frame_methods[frame.0 as usize]);
            self.stack_nodes.push(node);
        }
        Some(id)
    }

    fn node(&mut self, parent: u32, method: u32) -> u32 {
        let number = self.nodes.len() as u32;
        let last = self.nodes[parent as usize].first_child;
        if last != 0 {
            let last_method = self.nodes[last as usize].method;
            if last_method == method {
                return last;
            }
            if let Some(&found) = self.intake.nodes.get(&(parent, method)) {
                return found;
            }
            self.intake.nodes.insert((parent, last_method), last);
        }
        self.nodes.push(Node {
            parent,
            method,
            first_child: 0,
            next_sibling: last,
        });
        self.nodes[parent as usize].first_child = number;
        number
    }

    /// The number of a thread; that of thread 0 if there is no room for it.
    pub fn thread(&mut self, process: u32, seq: u32) -> u32 {
        self.add_root();
        let mut thread = Thread { process, seq };
        let known = &mut self.intake.threads;
        if self.threads.len() >= CAP && !known.contains_key(&thread) {
            thread.seq = 0;
        }
        *known.entry(thread).or_insert_with(|| {
            self.threads.push(thread);
            self.threads.len() as u32 - 1
        })
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
        self.add_root();
        if self.labels.len() >= CAP {
            return self.label_sets.find(&set).map(|it| it.0);
        }
        let id = self.label_sets.intern(set.clone()).0;
        if id as usize == self.labels.len() {
            let text = |&(key, value): &_| (self.shown_text(key), self.shown_text(value));
            let shown: Vec<Label> = set.iter().map(text).collect();
            self.labels.push(shown);
        }
        Some(id)
    }

    /// The label set of time without room.
    pub(super) fn label_set_of_more(&mut self) -> u32 {
        let [key, value] = [MORE, ""].map(|text| self.strings.intern(text));
        let id = self.label_sets.intern(vec![(key, value)]).0;
        if id as usize == self.labels.len() {
            self.labels.push(vec![(MORE.into(), "".into())]);
        }
        id
    }
}
