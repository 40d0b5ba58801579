//! A small builder of profiles for tests, here and in other crates. Behind the feature
//! `test-support`. Any thread, no I/O.

use crate::{
    LabelSetId, NodeId, Profile, RawSamples, Schema, State, Thread, WeightKey, WeightTable,
    test_support,
};

/// A profile that grows by one stack at a time.
#[derive(Debug)]
pub struct TestProfile {
    /// The profile so far.
    pub profile: Profile,
}

impl TestProfile {
    /// An empty one with this schema.
    pub fn new(schema: Schema) -> Self {
        let mut profile = Profile::new(schema);
        profile.meta.frequency = 1000;
        Self { profile }
    }

    /// A profile of CPU time.
    pub fn cpu() -> Self {
        Self::new(test_support::cpu_schema())
    }

    /// A profile of wall time.
    pub fn wall() -> Self {
        Self::new(test_support::wall_schema())
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

    /// Adds one sample: 1 in the first column, `value` in the second, and half of it
    /// in all others.
    pub fn add(
        &mut self,
        names: &[&str],
        thread: u32,
        labels: LabelSetId,
        state: State,
        value: i64,
    ) {
        let key = WeightKey {
            node: self.node(names),
            thread,
            labels,
            state,
        };
        if thread > 0 && !self.profile.threads.iter().any(|row| row.seq == thread) {
            let name = self.profile.strings.intern(&format!("thread {thread}"));
            self.profile.threads.push(Thread { seq: thread, name });
        }
        let mut values = vec![value / 2; self.profile.schema.len()];
        values[0] = 1;
        values[1] = value;
        let mut table = WeightTable::from(&self.profile.weights);
        table.add(key, &values);
        self.profile.weights = table.into_weights();
        if let Some(raw) = &mut self.profile.raw_samples {
            let last_ns = raw.times_ns.last().copied().unwrap_or(0);
            raw.push(last_ns + value.unsigned_abs(), key, &values);
        }
    }

    /// The profile with one sample more, without labels.
    pub fn with(mut self, names: &[&str], thread: u32, state: State, value: i64) -> Self {
        self.add(names, thread, LabelSetId(0), state, value);
        self
    }

    /// The profile, which from now on keeps each sample too.
    pub fn raw(mut self) -> Self {
        self.profile.raw_samples = Some(RawSamples::new(self.profile.schema.len()));
        self
    }
}
