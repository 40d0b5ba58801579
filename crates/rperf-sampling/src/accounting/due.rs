//! What the accounting wants recorded. Returned to the bridge, which takes the stack if
//! one is needed, and hands it on to the session; under the GVL.

use crate::{Times, Values};
use rperf_model::{GcCause, State};

/// At most: two samples for time off the GVL, each with what goes to the one before it, a
/// remainder in each state, one of CPU time without the GVL, and one of blame.
const MOST: usize = 6 + State::ALL.len();

/// Values to record for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// What the thread was doing.
    pub state: State,
    /// How long, and for how many ticks.
    pub values: Values,
    /// In cpu mode: CPU time that was used without the GVL. The state is running, but the stacks are
    /// those at which the thread comes back to the GVL.
    pub(crate) without_gvl: bool,
    /// Why the collection runs that it is of, where that is known.
    pub(crate) gc: Option<GcCause>,
}

impl Due {
    /// A sample belongs to the thread's current stack; a remainder to that of its last
    /// sample in the state, if there is one.
    pub fn is_remainder(&self) -> bool {
        self.values.count == 0
    }

    /// Whether it is nothing but blame.
    pub(super) fn is_blame(&self) -> bool {
        let blame = Times {
            blame_ns: self.values.times.blame_ns,
            ..Times::default()
        };
        self.is_remainder() && self.values.times == blame
    }
}

/// What one event has made due, in the order of recording. Mostly nothing.
#[derive(Debug, Default)]
#[must_use = "what is due and not recorded is lost"]
pub struct Dues {
    dues: [Option<Due>; MOST],
    len: usize,
    needs_stack: bool,
    is_off_gvl: bool,
}

impl Dues {
    /// Whether there is nothing to record.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether some of it belongs to the thread's current stack.
    pub fn needs_stack(&self) -> bool {
        self.needs_stack
    }

    /// Whether there is a sample of time off the GVL.
    pub(crate) fn is_off_gvl(&self) -> bool {
        self.is_off_gvl
    }

    /// A sample is added of time off the GVL.
    pub(super) fn note_off_gvl(&mut self) {
        self.is_off_gvl = true;
    }

    /// Whether there is a sample in `state`.
    pub(super) fn has_sample_in(&self, state: State) -> bool {
        self.has_sample(|due| due.state == state && !due.without_gvl)
    }

    /// Whether there is a sample of CPU time without the GVL.
    pub(super) fn has_sample_without_gvl(&self) -> bool {
        self.has_sample(|due| due.without_gvl)
    }

    fn has_sample(&self, is_wanted: impl Fn(&Due) -> bool) -> bool {
        let mut samples = self.dues.iter().flatten().filter(|due| !due.is_remainder());
        samples.any(is_wanted)
    }

    /// Adds a sample, which stands for at least one tick.
    pub(super) fn add_sample(&mut self, state: State, values: Values) {
        self.add(Due {
            state,
            values,
            without_gvl: false,
            gc: None,
        });
        self.needs_stack = true;
    }

    /// Whatever is there of collections is of one that ran for this reason.
    pub(super) fn set_cause(&mut self, cause: Option<GcCause>) {
        for due in self.dues.iter_mut().flatten() {
            if due.state.is_gc() {
                due.gc = cause;
            }
        }
    }

    /// Adds a sample of CPU time without the GVL.
    pub(super) fn add_sample_without_gvl(&mut self, times: Times) {
        self.note_off_gvl();
        self.add(Due {
            state: State::Running,
            values: Values { count: 1, times },
            without_gvl: true,
            gc: None,
        });
        self.needs_stack = true;
    }

    /// Adds a remainder; `has_place`: the thread has had a sample in the state.
    pub(super) fn add_remainder(&mut self, state: State, times: Times, has_place: bool) {
        self.add(Due {
            state,
            values: Values { count: 0, times },
            without_gvl: false,
            gc: None,
        });
        self.needs_stack |= !has_place;
    }

    /// Adds a remainder of CPU time without the GVL; `has_place`: the thread has had a sample of
    /// it.
    pub(super) fn add_remainder_without_gvl(&mut self, times: Times, has_place: bool) {
        self.add(Due {
            state: State::Running,
            values: Values { count: 0, times },
            without_gvl: true,
            gc: None,
        });
        self.needs_stack |= !has_place;
    }

    fn add(&mut self, due: Due) {
        self.dues[self.len] = Some(due);
        self.len += 1;
    }
}

impl IntoIterator for Dues {
    type Item = Due;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Due>, MOST>>;

    fn into_iter(self) -> Self::IntoIter {
        self.dues.into_iter().flatten()
    }
}
