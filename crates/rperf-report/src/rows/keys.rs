//! New keys for the rows of a profile, as filters and alignment give them. Any thread.

use rperf_model::{Profile, RawSamples, WeightKey, WeightTable};
use rustc_hash::FxHashMap;

/// Gives every row the key that `change` makes of its own, or drops it. Rows that get
/// the same key become one.
pub(crate) fn change_keys(profile: &mut Profile, change: impl Fn(WeightKey) -> Option<WeightKey>) {
    let keys: Vec<_> = profile.weights.iter().map(|row| change(row.key)).collect();
    set_keys(profile, &keys);
}

/// Gives the rows these keys, or drops them. Rows that get the same key become one.
pub(crate) fn set_keys(profile: &mut Profile, keys: &[Option<WeightKey>]) {
    let width = profile.schema.len();
    let mut table = WeightTable::new(width);
    for (weight, key) in profile.weights.iter().zip(keys) {
        if let Some(key) = key {
            table.add(*key, weight.values);
        }
    }
    if let Some(raw) = profile.raw_samples.take() {
        // They have rows of their own, but the same keys.
        let old_keys = profile.weights.iter().map(|weight| weight.key);
        let keys: FxHashMap<_, _> = old_keys.zip(keys).collect();
        let mut changed = RawSamples::new(width);
        for (time_ns, weight) in raw.iter() {
            if let Some(Some(key)) = keys.get(&weight.key) {
                changed.push(time_ns, *key, weight.values);
            }
        }
        profile.raw_samples = Some(changed);
    }
    profile.weights = table.into_weights();
}
