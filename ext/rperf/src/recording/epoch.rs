//! The end of an epoch: names take the place of frames, and what the frames kept
//! alive may be collected. In the sampling callback, and before a snapshot, with the GVL: it makes
//! Ruby objects.

use crate::ruby::{resolve, safepoint};
use crate::running::sampling::sampling;
use rperf_vm::Gvl;
use std::time::{Duration, Instant};

/// How long the sampling callback names frames: the next one goes on with the rest.
const CALLBACK_LIMIT: Duration = Duration::from_millis(1);

/// In the sampling callback: works on the end of the running session's epoch, if it is over.
pub fn work_on_end(gvl: &mut Gvl<'_>) {
    let Some(session) = sampling(gvl) else {
        return;
    };
    let is_ending = |session: &rperf_sampling::RunningSession| {
        let state = session.state(gvl);
        state.is_some_and(|state| state.engine.is_ending())
    };
    if (is_ending(session) || session.begin_epoch_end(gvl)) && name_frames(gvl, CALLBACK_LIMIT) {
        // Until all have names, what they keep alive can't be let go.
        safepoint::trigger();
    }
}

/// Names frames of the epoch that is being ended, if one is, for `limit` at most. Returns whether
/// there are more.
pub fn name_frames(gvl: &mut Gvl<'_>, limit: Duration) -> bool {
    let began = Instant::now();
    let has_more = resolve::name_frames(gvl, limit, |gvl, named| {
        let mut state = sampling(gvl)?.state(gvl)?;
        if let Some((frame, name)) = named {
            state.engine.name(frame, name);
        }
        state.engine.next_unnamed()
    });
    if let Some(session) = sampling(gvl)
        && let Some(mut state) = session.state(gvl)
    {
        let spent = began.elapsed().as_nanos() as u64;
        state.engine.end_epoch_if_named(spent);
    }
    has_more
}
