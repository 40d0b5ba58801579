//! Names of captured frames. At stop, at a snapshot and at the end of an epoch, with
//! the GVL, outside of hooks: these calls make Ruby objects and may run a collection. To name a
//! frame takes about a microsecond: with many of them, other threads run in between.
//!
//! They call no method: as one returns, an interrupt (Thread#raise, Timeout, a signal)
//! could come, and it would be lost here.

use super::frames;
use crate::text;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Fixnum, RClass, RModule, Value};
use rb_sys::VALUE;
use rperf_model::frame_kind::{C_METHOD, within_blocks};
use rperf_tracing::TracedFrame;
use rperf_vm::{FrameWord, Gvl, ResolvedFrame, blocks_around, object_of};
use std::time::{Duration, Instant};

/// Whether it is a method of C, which has no path.
pub fn is_of_c(frame: &ResolvedFrame) -> bool {
    frame.path == C_METHOD
}

/// Names frames one by one, for `limit` at most. `next` takes the name of a frame, and has the
/// next one: the session goes on in between, so nothing of it can stay borrowed. Returns whether
/// there are more.
pub fn name_frames(
    gvl: &mut Gvl<'_>,
    limit: Duration,
    mut next: impl FnMut(&Gvl<'_>, Option<(FrameWord, ResolvedFrame)>) -> Option<FrameWord>,
) -> bool {
    let began = Instant::now();
    let mut named = None;
    while let Some(frame) = next(gvl, named.take()) {
        if began.elapsed() >= limit {
            return true;
        }
        named = Some((frame, resolve(gvl, frame)));
    }
    false
}

/// Names `frames` of a traced session and classes of its objects, which are alive, for `limit` at most: those
/// that have no name yet. Returns whether there are more.
pub fn name_traced(
    gvl: &mut Gvl<'_>,
    limit: Duration,
    frames: &[TracedFrame],
    names: &mut Vec<ResolvedFrame>,
) -> bool {
    let began = Instant::now();
    while let Some(&frame) = frames.get(names.len()) {
        if began.elapsed() >= limit {
            return true;
        }
        names.push(resolve_any(gvl, frame));
    }
    false
}

/// Names traced frames, up to the first that `frame_at` doesn't have.
pub fn resolve_traced(
    gvl: &mut Gvl<'_>,
    frame_at: impl Fn(&Gvl<'_>, usize) -> Option<TracedFrame>,
) -> Vec<ResolvedFrame> {
    let mut names = Vec::new();
    while let Some(frame) = frame_at(gvl, names.len()) {
        names.push(resolve_any(gvl, frame));
    }
    names
}

fn resolve_any(gvl: &mut Gvl<'_>, frame: TracedFrame) -> ResolvedFrame {
    match frame.method {
        0 => resolve(gvl, frame.word),
        _ => resolve_c_method(gvl, frame),
    }
}

/// Names a method of C by its owner, as the VM names its frames.
fn resolve_c_method(gvl: &mut Gvl<'_>, frame: TracedFrame) -> ResolvedFrame {
    let owner = frame.word as VALUE;
    let method = ask(gvl, rb_sys::rb_id2str, frame.method as rb_sys::ID).and_then(text::of_string);
    let method = method.unwrap_or_else(|| "(unknown)".into());
    // Only a singleton class has an object. For others the question raises, and the message would
    // have the program's own `to_s` of them.
    let object = match ask(gvl, rb_sys::rb_class_real, owner) {
        Some(class) if class.as_raw() != owner => ask(gvl, rb_sys::rb_class_attached_object, owner),
        _ => None,
    };
    let is_named = |object: &Value| {
        RModule::from_value(*object).is_some() || RClass::from_value(*object).is_some()
    };
    let name = match object {
        Some(object) if is_named(&object) => {
            let path = ask(gvl, rb_sys::rb_class_path, object.as_raw());
            path.and_then(text::of_string)
                .map(|path| format!("{path}.{method}"))
        }
        Some(_) => None,
        None => {
            let path = ask(gvl, rb_sys::rb_class_path, owner);
            path.and_then(text::of_string)
                .map(|path| format!("{path}#{method}"))
        }
    };
    ResolvedFrame {
        name: text::without_addresses(&name.unwrap_or(method)),
        path: C_METHOD.into(),
        first_line: 0,
    }
}

/// Asks the VM a question about a frame, a class or the name of a method; `None` if that raises.
fn ask(
    _: &mut Gvl<'_>,
    question: unsafe extern "C" fn(VALUE) -> VALUE,
    subject: VALUE,
) -> Option<Value> {
    // SAFETY: `subject` came from the VM in a backtrace, an event or an answer, and the roots or the
    // stack keep it alive; a name lives for ever. `protect` catches what the VM may raise, and
    // returns a valid VALUE.
    unsafe {
        protect(|| question(subject))
            .ok()
            .map(|answer| Value::from_raw(answer))
    }
}

/// Names a class as the VM does. No method of the program's is asked.
fn resolve_class(gvl: &mut Gvl<'_>, class: VALUE) -> ResolvedFrame {
    let real = ask(gvl, rb_sys::rb_class_real, class);
    let name = real.and_then(|class| ask(gvl, rb_sys::rb_mod_name, class.as_raw()));
    let name = name.and_then(text::of_string);
    ResolvedFrame {
        name: name.unwrap_or_else(|| "(anonymous class)".into()),
        path: C_METHOD.into(),
        first_line: 0,
    }
}

/// Names a frame, or the class of objects.
fn resolve(gvl: &mut Gvl<'_>, word: FrameWord) -> ResolvedFrame {
    let frame = frames::object(word);
    // SAFETY: an object that is kept alive, and so can be read.
    if unsafe { frames::kind(object_of(word)) }.is_none() {
        return resolve_class(gvl, frame);
    }
    let name = ask(gvl, rb_sys::rb_profile_frame_full_label, frame).and_then(text::of_string);
    let name = name.map_or_else(|| "(unknown)".into(), |name| text::without_addresses(&name));
    let path = ask(gvl, rb_sys::rb_profile_frame_path, frame).and_then(text::of_string);
    let absolute = path
        .as_ref()
        .and_then(|_| ask(gvl, rb_sys::rb_profile_frame_absolute_path, frame))
        .and_then(text::of_string);
    let first_line = ask(gvl, rb_sys::rb_profile_frame_first_lineno, frame);
    ResolvedFrame {
        name: within_blocks(blocks_around(word), name),
        // C methods have no path, and evaluated code has none that is absolute.
        path: absolute.or(path).unwrap_or_else(|| C_METHOD.into()),
        first_line: first_line
            .and_then(Fixnum::from_value)
            .and_then(|line| line.to_u32().ok())
            .unwrap_or(0),
    }
}
