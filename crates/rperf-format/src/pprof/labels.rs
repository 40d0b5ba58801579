//! The form of our labels in pprof, which allows no empty value, and which gives some keys a
//! meaning of its own. Called by writer and reader; any thread.
//!
//! A label of the user's is written with [`PREFIX`] before its key if the key is one that we write
//! ourselves, is empty, is one of pprof's own, or begins with the prefix. So reading is
//! unambiguous.

use std::borrow::Cow;

/// Number of the thread.
pub(crate) const THREAD_SEQ: &str = "thread_seq";
/// Unit of [`THREAD_SEQ`]: without one, number 0 would be dropped by readers.
pub(crate) const THREAD_SEQ_UNIT: &str = "id";
/// Name of the thread.
pub(crate) const THREAD: &str = "thread";

const STATE_KEYS: [&str; 2] = ["%GVL", "%GC"];
const PREFIX: &str = "label.";
const PPROF_PREFIX: &str = "pprof::";
const EMPTY: &str = "(empty)";

/// Whether a key is one of those that tell a state.
pub(crate) fn is_state_key(key: &str) -> bool {
    STATE_KEYS.contains(&key)
}

/// A user's key as written.
pub(crate) fn escape_key(key: &str) -> Cow<'_, str> {
    if needs_prefix(key) {
        Cow::Owned(format!("{PREFIX}{key}"))
    } else {
        Cow::Borrowed(key)
    }
}

/// A user's key from the key as written.
pub(crate) fn unescape_key(key: &str) -> &str {
    match key.strip_prefix(PREFIX) {
        Some(user_key) if needs_prefix(user_key) => user_key,
        _ => key,
    }
}

/// A user's value as written: seen to be empty, since a value that is would be
/// dropped by readers.
pub(crate) fn escape_value(value: &str) -> &str {
    if value.is_empty() { EMPTY } else { value }
}

/// A user's value from the value as written.
pub(crate) fn unescape_value(value: &str) -> &str {
    if value == EMPTY { "" } else { value }
}

fn needs_prefix(key: &str) -> bool {
    key.is_empty()
        || key == THREAD_SEQ
        || key == THREAD
        || is_state_key(key)
        || key.starts_with(PREFIX)
        || key.starts_with(PPROF_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::State;

    #[test]
    fn keys_that_mean_something_are_set_apart_and_found_again() {
        for (key, written) in [
            ("request", "request"),
            ("thread_seq", "label.thread_seq"),
            ("thread", "label.thread"),
            ("%GC", "label.%GC"),
            ("pprof::base", "label.pprof::base"),
            ("label.thread", "label.label.thread"),
            ("", "label."),
        ] {
            assert_eq!(escape_key(key), written);
            assert_eq!(unescape_key(written), key);
        }
        assert_eq!(unescape_key("label.request"), "label.request");
    }

    #[test]
    fn every_state_has_a_key_that_is_set_apart() {
        for (key, _) in State::ALL.into_iter().filter_map(State::tag) {
            assert!(is_state_key(key));
        }
    }

    #[test]
    fn empty_values_stay_visible() {
        assert_eq!(escape_value(""), "(empty)");
        assert_eq!(unescape_value("(empty)"), "");
        assert_eq!(unescape_value(escape_value("a")), "a");
    }
}
