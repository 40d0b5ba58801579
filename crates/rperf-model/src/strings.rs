//! Interned strings. Used by the profile's tables; any thread, no I/O.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index of a string in [`Strings`]. Id 0 is always the empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StringId(pub u32);

/// A table of unique strings; id 0 is the empty string.
#[derive(Debug, Clone)]
pub struct Strings {
    table: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, StringId>,
    /// Bytes of all together.
    text_len: usize,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self {
            table: Vec::new(),
            index: FxHashMap::default(),
            text_len: 0,
        };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = StringId(self.table.len() as u32);
        self.text_len += text.len();
        let text: Arc<str> = text.into();
        self.table.push(Arc::clone(&text));
        self.index.insert(text, id);
        id
    }

    /// The id of `text`, if it is there.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.index.get(text).copied()
    }

    /// The string with this id, or `""` for an id that is not in the table.
    pub fn get(&self, id: StringId) -> &str {
        self.table.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many strings there are, the empty one included.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of all strings together.
    pub fn text_len(&self) -> usize {
        self.text_len
    }

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        let each = size_of::<Arc<str>>() + crate::memory::COUNTS;
        self.text_len + self.len() * each + crate::memory::of_map(&self.index)
    }

    /// All strings in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.table.iter().map(|text| &**text)
    }
}
