//! The words of a session as a spec compares them with those in Ruby. With the feature `measure`; on a
//! thread of the main Ractor, with the GVL.

use magnus::{Error, RHash, Ruby};
use rperf_session::directory;
use rperf_session::environment::{RUBY_VARIABLES, names};
use rperf_session::event::{ANOTHER, REFUSED};
use rperf_session::settings::{ENABLED_VARIABLE, LISTEN, PREFIX, SESSION_VARIABLE};

/// The words that lib/rperf/processes/launch.rb has to know, as it works without the extension; a spec
/// compares them.
pub fn session_words(ruby: &Ruby) -> Result<RHash, Error> {
    let words = ruby.hash_new();
    for (key, word) in [
        ("prefix", PREFIX),
        ("enabled", ENABLED_VARIABLE),
        ("session", SESSION_VARIABLE),
        ("settings", directory::SETTINGS),
        ("status", directory::STATUS),
        ("refused", REFUSED),
        ("another", ANOTHER),
        ("initiator", names::INITIATOR),
        ("inherit", names::INHERIT),
        ("added", names::ADDED),
        ("original", names::ORIGINAL),
    ] {
        words.aset(ruby.to_symbol(key), word)?;
    }
    words.aset(ruby.to_symbol("listen"), LISTEN.key())?;
    let separators = ruby.hash_new();
    for (name, separator) in RUBY_VARIABLES {
        separators.aset(name, separator)?;
    }
    words.aset(ruby.to_symbol("separators"), separators)?;
    Ok(words)
}
