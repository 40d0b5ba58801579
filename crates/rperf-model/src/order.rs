//! Sorting what isn't hot. The standard library's sort is 9 kB of machine code for each type and key; here all types
//! share one. Any thread.

use std::cmp::Ordering;

/// Stable sorts, by comparisons that are called through a pointer.
pub trait Order<T> {
    /// Sorts the elements as they compare.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts the elements by their keys, which are made for each comparison.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut from = places(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        // Each cycle of places is gone round once; places that are done name themselves.
        for start in 0..from.len() {
            let mut place = start;
            loop {
                let next = std::mem::replace(&mut from[place], place);
                if next == start || next == place {
                    break;
                }
                self.swap(place, next);
                place = next;
            }
        }
    }
}

/// The places of so many elements, in their order.
#[inline(never)]
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

#[cfg(test)]
mod tests {
    use super::Order;
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    proptest! {
        #[test]
        fn elements_are_where_the_standard_sort_puts_them(mut items in vec((0_u8..9, any::<u16>()), 0..60)) {
            let mut expected = items.clone();
            expected.sort_by_key(|it| it.0);
            items.order_by_key(|it| it.0);
            assert_eq!(items, expected);
            items.order_by(|a, b| b.cmp(a));
            expected.sort_by(|a, b| b.cmp(a));
            assert_eq!(items, expected);
        }
    }
}
