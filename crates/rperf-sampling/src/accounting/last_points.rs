//! Where a thread's last samples were recorded: remainders go there.

use super::by_state::ByState;
use super::due::Due;
use super::sample_point::SamplePoint;
use rperf_model::State;

/// The points of a thread's last samples. All are of the present epoch's call tree: they are forgotten
/// as it ends.
#[derive(Debug, Default)]
pub(super) struct LastPoints {
    /// Some stack of the thread was recorded, in whatever epoch.
    was_sampled: bool,
    /// The point of the last sample in each state.
    by_state: ByState<Option<SamplePoint>>,
    /// The point of the last sample of CPU time without the GVL (cpu mode).
    without_gvl: Option<SamplePoint>,
    /// The point of the last sample of running time that took some blame.
    blame: Option<SamplePoint>,
}

impl LastPoints {
    /// An epoch has ended: none is valid any more.
    pub(super) fn forget(&mut self) {
        *self = Self {
            was_sampled: self.was_sampled,
            ..Self::default()
        };
    }

    /// Whether any stack of the thread was recorded.
    pub(super) fn was_sampled(&self) -> bool {
        self.was_sampled
    }

    /// The point of the last sample in `state`.
    pub(super) fn in_state(&self, state: State) -> Option<SamplePoint> {
        self.by_state[state as usize]
    }

    /// The point of the last sample of CPU time without the GVL.
    pub(super) fn without_gvl(&self) -> Option<SamplePoint> {
        self.without_gvl
    }

    /// The point for blame of running time that no sample has taken.
    pub(super) fn for_blame(&self) -> Option<SamplePoint> {
        self.blame.or(self.in_state(State::Running))
    }

    /// The point of the last sample of the kind of `due`.
    pub(super) fn of(&self, due: &Due) -> Option<SamplePoint> {
        if due.without_gvl {
            self.without_gvl
        } else if due.is_blame() {
            self.blame.or(self.in_state(due.state))
        } else {
            self.in_state(due.state)
        }
    }

    /// A sample, `due`, was recorded at `point`. Returns whether it is the first one of its kind.
    pub(super) fn note(&mut self, point: SamplePoint, due: &Due) -> bool {
        self.was_sampled = true;
        if due.state == State::Running && due.values.times.blame_ns > 0 {
            self.blame = Some(point);
        }
        let last = if due.without_gvl {
            &mut self.without_gvl
        } else {
            &mut self.by_state[due.state as usize]
        };
        last.replace(point).is_none()
    }
}
