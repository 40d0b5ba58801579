//! Label sets: the key-value pairs that a program puts on its samples. Filled by the engine, traces and the
//! readers, read by filters and formats. Any thread, no I/O.

pub mod label_keys;

use crate::StringId;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index of a label set in [`LabelSets`]. Id 0 is always the empty set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabelSetId(pub u32);

/// Pairs of key and value, each key once, in the order in which they were set.
pub type LabelSet = Vec<(StringId, StringId)>;

/// A table of unique label sets; id 0 is the empty one.
#[derive(Debug, Clone)]
pub struct LabelSets {
    table: Vec<Arc<[(StringId, StringId)]>>,
    index: FxHashMap<Arc<[(StringId, StringId)]>, LabelSetId>,
    /// Labels of all sets together.
    labels: usize,
}

impl Default for LabelSets {
    fn default() -> Self {
        let mut sets = Self {
            table: Vec::new(),
            index: FxHashMap::default(),
            labels: 0,
        };
        sets.intern(LabelSet::new());
        sets
    }
}

impl LabelSets {
    /// The id of `set`, which is added if it is new.
    pub fn intern(&mut self, set: LabelSet) -> LabelSetId {
        if let Some(&id) = self.index.get(set.as_slice()) {
            return id;
        }
        let id = LabelSetId(self.table.len() as u32);
        self.labels += set.len();
        let set: Arc<[_]> = set.into();
        self.table.push(Arc::clone(&set));
        self.index.insert(set, id);
        id
    }

    /// The id of `set`, if it is there.
    pub fn find(&self, set: &[(StringId, StringId)]) -> Option<LabelSetId> {
        self.index.get(set).copied()
    }

    /// The set with this id; empty for an id that is not in the table.
    pub fn get(&self, id: LabelSetId) -> &[(StringId, StringId)] {
        self.table.get(id.0 as usize).map_or(&[], |set| set)
    }

    /// How many sets there are, the empty one included.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        let each = size_of::<Arc<[(StringId, StringId)]>>() + crate::memory::COUNTS;
        let labels = self.labels * size_of::<(StringId, StringId)>();
        labels + self.len() * each + crate::memory::of_map(&self.index)
    }

    /// All sets in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[(StringId, StringId)]> {
        self.table.iter().map(|set| &**set)
    }
}
