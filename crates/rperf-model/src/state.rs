//! The states of a thread: running, blocked, waiting, collecting garbage. Used from the engine to
//! the formats. Any thread, no I/O.

use crate::frames::frame_kind;
use crate::labels::label_keys::{GC, GVL};

/// The state of a thread during a sample's weight. All but `Running` are shown
/// as a synthetic leaf frame below the sample's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Ran Ruby code or a C method, with the GVL (cpu mode: used CPU time).
    Running = 0,
    /// Had given the GVL up: I/O, sleep, a C extension that released it.
    GvlBlocked = 1,
    /// Was ready to run and waited for the GVL.
    GvlWait = 2,
    /// Marked live objects for a garbage collection.
    GcMarking = 3,
    /// Swept dead objects for a garbage collection.
    GcSweeping = 4,
}

impl State {
    /// Every state, in the order of their numbers.
    pub const ALL: [State; 5] = [
        State::Running,
        State::GvlBlocked,
        State::GvlWait,
        State::GcMarking,
        State::GcSweeping,
    ];

    /// Whether a thread has the GVL in it.
    pub fn has_gvl(self) -> bool {
        matches!(self, State::Running | State::GcMarking | State::GcSweeping)
    }

    /// Whether a thread collects garbage in it.
    pub fn is_gc(self) -> bool {
        matches!(self, State::GcMarking | State::GcSweeping)
    }

    /// Name and path of the synthetic leaf frame, if the state has one.
    pub fn synthetic_frame(self) -> Option<(&'static str, &'static str)> {
        match self {
            State::Running => None,
            State::GvlBlocked => Some(("[GVL blocked]", frame_kind::GVL)),
            State::GvlWait => Some(("[GVL wait]", frame_kind::GVL)),
            State::GcMarking => Some(("[GC marking]", frame_kind::GC)),
            State::GcSweeping => Some(("[GC sweeping]", frame_kind::GC)),
        }
    }

    /// The state whose synthetic frame has this name and path.
    pub fn from_synthetic_frame(name: &str, path: &str) -> Option<State> {
        State::ALL
            .into_iter()
            .find(|state| state.synthetic_frame() == Some((name, path)))
    }

    /// The state that has this tag.
    pub fn from_tag(key: &str, value: &str) -> Option<State> {
        State::ALL
            .into_iter()
            .find(|state| state.tag() == Some((key, value)))
    }

    /// The tag that says the same for filters: `("%GVL", "blocked")` and so on.
    pub fn tag(self) -> Option<(&'static str, &'static str)> {
        match self {
            State::Running => None,
            State::GvlBlocked => Some((GVL, "blocked")),
            State::GvlWait => Some((GVL, "wait")),
            State::GcMarking => Some((GC, "mark")),
            State::GcSweeping => Some((GC, "sweep")),
        }
    }
}
