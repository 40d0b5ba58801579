//! The weak maps of a session, in which numbers stand for objects. A map that is written to is looked through
//! by each collection; one that isn't, and whose objects are old, by major ones only. So new numbers go to one
//! small map, which is left alone once it is full. With the main Ractor's GVL.

use crate::ruby::weak_map::WeakMap;
use rb_sys::VALUE;

/// So many numbers fill a map.
const FULL: usize = 1 << 9;

/// The maps.
pub struct WeakMaps {
    open: WeakMap,
    /// Numbers in that, if none has gone.
    size: usize,
    full: Vec<WeakMap>,
}

impl WeakMaps {
    /// With an empty map.
    pub fn new(open: WeakMap) -> Self {
        Self {
            open,
            size: 0,
            full: Vec::new(),
        }
    }

    /// The map for new numbers.
    pub fn open(&self) -> WeakMap {
        self.open
    }

    /// A number was put there. Returns whether the map seems to be full.
    pub fn added(&mut self) -> bool {
        self.size += 1;
        self.size >= FULL
    }

    /// So many numbers of it are there. Returns whether that is enough for a full map.
    pub fn counted(&mut self, size: usize) -> bool {
        self.size = size;
        size >= FULL / 4 * 3
    }

    /// The map is full, and `next` is empty.
    pub fn fill(&mut self, next: WeakMap) {
        self.full.push(std::mem::replace(&mut self.open, next));
        self.size = 0;
    }

    /// The maps that are full, or were.
    pub fn full(&self) -> Vec<WeakMap> {
        self.full.clone()
    }

    /// Whether a map that was full has little left with so many numbers.
    pub fn is_sparse(size: usize) -> bool {
        size < FULL / 4
    }

    /// A map has no numbers any more that anybody asks for.
    pub fn let_go(&mut self, map: WeakMap) {
        self.full.retain(|it| it.object() != map.object());
    }

    /// All maps as objects: the collector's roots.
    pub fn objects(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.full.iter().chain([&self.open]).map(WeakMap::object)
    }
}
