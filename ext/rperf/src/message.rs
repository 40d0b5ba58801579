//! Lines for the user on the program's stderr, past `$stderr`, which is the program's. On Ruby threads
//! of the main Ractor, with the GVL.

use crate::interrupts::Interrupts;
use crate::text;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RString, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use rperf_session::output::Descriptor;
use std::sync::OnceLock;

/// STDERR, as Ruby has made it.
static STDERR: OnceLock<VALUE> = OnceLock::new();

/// When the extension is loaded.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let stderr: Value = ruby.class_object().const_get("STDERR")?;
    ruby.gc_register_mark_object(stderr);
    let _ = STDERR.set(stderr.as_raw());
    Ok(())
}

/// Tells the user something in one line.
pub fn say(interrupts: &mut Interrupts, line: &str) {
    write(interrupts, &format!("rperf: {line}\n"));
}

/// Writes a text as it is. A program may have closed its stderr: then nobody is told.
pub fn write(interrupts: &mut Interrupts, text: &str) {
    if let Some(descriptor) = descriptor().filter(|_| !text.is_empty()) {
        let _ = interrupts.without_its_gvl(|| descriptor.write_all(text.as_bytes()));
    }
}

/// `Native.say(line)`
pub fn say_for_ruby(line: RString) -> Result<(), Error> {
    let mut interrupts = Interrupts::default();
    say(&mut interrupts, &text::content(line));
    interrupts.raise()
}

fn descriptor() -> Option<Descriptor> {
    let &stderr = STDERR.get()?;
    // SAFETY: a Ruby thread with the GVL, and an IO, which is never collected; `protect` catches what is
    // raised if it is closed. The number fits in what is returned, which isn't used as an object.
    let number = unsafe { protect(|| rb_sys::rb_io_descriptor(stderr) as VALUE) }.ok()?;
    Descriptor::of(i32::try_from(number).ok()?)
}
