//! What the thread of a row is called: by its number and name, and by its process where there are several. Used
//! by tables whose rows are threads, and by all that names a thread; any thread.

use crate::rows::tags::{ThreadNames, label};
use rperf_model::label_keys::PID;
use rperf_model::{LabelSetId, Profile, WeightKey};
use rustc_hash::{FxHashMap, FxHashSet};

/// The thread with this number and name in words.
pub fn thread_name(seq: u32, name: &str) -> String {
    match (seq, name) {
        (0, _) => "(ended threads)".to_string(),
        (seq, "") => format!("thread {seq}"),
        (seq, name) => format!("thread {seq}: {name}"),
    }
}

/// The thread of a row in words: in the profile of several processes with the number of its own.
pub(crate) fn thread_texts<'a>(profile: &'a Profile) -> impl Fn(WeightKey) -> String + 'a {
    let names = ThreadNames::of(profile);
    let pids = pids(profile);
    let different: FxHashSet<&str> = pids.values().copied().collect();
    let are_several = different.len() > 1;
    move |WeightKey { thread: seq, .. }| {
        let name = thread_name(seq, names.get(profile, seq).unwrap_or_default());
        // Those of all processes that have ended are one row.
        match pids.get(&seq).filter(|_| are_several && seq > 0) {
            Some(pid) => format!("{name} (PID {pid})"),
            None => name,
        }
    }
}

/// The number of the process of each thread, where it is known.
fn pids(profile: &Profile) -> FxHashMap<u32, &str> {
    let sets: Vec<Option<&str>> = (0..profile.label_sets.len() as u32)
        .map(|set| label(profile, LabelSetId(set), PID))
        .collect();
    let of_rows = profile.weights.iter().filter_map(|row| {
        let pid = sets[row.key.labels.0 as usize]?;
        Some((row.key.thread, pid))
    });
    of_rows.collect()
}
