//! The end of an epoch: names take the place of frames, and what the frames kept
//! alive may be collected. In the sampling callback, with the GVL: it makes Ruby objects.

use super::resolve;
use crate::vm::state::session::session;
use rperf_engine::{FrameWord, Gvl, ResolvedFrame, Session, SessionId};

/// Ends the epoch of the running session if it is over.
pub fn end_if_over(gvl: &mut Gvl<'_>) {
    let over = session(gvl).filter(|session| session.begin_epoch_end(gvl));
    let Some(id) = over.map(|session| session.id) else {
        return;
    };
    let names = resolve_frames(gvl, id, Session::ending_frame);
    if let Some(session) = session(gvl).filter(|session| session.id == id)
        && let Some(mut state) = session.state(gvl)
    {
        state.engine.end_epoch(names);
    }
}

/// The names of the session's frames, up to the first that `frame_at` doesn't have. Naming runs
/// the VM's code: should it ever let another thread run, and that one end the session, the rest
/// has none.
pub fn resolve_frames(
    gvl: &mut Gvl<'_>,
    id: SessionId,
    frame_at: impl Fn(&Session, usize) -> Option<FrameWord>,
) -> Vec<ResolvedFrame> {
    resolve::resolve_all(gvl, |gvl, row| {
        let session = session(gvl).filter(|session| session.id == id)?;
        frame_at(&session.state(gvl)?.engine, row)
    })
}
