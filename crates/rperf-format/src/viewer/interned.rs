//! Lists in which each item is once. Used by the tables of RPV1; any thread.

use rustc_hash::FxHashMap;

/// Rows that are there once each, in the order of first sight.
#[derive(Debug)]
pub(super) struct Interned<T> {
    pub(super) table: Vec<T>,
    pub(super) index: FxHashMap<T, u32>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            table: Vec::new(),
            index: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    pub(super) fn id(&mut self, row: T) -> u32 {
        let table = &mut self.table;
        *self.index.entry(row).or_insert_with_key(|row| {
            table.push(row.clone());
            table.len() as u32 - 1
        })
    }

    pub(super) fn rows(&self) -> std::slice::Iter<'_, T> {
        self.table.iter()
    }
}

/// For each context the items that were seen in it, in order: `None` is the root.
#[derive(Debug, Default)]
pub(super) struct SeenLists {
    indexes: FxHashMap<(Option<u32>, u32), u32>,
    lengths: FxHashMap<Option<u32>, u32>,
    /// The new items, in order.
    pub(super) new: Vec<u32>,
}

impl SeenLists {
    /// The index of `item` in the list of `context`, to whose end it is added if it is
    /// new.
    pub(super) fn index(&mut self, context: Option<u32>, item: u32) -> u32 {
        *self.indexes.entry((context, item)).or_insert_with(|| {
            self.new.push(item);
            let length = self.lengths.entry(context).or_default();
            *length += 1;
            *length - 1
        })
    }
}
