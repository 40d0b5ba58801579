//! Whether the program has Ractors besides the main one.

use magnus::{Error, Ruby, Value, prelude::*};

/// Whether there are any. Calls a method: other threads may run meanwhile.
pub fn others(ruby: &Ruby) -> Result<bool, Error> {
    let ractor: Value = ruby.class_object().const_get("Ractor")?;
    let count: usize = ractor.funcall("count", ())?;
    Ok(count > 1)
}
