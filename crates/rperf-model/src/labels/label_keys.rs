//! The label keys that rperf itself writes, and how a program's own labels with such keys
//! are kept apart from them: with `label.` before the key. Used by whoever writes or
//! reads such labels. Any thread, no I/O.

use std::borrow::Cow;

/// The kind of a wait for the GVL.
pub const GVL: &str = "%GVL";
/// The phase of a garbage collection.
pub const GC: &str = "%GC";
/// Why a collection ran, on samples of collections.
pub const GC_CAUSE: &str = "%gc";
/// The number of a process, in profiles of several.
pub const PID: &str = "%pid";
/// The name of a process, in profiles of several.
pub const PROCESS: &str = "%process";
/// The number of a Ractor, on samples of others than the main one.
pub const RACTOR: &str = "%ractor";
/// The class of objects that were made.
pub const CLASS: &str = "%class";
/// How long objects that are alive have been there.
pub const AGE: &str = "%age";
/// A call of a chosen method that is among the slowest, on the rows of that call.
pub const CALL: &str = "%call";
/// The class of the request that a sample is of: how long it took among its like.
pub const LATENCY: &str = "%latency";
/// Which request it is ([`RequestId`](crate::RequestId)), on samples of one of the slowest.
pub const REQUEST: &str = "%request";
/// The class of a job, by which it is judged; but one that a request runs is a part of that.
pub const JOB: &str = "job";
/// The name of a thread.
pub const THREAD: &str = "thread";
/// The number of a thread.
pub const THREAD_SEQ: &str = "thread_seq";

/// Stands before a program's own key that would be taken for one of ours.
const PREFIX: &str = "label.";

/// A program's key beside keys of ours: with `label.` if it is like one of them, or like
/// one that was set apart, so that no two keys become one.
pub fn set_apart(key: &str, is_ours: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if is_ours(key.trim_start_matches(PREFIX)) {
        Cow::Owned(format!("{PREFIX}{key}"))
    } else {
        Cow::Borrowed(key)
    }
}

/// The key that `set_apart` was given.
pub fn original(key: &str, is_ours: impl Fn(&str) -> bool) -> &str {
    match key.strip_prefix(PREFIX) {
        Some(rest) if is_ours(rest.trim_start_matches(PREFIX)) => rest,
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_like_ours_are_set_apart_and_found_again() {
        let is_ours = |key: &str| key == PID || key.is_empty();
        for (key, apart) in [
            ("%pid", "label.%pid"),
            ("label.%pid", "label.label.%pid"),
            ("", "label."),
            ("label.", "label.label."),
            ("%process", "%process"),
            ("request", "request"),
            ("label.request", "label.request"),
            ("labels.%pid", "labels.%pid"),
        ] {
            assert_eq!(set_apart(key, is_ours), apart);
            assert_eq!(original(apart, is_ours), key);
        }
    }

    #[test]
    fn no_key_is_too_long() {
        let key = PREFIX.repeat(100_000);
        assert_eq!(set_apart(&key, |key| key.is_empty()).len(), key.len() + 6);
        assert_eq!(original(&key, |key| key.is_empty()).len(), key.len() - 6);
    }
}
