//! Objects in a profile, counted or sampled: two columns, and a row for each stack and class. On the
//! thread that asks for the profile.

use crate::frame_names::ResolvedFrame;
use rperf_model::frame_kind::TRUNCATED_FRAME;
use rperf_model::label_keys::CLASS;
use rperf_model::{
    LabelSetId, Node, NodeId, Note, OwnColumn, Profile, State, StringId, Thread, WeightKey,
    WeightTable,
};
use rustc_hash::FxHashSet;

/// The columns.
const COLUMNS: [OwnColumn; 2] = [OwnColumn::Objects, OwnColumn::Bytes];

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
    /// How many there are.
    pub objects: u64,
    /// The bytes that they take.
    pub bytes: u64,
}

impl ObjectRow<'_> {
    /// The row of objects whose sites found no room.
    pub fn lost(profile: &mut Profile, objects: u64, bytes: u64) -> Self {
        let (name, path) = TRUNCATED_FRAME;
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
            objects,
            bytes,
        }
    }
}

/// Adds the columns, these rows, and a `note` on them to `profile`, which has no samples one by one.
pub fn add_object_columns<'a>(
    profile: &mut Profile,
    rows: impl Iterator<Item = ObjectRow<'a>>,
    note: Note,
) {
    let old_width = profile.schema.len();
    profile.schema = profile.schema.with(COLUMNS);
    profile.meta.notes.push(note);
    let mut table = WeightTable::new(old_width + COLUMNS.len());
    for weight in profile.weights.iter() {
        let mut values = weight.values.to_vec();
        values.resize(old_width + COLUMNS.len(), 0);
        table.add(weight.key, &values);
    }
    let key = profile.strings.intern(CLASS);
    let mut seqs: FxHashSet<u32> = profile.threads.iter().map(|thread| thread.seq).collect();
    for row in rows {
        if row.thread != 0 && seqs.insert(row.thread) {
            profile.threads.push(Thread {
                seq: row.thread,
                name: StringId(0),
            });
        }
        let class = profile.strings.intern(row.class);
        let labels = match row.class {
            "" => LabelSetId::default(),
            _ => {
                let mut set = profile.label_sets.get(row.labels).to_vec();
                set.push((key, class));
                profile.label_sets.intern(set)
            }
        };
        let key = WeightKey {
            node: row.node,
            thread: row.thread,
            labels,
            state: State::Running,
        };
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut values = vec![0; old_width];
        values.extend([signed(row.objects), signed(row.bytes)]);
        table.add(key, &values);
    }
    profile.threads.sort_by_key(|thread| thread.seq);
    profile.weights = table.into_weights();
}
