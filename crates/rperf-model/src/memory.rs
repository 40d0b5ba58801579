//! How much memory tables hold, for readers of files that nobody vouches for. Any
//! thread, no I/O.

use std::collections::HashMap;

/// What an `Arc` has in front of its content.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// Bytes of a hash table: a byte for each slot beside the entry, and one slot in eight
/// stays free.
pub(crate) fn of_map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    (map.capacity() / 7 * 8).saturating_mul(size_of::<(K, V)>() + 1)
}
