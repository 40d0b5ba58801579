//! The tags of a row: labels, and the two that pprof sees as labels, state and thread. Used by
//! filters and groups; any thread.

use rperf_model::label_keys::{THREAD, THREAD_SEQ};
use rperf_model::{LabelSetId, NodeId, Profile, StringId, WeightKey};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The properties of a row that its tags depend on.
pub(crate) fn without_stack(key: WeightKey) -> WeightKey {
    let node = NodeId::ROOT;
    WeightKey { node, ..key }
}

/// The tags of a row: its labels, then state and thread, which pprof files have as labels.
pub(crate) fn tags<'a>(
    profile: &'a Profile,
    threads: &ThreadNames,
    key: WeightKey,
) -> Vec<(&'a str, Cow<'a, str>)> {
    let text = |id| profile.strings.get(id);
    let pairs = profile.label_sets.get(key.labels).iter();
    let mut tags: Vec<_> = pairs
        .map(|&(key, value)| (text(key), Cow::Borrowed(text(value))))
        .collect();
    if let Some((key, value)) = key.state.tag() {
        tags.push((key, value.into()));
    }
    tags.push((THREAD_SEQ, key.thread.to_string().into()));
    if let Some(name) = threads.get(profile, key.thread) {
        tags.push((THREAD, name.into()));
    }
    tags
}

/// The value under `wanted` of a row with these labels, state and thread.
pub(crate) fn tag<'a>(
    profile: &'a Profile,
    threads: &ThreadNames,
    key: WeightKey,
    wanted: &str,
) -> Option<Cow<'a, str>> {
    let mut tags = tags(profile, threads, key).into_iter();
    tags.find(|(key, _)| *key == wanted).map(|(_, value)| value)
}

/// The value of the label with this key in a set.
pub(crate) fn label<'a>(profile: &'a Profile, set: LabelSetId, key: &str) -> Option<&'a str> {
    let pairs = profile.label_sets.get(set).iter();
    let mut found = pairs.filter(|(id, _)| profile.strings.get(*id) == key);
    found.next().map(|(_, value)| profile.strings.get(*value))
}

/// The names of a profile's threads by their numbers.
pub(crate) struct ThreadNames(FxHashMap<u32, StringId>);

impl ThreadNames {
    pub(crate) fn of(profile: &Profile) -> Self {
        let threads = profile.threads.iter();
        Self(threads.map(|thread| (thread.seq, thread.name)).collect())
    }

    /// The name of the thread with this number, if it has one.
    pub(crate) fn get<'a>(&self, profile: &'a Profile, seq: u32) -> Option<&'a str> {
        let name = profile.strings.get(*self.0.get(&seq)?);
        (!name.is_empty()).then_some(name)
    }
}

/// The keys of all tags that rows have.
pub fn tag_keys(profile: &Profile) -> BTreeSet<&str> {
    let threads = ThreadNames::of(profile);
    let rows: FxHashSet<_> = profile
        .weights
        .iter()
        .map(|row| without_stack(row.key))
        .collect();
    let tags = rows.into_iter().flat_map(|it| tags(profile, &threads, it));
    tags.map(|(key, _)| key).collect()
}

/// The names of the types of values that rows with a tag of this key have.
pub fn types_with_tag<'a>(profile: &'a Profile, wanted: &str) -> Vec<&'a str> {
    let threads = ThreadNames::of(profile);
    let types = profile.schema.types();
    let mut has_value = vec![false; types.len()];
    let mut known: FxHashMap<WeightKey, bool> = FxHashMap::default();
    for row in profile.weights.iter() {
        let key = without_stack(row.key);
        let has_tag = || tag(profile, &threads, key, wanted).is_some();
        if *known.entry(key).or_insert_with(has_tag) {
            for (has_value, value) in has_value.iter_mut().zip(row.values) {
                *has_value |= *value != 0;
            }
        }
    }
    let types = types
        .iter()
        .zip(has_value)
        .filter(|(_, has_value)| *has_value);
    types.map(|(it, _)| &*it.name).collect()
}

/// The value under `wanted` of a row in words, each looked up once.
pub(crate) fn tag_texts<'a>(
    profile: &'a Profile,
    wanted: &'a str,
) -> impl FnMut(WeightKey) -> String + 'a {
    let threads = ThreadNames::of(profile);
    let mut known: FxHashMap<WeightKey, String> = FxHashMap::default();
    // There is a thread, which has no name.
    let none = match wanted {
        THREAD => "(no name)".to_string(),
        _ => format!("(no {wanted})"),
    };
    move |key| {
        let text = || {
            let value = tag(profile, &threads, key, wanted);
            value.map_or_else(|| none.clone(), Cow::into_owned)
        };
        let text = known.entry(without_stack(key)).or_insert_with(text);
        text.clone()
    }
}
