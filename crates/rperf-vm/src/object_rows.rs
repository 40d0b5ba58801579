//! Objects in a profile, counted or sampled: two columns, two more if those in use are known, and one of what they
//! cost the collector if that is, and a row for each stack and class, and for each age of those in use. On the
//! thread that asks for the profile.

use crate::frame_names::ResolvedFrame;
use rperf_model::frame_kind::TRUNCATED_FRAME;
use rperf_model::label_keys::{AGE, CLASS};
use rperf_model::numbers::signed;
use rperf_model::{
    LabelSetId, Node, NodeId, Note, OwnColumn, Profile, State, StringId, Thread, WeightKey,
    WeightTable,
};
use rustc_hash::FxHashSet;

/// The columns of all objects, and of those in use.
const MADE: [OwnColumn; 2] = [OwnColumn::Objects, OwnColumn::Bytes];
const IN_USE: [OwnColumn; 2] = [OwnColumn::ObjectsInUse, OwnColumn::BytesInUse];

/// What is known of objects beside how many were made.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownOfObjects {
    /// Which are in use.
    pub in_use: bool,
    /// What they cost the collector.
    pub gc_cost: bool,
}

/// The class of objects that the program doesn't see.
pub const HIDDEN_CLASS: &str = "(internal)";

/// A row of objects.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRow<'a> {
    /// Where they were made.
    pub node: NodeId,
    /// The number of the thread; 0 if it isn't known.
    pub thread: u32,
    /// Their class; empty if it isn't known.
    pub class: &'a str,
    /// The profile's label set, beside which the class is a label.
    pub labels: LabelSetId,
    /// `None`: they were made. Else they are in use, and have this age.
    pub age: Option<&'static str>,
    /// How many there are.
    pub objects: u64,
    /// The bytes that they take.
    pub bytes: u64,
    /// What they cost the collector, in ns.
    pub gc_cost_ns: u64,
}

impl ObjectRow<'_> {
    /// The row of objects whose sites found no room.
    pub fn lost(profile: &mut Profile, objects: u64, bytes: u64) -> Self {
        Self {
            objects,
            bytes,
            ..Self::of_frame(profile, TRUNCATED_FRAME)
        }
    }

    /// An empty row of a frame that stands for no site: its name and path.
    pub fn of_frame(profile: &mut Profile, frame: (&str, &str)) -> Self {
        let (name, path) = frame;
        let frame = ResolvedFrame::new(name, path).intern(profile);
        Self {
            node: profile.tree.intern(Node {
                parent: NodeId::ROOT,
                frame,
                line: 0,
            }),
            thread: 0,
            class: "",
            labels: LabelSetId::default(),
            age: None,
            objects: 0,
            bytes: 0,
            gc_cost_ns: 0,
        }
    }
}

/// Adds the columns, these rows, and `notes` on them to `profile`, which has no samples one by one.
pub fn add_object_columns<'a>(
    profile: &mut Profile,
    known: KnownOfObjects,
    rows: impl Iterator<Item = ObjectRow<'a>>,
    notes: impl IntoIterator<Item = Note>,
) {
    let old_width = profile.schema.len();
    let in_use = IN_USE.into_iter().filter(|_| known.in_use);
    let cost = Some(OwnColumn::GcCost).filter(|_| known.gc_cost);
    let columns = MADE.into_iter().chain(in_use).chain(cost);
    profile.schema = profile.schema.with(columns);
    let width = profile.schema.len();
    profile.meta.notes.extend(notes);
    let mut table = WeightTable::new(width);
    for weight in profile.weights.iter() {
        let mut values = weight.values.to_vec();
        values.resize(width, 0);
        table.add(weight.key, &values);
    }
    let [class_key, age_key] = [CLASS, AGE].map(|it| profile.strings.intern(it));
    let mut seqs: FxHashSet<u32> = profile.threads.iter().map(|thread| thread.seq).collect();
    for row in rows {
        if row.thread != 0 && seqs.insert(row.thread) {
            profile.threads.push(Thread {
                seq: row.thread,
                name: StringId(0),
            });
        }
        let mut set = profile.label_sets.get(row.labels).to_vec();
        let labels = [(class_key, row.class), (age_key, row.age.unwrap_or(""))];
        for (key, text) in labels.into_iter().filter(|(_, text)| !text.is_empty()) {
            set.push((key, profile.strings.intern(text)));
        }
        let labels = profile.label_sets.intern(set);
        let key = WeightKey {
            node: row.node,
            thread: row.thread,
            labels,
            state: State::Running,
        };
        let mut values = vec![0; width];
        let first = old_width + if row.age.is_some() { 2 } else { 0 };
        (values[first], values[first + 1]) = (signed(row.objects), signed(row.bytes));
        if known.gc_cost {
            values[width - 1] = signed(row.gc_cost_ns);
        }
        table.add(key, &values);
    }
    profile.threads.sort_by_key(|thread| thread.seq);
    profile.weights = table.into_weights();
}
