//! A small builder of profiles for this crate's tests.

use crate::{
    LabelSetId, Mode, NodeId, Profile, RawSample, State, Thread, Values, Weight, WeightTable,
    test_support,
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
        let frames: Vec<_> = names.iter().map(|&name| (name, "a.rb", 1, 2)).collect();
        test_support::node(&mut self.profile, &frames)
    }

    /// The set with these labels.
    pub fn labels(&mut self, pairs: &[(&str, &str)]) -> LabelSetId {
        test_support::labels(&mut self.profile, pairs)
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
