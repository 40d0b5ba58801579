//! The sites at which the objects were made that stay, in a profile of a session that measures heap. Used by
//! `rperf leak`; any thread.

use crate::rows::tags::label;
use crate::stack::groups::{FrameKey, Groups};
use rperf_model::label_keys::{AGE, CLASS};
use rperf_model::{FrameKind, Node, NodeId, Note, OwnColumn, Profile};
use rustc_hash::FxHashMap;

/// The age of objects that no collection has had a chance at.
pub const YOUNGEST: &str = "<1 GC";

/// Where objects were made, and of which class they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InUseSite {
    /// The method.
    pub method: String,
    /// Its path as people see it.
    pub path: String,
    /// The line; 0 if it isn't known.
    pub line: u32,
    /// The class of the objects; empty if it isn't known.
    pub class: String,
}

/// How many objects there are, and their bytes: estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// Objects.
    pub objects: u64,
    /// Bytes of their slots.
    pub bytes: u64,
}

/// What a session has that measures heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitesInUse {
    /// The session: those of another one follow other objects.
    pub session: String,
    /// The bytes that a sample stands for.
    pub each: u64,
    /// The sites of objects that a collection has left alone.
    pub sites: FxHashMap<InUseSite, InUse>,
}

impl SitesInUse {
    /// The sites of a profile; `None` if its session doesn't measure heap.
    pub fn of(profile: &Profile) -> Option<Self> {
        let columns = [OwnColumn::ObjectsInUse, OwnColumn::BytesInUse];
        let [objects, bytes] = columns.map(|it| profile.schema.find_own(it));
        let (objects, bytes) = (objects?, bytes?);
        let session = profile.meta.notes.iter().find_map(|it| match it {
            Note::InUse(process) => Some(process.clone()),
            _ => None,
        });
        let groups = Groups::new(profile, FrameKey::Function);
        let mut sites: FxHashMap<InUseSite, InUse> = FxHashMap::default();
        for row in profile.weights.iter() {
            let [objects, bytes] = [objects, bytes].map(|it| row.value(it).max(0) as u64);
            let labels = row.key.labels;
            if objects == 0 && bytes == 0 || label(profile, labels, AGE) == Some(YOUNGEST) {
                continue;
            }
            let node = site(profile, row.key.node);
            let function = node.map(|it| groups.function(groups.of_frame(it.frame)));
            let function = function.unwrap_or_default();
            let site = InUseSite {
                method: function.name,
                path: function.short_path,
                line: node.map_or(0, |it| it.line),
                class: label(profile, labels, CLASS).unwrap_or_default().into(),
            };
            let sum = sites.entry(site).or_default();
            sum.objects = sum.objects.saturating_add(objects);
            sum.bytes = sum.bytes.saturating_add(bytes);
        }
        Some(SitesInUse {
            session: session.unwrap_or_default(),
            each: profile.meta.sampled_objects()?.0,
            sites,
        })
    }
}

/// Where a stack made an object: in the innermost method that is in a file, or else the innermost of all.
fn site(profile: &Profile, leaf: NodeId) -> Option<Node> {
    let nodes = std::iter::successors(profile.tree.get(leaf), |node| profile.tree.get(node.parent));
    let is_in_file = |node: &&&Node| {
        let frame = profile.frames.get(node.frame);
        let path = frame.map_or("", |it| profile.strings.get(it.path));
        !matches!(
            FrameKind::of(path),
            FrameKind::CMethod | FrameKind::Internal
        )
    };
    let innermost = profile.tree.get(leaf);
    nodes
        .clone()
        .find(|it| is_in_file(&it))
        .or(innermost)
        .copied()
}
