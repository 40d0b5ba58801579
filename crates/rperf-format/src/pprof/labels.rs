//! The form of our labels in pprof, which allows no empty value, and which gives some keys a
//! meaning of its own. Called by writer and reader; any thread.
//!
//! A label of the user's is set apart if its key is one that the writer writes itself, is empty, or is
//! one of pprof's own. So reading is unambiguous.

use rperf_model::label_keys::{GC, GVL, THREAD, THREAD_SEQ, original, set_apart};
use std::borrow::Cow;

/// Unit of the number of a thread: without one, number 0 would be dropped by readers.
pub(crate) const THREAD_SEQ_UNIT: &str = "id";

const PPROF_PREFIX: &str = "pprof::";
const EMPTY: &str = "(empty)";

/// Whether a key is one of those that tell a state.
pub(crate) fn is_state_key(key: &str) -> bool {
    [GVL, GC].contains(&key)
}

/// A user's key as written.
pub(crate) fn escape_key(key: &str) -> Cow<'_, str> {
    set_apart(key, is_ours)
}

/// A user's key from the key as written.
pub(crate) fn unescape_key(key: &str) -> &str {
    original(key, is_ours)
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

/// `%pid` and `%process` are not among them: they are labels in the profile itself.
fn is_ours(key: &str) -> bool {
    let is_written = key == THREAD || key == THREAD_SEQ || is_state_key(key);
    is_written || key.is_empty() || key.starts_with(PPROF_PREFIX)
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
