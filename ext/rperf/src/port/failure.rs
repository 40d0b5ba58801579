//! What has ended work of the helper, for the answer. On the helper, with the GVL.

use crate::text;
use magnus::{Error, RModule, RString, prelude::*};

/// The class of an exception, by Ruby's own methods; `None` if it is none, as with Thread#kill.
pub fn class_of(helper: RModule, error: &Error) -> Option<String> {
    let exception = error.value()?;
    let name: RString = helper.funcall("class_of", (exception,)).ok()?;
    Some(text::content(name))
}
