//! How long a thread has been without the GVL, for those who look at it now.

use super::RunningSession;
use crate::accounting::Began;
use crate::threads::ThreadState;
use rperf_vm::{Gvl, clock};

/// A thread without the GVL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffGvl {
    /// For how long: of one that waits for the GVL since it is ready, of others since they gave it up.
    pub ns: u64,
    /// Whether it was so before it was first seen.
    pub or_longer: bool,
    /// Whether it waits for the GVL.
    pub is_ready: bool,
}

impl RunningSession {
    /// The time of `thread` without the GVL; `None` if it runs, or its time doesn't count now.
    pub fn off_gvl(&self, gvl: &Gvl<'_>, thread: &ThreadState) -> Option<OffGvl> {
        let Began { at_ns, or_before } =
            thread.gvl_part(gvl)?.accounting.as_ref()?.off_gvl_began()?;
        let ready = self.ready_since(thread);
        let is_ready = ready != 0;
        let since = if is_ready { ready.max(at_ns) } else { at_ns };
        Some(OffGvl {
            ns: clock::monotonic_ns().saturating_sub(since),
            or_longer: or_before && since == at_ns,
            is_ready,
        })
    }
}
