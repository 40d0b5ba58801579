//! Profiles for the tests: one small one with everything in it, and any number of
//! arbitrary ones.

use proptest::prelude::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{
    Column, LabelSetId, Meta, NodeId, Profile, SamplingStats, Schema, State, Thread, ValueType,
    WeightKey, WeightTable,
};

/// A profile that grows by one weight at a time.
pub struct Builder {
    profile: Profile,
    weights: WeightTable,
}

impl Builder {
    pub fn new(schema: Schema, meta: Meta) -> Self {
        let weights = WeightTable::new(schema.len());
        let mut profile = Profile::new(schema);
        profile.meta = meta;
        Self { profile, weights }
    }

    pub fn thread(&mut self, seq: u32, name: &str) {
        let name = self.profile.strings.intern(name);
        self.profile.threads.push(Thread { seq, name });
    }

    pub fn labels(&mut self, pairs: &[(&str, &str)]) -> LabelSetId {
        test_support::labels(&mut self.profile, pairs)
    }

    /// The node of the stack with these frames, root first.
    pub fn node(&mut self, frames: &[TestFrame<'_>]) -> NodeId {
        test_support::node(&mut self.profile, frames)
    }

    /// Adds a weight, with as many of `values` as there are columns.
    pub fn add(
        &mut self,
        node: NodeId,
        thread: u32,
        labels: LabelSetId,
        state: State,
        values: &[i64],
    ) {
        let key = WeightKey {
            node,
            thread,
            labels,
            state,
        };
        let width = self.profile.schema.len();
        self.weights.add(key, &values[..width]);
    }

    /// Adds a weight of ours: a count, wall time if there is a column for it, CPU time.
    pub fn add_times(
        &mut self,
        node: NodeId,
        thread: u32,
        labels: LabelSetId,
        state: State,
        [count, wall_ns, cpu_ns]: [i64; 3],
    ) {
        let values: &[i64] = match self.profile.schema.find("wall") {
            Some(_) => &[count, wall_ns, cpu_ns],
            None => &[count, cpu_ns],
        };
        self.add(node, thread, labels, state, values);
    }

    pub fn finish(mut self) -> Profile {
        self.profile.weights = self.weights.into_weights();
        assert_eq!(self.profile.check(), Ok(()));
        self.profile
    }
}

/// The profile of the golden files: every state, labels, lines, two threads and
/// time of ended ones, names that need care. `schema` is that of a profile of ours.
pub fn everything(schema: Schema) -> Profile {
    let is_wall = schema.find("wall").is_some();
    let meta = Meta {
        frequency: 1000,
        period: None,
        start_time_ns: 1_700_000_000_000_000_000,
        duration_ns: 2_500_000_000,
        program: "app.rb".into(),
        roots: Vec::new(),
        rperf_directories: Vec::new(),
        notes: vec!["rperf 0.1.0".into(), "ruby 3.4.5".into()],
        missing: Vec::new(),
        counters: SamplingStats {
            trigger_count: 2_500,
            sampling_count: 2_400,
            sampling_time_ns: 1_234_567,
            detected_thread_count: 2,
            dropped_samples: 3,
            dropped_ns: 3_100_000,
            truncated_samples: 1,
            folded_samples: 0,
            folded_ns: 0,
            unlabelled_samples: 0,
            tick_stacks: 2_000,
            safepoint_stacks: 400,
            safepoint_calls: 410,
            unreadable_stacks: 17,
            hidden_frames: 5,
            known_waits: 90,
            interval_ns: 1_000_000,
            off_gvl_interval_ns: 25_000_000,
        },
    };
    let mut builder = Builder::new(schema, meta);
    builder.thread(1, "main");
    builder.thread(2, "");
    let main = ("<main>", "app.rb", 1, 20);
    let work = ("Größe#計算", "app.rb", 5, 7);
    let io = ("Object#io", "app.rb", 10, 11);
    let none = builder.labels(&[]);
    let request = builder.labels(&[("request", "GET /a b"), ("user", "")]);
    let reserved = builder.labels(&[("thread_seq", "x"), ("thread", "y"), ("pprof::base", "z")]);

    let node = builder.node(&[main, work]);
    let ms = 1_000_000;
    builder.add_times(node, 1, none, State::Running, [900, 901 * ms, 900 * ms]);
    builder.add_times(node, 1, request, State::Running, [50, 50 * ms, 49 * ms]);
    builder.add_times(node, 2, reserved, State::Running, [7, 7 * ms, 6 * ms]);
    builder.add_times(node, 1, none, State::GcMarking, [4, 12 * ms, 12 * ms]);
    builder.add_times(node, 1, request, State::GcSweeping, [2, ms / 2, ms / 2]);
    let other_line = builder.node(&[main, ("Größe#計算", "app.rb", 5, 8)]);
    builder.add_times(other_line, 1, none, State::Running, [10, 10 * ms, 10 * ms]);
    let recursion = builder.node(&[
        main,
        work,
        ("Integer#times", "<internal:numeric>", 0, 0),
        work,
    ]);
    builder.add_times(recursion, 1, none, State::Running, [20, 20 * ms, 20 * ms]);
    let odd = builder.node(&[main, ("a;b\nc \u{1b}[31m", "", 0, 0), ("", "x.rb", 1, 1)]);
    builder.add_times(odd, 2, none, State::Running, [1, ms, ms]);
    if is_wall {
        let sleep = builder.node(&[main, io, ("Kernel#sleep", "<C method>", 0, 0)]);
        builder.add_times(sleep, 1, none, State::GvlBlocked, [30, 1_250 * ms, 0]);
        builder.add_times(sleep, 2, none, State::GvlWait, [9, 90 * ms, 0]);
    }
    builder.add_times(NodeId::ROOT, 0, none, State::Running, [0, 2 * ms, 2 * ms]);
    builder.add_times(NodeId::ROOT, 2, none, State::Running, [1, ms, ms]);
    builder.finish()
}

/// Profiles of ours of few names, so that much in them is equal, some of them odd.
pub fn arbitrary() -> impl Strategy<Value = Profile> {
    let schemas = vec![test_support::cpu_schema(), test_support::wall_schema()];
    let number = prop_oneof![0..3_i64, 0..1_000_000_000_i64, Just(i64::MAX)];
    arbitrary_of(prop::sample::select(schemas), number)
}

/// Profiles like those of [`arbitrary`], with any columns and values.
pub fn with_any_columns() -> impl Strategy<Value = Profile> {
    let number = prop_oneof![-3..3_i64, any::<i64>()];
    arbitrary_of(schemas(), number)
}

/// Schemas of few names and units, whose default can be told by pprof: it is the first
/// of its name, or the last type.
fn schemas() -> impl Strategy<Value = Schema> {
    let names = prop::sample::select(vec!["samples", "space", "cpu", "", "a b"]);
    let units = prop::sample::select(vec!["count", "bytes", "nanoseconds", "", "é"]);
    let value_type = (names, units).prop_map(|(name, unit)| ValueType::new(name, unit));
    let types = prop::collection::vec(value_type, 1..=MAX_COLUMNS);
    (types, any::<prop::sample::Index>()).prop_map(|(types, default)| {
        let last = types.len() - 1;
        let name = &types[default.index(types.len())].name;
        let first = types.iter().position(|value_type| value_type.name == *name);
        let default = first.filter(|_| !name.is_empty()).unwrap_or(last);
        Schema::new(types, Column(default)).expect("the default is one of them")
    })
}

const MAX_COLUMNS: usize = 4;

fn arbitrary_of(
    schema: impl Strategy<Value = Schema>,
    number: impl Strategy<Value = i64>,
) -> impl Strategy<Value = Profile> {
    let names = prop::sample::select(vec!["a", "b;c", "[GC marking]", "", "é\n", "x"]);
    let paths = prop::sample::select(vec!["a.rb", "", "<C method>"]);
    let frame = (names, paths, 0..2u32, 0..3u32);
    let stack = prop::collection::vec(frame, 0..5);
    let keys = prop::sample::subsequence(vec!["request", "thread", "%GC", "label.x", ""], 0..4);
    let labels = prop::collection::vec(prop::sample::select(vec!["", "v", "w w"]), 4)
        .prop_flat_map(move |values| (keys.clone(), Just(values)));
    let max = i64::MAX as u64;
    let state = prop::sample::select(State::ALL.to_vec());
    let values = prop::collection::vec(number, MAX_COLUMNS);
    let sample = (stack, 0..4u32, labels, state, values);
    let meta = (1..=10_000u32, 0..=max, 0..=max, any::<[u64; 18]>());
    let samples = prop::collection::vec(sample, 0..20);
    (schema, meta, samples).prop_map(|(schema, meta, samples)| {
        let mut builder = Builder::new(schema, arbitrary_meta(meta));
        for seq in 1..4 {
            builder.thread(seq, ["", "worker", "é"][seq as usize - 1]);
        }
        for (stack, thread, (keys, label_values), state, values) in samples {
            let pairs: Vec<_> = keys.into_iter().zip(label_values).collect();
            let labels = builder.labels(&pairs);
            let node = builder.node(&stack);
            builder.add(node, thread, labels, state, &values);
        }
        builder.finish()
    })
}

fn arbitrary_meta(
    (frequency, start_time_ns, duration_ns, counters): (u32, u64, u64, [u64; 18]),
) -> Meta {
    Meta {
        frequency,
        period: None,
        start_time_ns,
        duration_ns,
        program: "ruby".into(),
        roots: vec!["/srv/app".into()],
        rperf_directories: vec!["/opt/rperf/lib".into()],
        notes: vec!["one".into(), "".into(), "dropped samples: 0".into()],
        missing: vec!["lines, because nobody knows them".into(), "names".into()],
        counters: SamplingStats {
            trigger_count: counters[0],
            sampling_count: counters[1],
            sampling_time_ns: counters[2],
            detected_thread_count: counters[3],
            dropped_samples: counters[4],
            dropped_ns: counters[5],
            truncated_samples: counters[6],
            unlabelled_samples: counters[7],
            tick_stacks: counters[8],
            safepoint_stacks: counters[9],
            safepoint_calls: counters[10],
            unreadable_stacks: counters[11],
            hidden_frames: counters[12],
            interval_ns: counters[13],
            off_gvl_interval_ns: counters[14],
            folded_samples: counters[15],
            folded_ns: counters[16],
            known_waits: counters[17],
        },
    }
}
