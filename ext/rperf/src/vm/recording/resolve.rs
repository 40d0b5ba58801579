//! Names of captured frames. At stop, at a snapshot and at the end of an epoch, with
//! the GVL, outside of hooks: these calls make Ruby objects and may run a collection. To name a
//! frame takes about a microsecond: with many of them, other threads run in between.
//!
//! They call no method: as one returns, an interrupt (Thread#raise, Timeout, a signal)
//! could come, and it would be lost here.

use crate::text;
use magnus::rb_sys::{FromRawValue, protect};
use magnus::{Fixnum, Value};
use rb_sys::VALUE;
use rperf_engine::{FrameWord, Gvl, ResolvedFrame};
use std::time::{Duration, Instant};

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
        named = Some((frame, resolve(gvl, frame as VALUE)));
    }
    false
}

/// Asks the VM a question about `frame`; `None` if that raises.
fn ask(
    _: &mut Gvl<'_>,
    question: unsafe extern "C" fn(VALUE) -> VALUE,
    frame: VALUE,
) -> Option<Value> {
    // SAFETY: `frame` came from rb_profile_frames and is kept alive by the frame
    // roots; `protect` catches what the VM may raise, and returns a valid VALUE.
    unsafe {
        protect(|| question(frame))
            .ok()
            .map(|answer| Value::from_raw(answer))
    }
}

fn resolve(gvl: &mut Gvl<'_>, frame: VALUE) -> ResolvedFrame {
    let name = ask(gvl, rb_sys::rb_profile_frame_full_label, frame);
    let path = ask(gvl, rb_sys::rb_profile_frame_path, frame).and_then(text::of_string);
    let absolute = path
        .as_ref()
        .and_then(|_| ask(gvl, rb_sys::rb_profile_frame_absolute_path, frame))
        .and_then(text::of_string);
    let first_line = ask(gvl, rb_sys::rb_profile_frame_first_lineno, frame);
    ResolvedFrame {
        name: name
            .and_then(text::of_string)
            .unwrap_or_else(|| "(unknown)".into()),
        // C methods have no path, and evaluated code has none that is absolute.
        path: absolute.or(path).unwrap_or_else(|| "<C method>".into()),
        first_line: first_line
            .and_then(Fixnum::from_value)
            .and_then(|line| line.to_u32().ok())
            .unwrap_or(0),
    }
}
