//! Label sets: the key-value pairs that a program puts on its samples.
//! Any thread, no I/O.

use crate::StringId;
use rustc_hash::FxHashMap;

/// Index of a label set in [`LabelSets`]. Id 0 is always the empty set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabelSetId(pub u32);

/// Pairs of key and value, each key once, in the order in which they were set.
pub type LabelSet = Vec<(StringId, StringId)>;

/// A table of unique label sets; id 0 is the empty one.
#[derive(Debug, Clone)]
pub struct LabelSets {
    table: Vec<LabelSet>,
    index: FxHashMap<LabelSet, LabelSetId>,
}

impl Default for LabelSets {
    fn default() -> Self {
        let empty = LabelSet::new();
        Self {
            table: vec![empty.clone()],
            index: FxHashMap::from_iter([(empty, LabelSetId(0))]),
        }
    }
}

impl LabelSets {
    /// The id of `set`, which is added if it is new.
    pub fn intern(&mut self, set: LabelSet) -> LabelSetId {
        if let Some(&id) = self.index.get(&set) {
            return id;
        }
        let id = LabelSetId(self.table.len() as u32);
        self.table.push(set.clone());
        self.index.insert(set, id);
        id
    }

    /// The set with this id; empty for an id that is not in the table.
    pub fn get(&self, id: LabelSetId) -> &[(StringId, StringId)] {
        self.table.get(id.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// How many sets there are, the empty one included.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// All sets in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[(StringId, StringId)]> {
        self.table.iter().map(Vec::as_slice)
    }
}
