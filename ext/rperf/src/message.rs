//! Lines for the user on the program's stderr, past `$stderr`, which is the program's. On Ruby threads
//! of the main Ractor, with the GVL.

use crate::interrupts::Interrupts;
use crate::text;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RString, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use rperf_session::output::{Descriptor, without_write_signals};
use std::io::{self, Write as _};
use std::panic;
use std::sync::OnceLock;

/// STDERR, as Ruby has made it.
static STDERR: OnceLock<VALUE> = OnceLock::new();

/// When the extension is loaded.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let stderr: Value = ruby.class_object().const_get("STDERR")?;
    ruby.gc_register_mark_object(stderr);
    let _ = STDERR.set(stderr.as_raw());
    // Where a panic is told of in a file that may not get larger, no signal ends the program.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| without_write_signals(|| hook(panic))));
    Ok(())
}

/// Tells the user, in one line, of a panic that has been caught. Any thread, with the GVL or without.
pub fn say_after_panic(line: &str) {
    let line = format!("rperf: {line}\n");
    let _ = without_write_signals(|| io::stderr().write_all(line.as_bytes()));
}

/// Tells the user something in one line.
pub fn say(interrupts: &mut Interrupts, line: &str) {
    let _ = was_said(interrupts, line);
}

/// Tells it, and returns whether that could be done.
pub fn was_said(interrupts: &mut Interrupts, line: &str) -> bool {
    was_written(interrupts, &format!("rperf: {line}\n"))
}

/// Writes a text as it is. A program may have closed its stderr, or nobody reads it: then nobody is told.
pub fn write(interrupts: &mut Interrupts, text: &str) {
    if !text.is_empty() {
        let _ = was_written(interrupts, text);
    }
}

fn was_written(interrupts: &mut Interrupts, text: &str) -> bool {
    let written = |descriptor: Descriptor| descriptor.write_while_read(text.as_bytes());
    descriptor().is_some_and(|it| interrupts.without_its_gvl(|| written(it)).is_ok())
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
