//! The long Arrays of the Hash that users get, which are made when something asks for them. On a
//! Ruby thread, with the GVL, which others get in between.
//!
//! They are about methods, as users know them: rows whose stacks differ in lines
//! only are one row. Everything that repeats is one frozen object, so that many
//! stacks cost little: texts, frames, and the frames of a stack.
//!
//! Ruby objects are kept in Ruby arrays and named by their index there: the
//! garbage collector doesn't see into Rust's collections.

use crate::interrupts::{Stretch, without_gvl_if_possible};
use magnus::{Error, RArray, RString, Ruby, Value, value::ReprValue};
use rperf_model::{
    CallTree, Column, DisplayFrame, FrameId, LabelSets, NodeId, OwnColumn, Profile, Weight,
    WeightKey, WeightTable, Weights,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// `NativeProfile#samples`: the rows.
pub fn samples(ruby: &Ruby, profile: &Profile) -> Result<RArray, Error> {
    let (shapes, weights) = without_gvl_if_possible(|| {
        let shapes = Shapes::new(profile);
        let weights = shapes.weights(profile);
        (shapes, weights)
    })?;
    let mut rows = Rows::new(ruby, profile, &shapes);
    match &profile.raw_samples {
        Some(raw) => {
            for (time_ns, weight) in raw.iter() {
                rows.push(weight, Some(time_ns))?;
            }
        }
        None => {
            for weight in weights.iter() {
                rows.push(weight, None)?;
            }
        }
    }
    Ok(rows.finish())
}

/// `NativeProfile#label_sets`: Hashes of labels, by their number.
pub fn label_sets(ruby: &Ruby, profile: &Profile) -> Result<RArray, Error> {
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

/// The profile's stacks as users see them: without lines.
pub struct Shapes {
    /// For each node, by id, the first one with the same frames, whatever the lines.
    first_nodes: Vec<NodeId>,
}

impl Shapes {
    pub fn new(profile: &Profile) -> Self {
        let first_nodes = first_nodes(&profile.tree);
        Self { first_nodes }
    }

    /// How many different stacks there are.
    pub fn stacks(&self, profile: &Profile) -> usize {
        let shown = profile.weights.iter();
        let shown = shown.map(|weight| self.stack(profile, weight.key));
        shown.collect::<FxHashSet<_>>().len()
    }

    /// The weights, summed over stacks that differ in lines only; none if each sample is shown.
    fn weights(&self, profile: &Profile) -> Weights {
        let mut table = WeightTable::new(profile.weights.width());
        if profile.raw_samples.is_none() {
            for weight in profile.weights.iter() {
                table.add(self.without_line(weight.key), weight.values);
            }
        }
        table.into_weights()
    }

    fn without_line(&self, key: WeightKey) -> WeightKey {
        let node = self.first_nodes.get(key.node.0 as usize).copied();
        WeightKey {
            node: node.unwrap_or(key.node),
            ..key
        }
    }

    /// What tells stacks apart: the node, and the leaf that the state is shown by.
    fn stack(&self, profile: &Profile, key: WeightKey) -> (NodeId, Option<DisplayFrame>) {
        let key = self.without_line(key);
        (key.node, profile.display_leaf(key))
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
    shapes: &'a Shapes,
    stretch: Stretch,
    count: Option<Column>,
    cpu: Option<Column>,
}

impl<'a> Rows<'a> {
    fn new(ruby: &'a Ruby, profile: &'a Profile, shapes: &'a Shapes) -> Self {
        Self {
            ruby,
            profile,
            rows: ruby.ary_new(),
            texts: Shared::new(ruby),
            frames: Shared::new(ruby),
            stacks: Shared::new(ruby),
            shapes,
            stretch: Stretch::begin(),
            count: profile.schema.samples(),
            cpu: profile.schema.find_own(OwnColumn::Cpu),
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
        let shown = self.shapes.stack(self.profile, key);
        if let Some(stack) = self.stacks.get(shown)? {
            return Ok(stack);
        }
        let shared: Result<Vec<Value>, Error> = self
            .profile
            .display_stack(self.shapes.without_line(key))
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
