//! How much memory tables hold. Asked by the readers of files that may be hostile. Any thread, no
//! I/O.

use std::collections::HashMap;

/// The counts in front of an `Arc`'s content.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// Bytes of a hash table: a byte for each slot beside the entry, and one slot in eight
/// stays free.
pub(crate) fn of_map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    (map.capacity() / 7 * 8).saturating_mul(size_of::<(K, V)>() + 1)
}
