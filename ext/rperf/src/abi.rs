//! Which Ruby the extension was built for. Asked first of all, on the main thread,
//! when Ruby loads it.

use crate::ruby::version;
use magnus::{Error, Ruby};
use rb_sys::{RUBY_API_VERSION_MAJOR, RUBY_API_VERSION_MINOR};

/// Refuses a Ruby of another version, whose insides we would misread.
pub fn check(ruby: &Ruby) -> Result<(), Error> {
    let (major, minor) = version::loaded();
    let (built_major, built_minor) = (RUBY_API_VERSION_MAJOR, RUBY_API_VERSION_MINOR);
    if (major, minor) == (built_major, built_minor) {
        return Ok(());
    }
    let message = format!(
        "rperf was built for Ruby {built_major}.{built_minor}, not for {major}.{minor}: \
         installing the gem with that Ruby builds it"
    );
    Err(Error::new(ruby.exception_load_error(), message))
}
