//! `NativeProfile#to_h`. On a Ruby thread, with the GVL, which others get in between.
//!
//! The Hash is about methods, as users know it: rows whose stacks differ in lines
//! only are one row. Everything that repeats is one frozen object, so that many
//! stacks cost little: texts, frames, and the frames of a stack.
//!
//! Ruby objects are kept in Ruby arrays and named by their index there: the
//! garbage collector doesn't see into Rust's collections.

use crate::interrupts::Stretch;
use crate::without_gvl::without_gvl;
use magnus::{Error, RArray, RHash, RString, Ruby, Value, value::ReprValue};
use rperf_model::{
    CallTree, Column, DisplayFrame, FrameId, LabelSets, NodeId, Profile, Weight, WeightKey,
    WeightTable, Weights,
};
use rperf_report::is_traced;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The Hash that users get.
pub fn to_hash(ruby: &Ruby, profile: &Profile) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    let set = |key: &str, value: Value| hash.aset(ruby.to_symbol(key), value);
    let number = |number: u64| ruby.integer_from_u64(number).as_value();
    let meta = &profile.meta;
    let counters = &meta.counters;
    let mode = match is_traced(profile) {
        true => "trace",
        false => profile.schema.default_type().name.as_str(),
    };
    set("mode", ruby.to_symbol(mode).as_value())?;
    let frequency = (meta.frequency > 0).then(|| number(u64::from(meta.frequency)));
    set("frequency", frequency.unwrap_or(ruby.qnil().as_value()))?;
    set("sampling_count", number(counters.sampling_count))?;
    set("sampling_time_ns", number(counters.sampling_time_ns))?;
    set("trigger_count", number(counters.trigger_count))?;
    set(
        "detected_thread_count",
        number(counters.detected_thread_count),
    )?;
    set("start_time_ns", number(meta.start_time_ns))?;
    set("duration_ns", number(meta.duration_ns))?;
    let shapes = without_gvl(|| Shapes::new(profile));
    let mut rows = Rows::new(ruby, profile, &shapes.first_nodes);
    let (samples, second_name) = match &profile.raw_samples {
        Some(raw) => {
            for (time_ns, weight) in raw.iter() {
                rows.push(weight, Some(time_ns))?;
            }
            (rows.finish(), "raw_samples")
        }
        None => {
            for weight in shapes.weights.iter() {
                rows.push(weight, None)?;
            }
            set("unique_frames", number(profile.frames.len() as u64))?;
            set("unique_stacks", number(rows.stacks.len() as u64))?;
            (rows.finish(), "aggregated_samples")
        }
    };
    set("dropped_samples", number(counters.dropped_samples))?;
    set("dropped_ns", number(counters.dropped_ns))?;
    set("truncated_samples", number(counters.truncated_samples))?;
    set("unlabelled_samples", number(counters.unlabelled_samples))?;
    set("tick_stacks", number(counters.tick_stacks))?;
    set("safepoint_stacks", number(counters.safepoint_stacks))?;
    set("safepoint_calls", number(counters.safepoint_calls))?;
    set("unreadable_stacks", number(counters.unreadable_stacks))?;
    set("hidden_frames", number(counters.hidden_frames))?;
    set("interval_ns", number(counters.interval_ns))?;
    set("off_gvl_interval_ns", number(counters.off_gvl_interval_ns))?;
    set("samples", samples.as_value())?;
    set(second_name, samples.as_value())?;
    if profile.label_sets.len() > 1 {
        set("label_sets", label_sets(ruby, profile)?.as_value())?;
    }
    Ok(hash)
}

fn label_sets(ruby: &Ruby, profile: &Profile) -> Result<RArray, Error> {
    let sets = ruby.ary_new();
    let mut stretch = Stretch::begin();
    for set in LabelSets::iter(&profile.label_sets) {
        stretch.end_if_long()?;
        let hash = ruby.hash_new();
        for &(key, value) in set {
            let value = ruby.str_new(profile.strings.get(value));
            value.freeze();
            hash.aset(ruby.to_symbol(profile.strings.get(key)), value)?;
        }
        hash.freeze();
        sets.push(hash)?;
    }
    sets.freeze();
    Ok(sets)
}

/// The profile's stacks as the Hash has them: without lines.
struct Shapes {
    /// For each node, by id, the first one with the same frames, whatever the lines.
    first_nodes: Vec<NodeId>,
    /// The weights, summed over stacks that differ in lines only; none if each sample is shown.
    weights: Weights,
}

impl Shapes {
    fn new(profile: &Profile) -> Self {
        let first_nodes = first_nodes(&profile.tree);
        let mut table = WeightTable::new(profile.weights.width());
        if profile.raw_samples.is_none() {
            for weight in profile.weights.iter() {
                table.add(without_line(&first_nodes, weight.key), weight.values);
            }
        }
        Self {
            first_nodes,
            weights: table.into_weights(),
        }
    }
}

