//! A small builder of profiles for this crate's tests.

use crate::{
    Frame, LabelSetId, Mode, Node, NodeId, Profile, RawSample, State, Thread, Values, Weight,
    WeightTable,
};

/// A profile that grows by one stack at a time.
#[derive(Debug)]
pub struct TestProfile {
    pub profile: Profile,
}

impl TestProfile {
    pub fn new(mode: Mode) -> Self {
        let mut profile = Profile::default();
        profile.meta.mode = mode;
        profile.meta.frequency = 1000;
        Self { profile }
    }

    /// The node of the stack with these names, root first.
    pub fn node(&mut self, names: &[&str]) -> NodeId {
        let path = self.profile.strings.intern("a.rb");
        names.iter().fold(NodeId::ROOT, |parent, name| {
            let name = self.profile.strings.intern(name);
            let frame = self.profile.frames.intern(Frame {
                name,
                path,
                first_line: 1,
            });
            self.profile.tree.intern(Node {
                parent,
                frame,
                line: 2,
            })
        })
    }

    /// The set with these labels.
    pub fn labels(&mut self, pairs: &[(&str, &str)]) -> LabelSetId {
        let strings = &mut self.profile.strings;
        let set = pairs
            .iter()
            .map(|(key, value)| (strings.intern(key), strings.intern(value)))
            .collect();
        self.profile.label_sets.intern(set)
    }

    /// Adds one sample of `ns`.
    pub fn add(&mut self, names: &[&str], thread: u32, labels: LabelSetId, state: State, ns: u64) {
        let node = self.node(names);
        let (wall_ns, cpu_ns) = match self.profile.meta.mode {
            Mode::Wall => (ns, ns / 2),
            Mode::Cpu if state.is_gc() => (ns, ns),
            Mode::Cpu => (0, ns),
        };
        let weight = Weight {
            node,
            thread,
            labels,
            state,
            values: Values {
                count: 1,
                wall_ns,
                cpu_ns,
            },
        };
        if thread > 0 && !self.profile.threads.iter().any(|row| row.seq == thread) {
            let name = self.profile.strings.intern(&format!("thread {thread}"));
            self.profile.threads.push(Thread { seq: thread, name });
        }
        let mut table = WeightTable::from_iter(std::mem::take(&mut self.profile.weights));
        table.add(weight);
        self.profile.weights = table.into_rows();
        if let Some(raw) = &mut self.profile.raw_samples {
            let time_ns = raw.last().map_or(0, |last| last.time_ns) + ns;
            raw.push(RawSample { time_ns, weight });
        }
    }

    /// The same with one sample of `ns` more, without labels.
    pub fn with(mut self, names: &[&str], thread: u32, state: State, ns: u64) -> Self {
        self.add(names, thread, LabelSetId(0), state, ns);
        self
    }

    /// The same, keeping from now on each sample too.
    pub fn raw(mut self) -> Self {
        self.profile.raw_samples = Some(Vec::new());
        self
    }
}