fn without_line(first_nodes: &[NodeId], key: WeightKey) -> WeightKey {
    let node = first_nodes.get(key.node.0 as usize).copied();
    WeightKey {
        node: node.unwrap_or(key.node),
        ..key
    }
}

/// The array of samples in the making.
struct Rows<'a> {
    ruby: &'a Ruby,
    profile: &'a Profile,
    rows: RArray,
    texts: Shared<&'a str>,
    frames: Shared<DisplayFrame>,
    stacks: Shared<(NodeId, Option<DisplayFrame>)>,
    first_nodes: &'a [NodeId],
    stretch: Stretch,
    count: Option<Column>,
    cpu: Option<Column>,
}

impl<'a> Rows<'a> {
    fn new(ruby: &'a Ruby, profile: &'a Profile, first_nodes: &'a [NodeId]) -> Self {
        Self {
            ruby,
            profile,
            rows: ruby.ary_new(),
            texts: Shared::new(ruby),
            frames: Shared::new(ruby),
            stacks: Shared::new(ruby),
            first_nodes,
            stretch: Stretch::begin(),
            count: profile.schema.samples(),
            cpu: profile.schema.find("cpu"),
        }
    }

    /// A profile of another tool has no count or no CPU time: nil.
    fn push(&mut self, weight: Weight<'_>, time_ns: Option<u64>) -> Result<(), Error> {
        self.stretch.end_if_long()?;
        let frames = self.stack(weight.key)?;
        let ruby = self.ruby;
        let row = ruby.ary_new_capa(7);
        row.push(frames)?;
        row.push(weight.value(self.profile.schema.default_column()))?;
        row.push(weight.key.thread)?;
        row.push(weight.key.labels.0)?;
        row.push(self.count.map(|column| weight.value(column)))?;
        row.push(self.cpu.map(|column| weight.value(column)))?;
        if let Some(time_ns) = time_ns {
            row.push(time_ns)?;
        }
        row.freeze();
        self.rows.push(row)
    }

    fn finish(self) -> RArray {
        self.rows.freeze();
        self.rows
    }

    fn stack(&mut self, key: WeightKey) -> Result<Value, Error> {
        let key = without_line(self.first_nodes, key);
        let shown = (key.node, self.profile.display_leaf(key));
        if let Some(stack) = self.stacks.get(shown)? {
            return Ok(stack);
        }
        let shared: Result<Vec<Value>, Error> = self
            .profile
            .display_stack(key)
            .map(|frame| self.frame(frame))
            .collect();
        // The collector finds them in `frames`.
        let stack = self.ruby.ary_new_from_values(&shared?);
        self.stacks.add(shown, stack)
    }

    fn frame(&mut self, frame: DisplayFrame) -> Result<Value, Error> {
        let key = match frame {
            DisplayFrame::Real { frame, .. } => DisplayFrame::Real { frame, line: 0 },
            other => other,
        };
        if let Some(frame) = self.frames.get(key)? {
            return Ok(frame);
        }
        let text = self.profile.frame_text(key);
        let pair = self.ruby.ary_new_capa(2);
        pair.push(self.text(text.path)?)?;
        pair.push(self.text(text.name)?)?;
        self.frames.add(key, pair)
    }

    fn text(&mut self, text: &'a str) -> Result<Value, Error> {
        match self.texts.get(text)? {
            Some(value) => Ok(value),
            None => {
                let value: RString = self.ruby.str_new(text);
                self.texts.add(text, value)
            }
        }
    }
}

fn first_nodes(tree: &CallTree) -> Vec<NodeId> {
    let mut first: FxHashMap<(NodeId, FrameId), NodeId> = FxHashMap::default();
    let mut nodes = vec![NodeId::ROOT];
    for (id, node) in tree.iter() {
        let parent = nodes
            .get(node.parent.0 as usize)
            .copied()
            .unwrap_or_default();
        nodes.push(*first.entry((parent, node.frame)).or_insert(id));
    }
    nodes
}

/// Frozen Ruby objects, each made once.
struct Shared<K> {
    objects: RArray,
    indexes: FxHashMap<K, isize>,
}

impl<K: Eq + Hash> Shared<K> {
    fn new(ruby: &Ruby) -> Self {
        Self {
            objects: ruby.ary_new(),
            indexes: FxHashMap::default(),
        }
    }

    fn len(&self) -> usize {
        self.indexes.len()
    }

    fn get(&self, key: K) -> Result<Option<Value>, Error> {
        self.indexes
            .get(&key)
            .map(|&index| self.objects.entry(index))
            .transpose()
    }

    fn add(&mut self, key: K, object: impl ReprValue) -> Result<Value, Error> {
        object.freeze();
        self.indexes.insert(key, self.objects.len() as isize);
        let object = object.as_value();
        self.objects.push(object)?;
        Ok(object)
    }
}
