//! What a thread is doing, as far as the events have told.

use super::Accounting;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Not seen yet.
    Unknown,
    /// Holds the GVL; running time is accounted up to `since`, and the thread
    /// got the GVL at `resumed`.
    Running { since: u64, resumed: u64 },
    /// Gave the GVL up at `began`; off-GVL time is accounted up to `since`.
    Off { since: u64, began: Began },
}

/// When a thread gave the GVL up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// As far as that was seen, on the monotonic clock.
    pub at_ns: u64,
    /// Whether it hadn't had the GVL before, either.
    pub or_before: bool,
}

impl Activity {
    /// It gives the GVL up now, or was first seen without it.
    pub(super) fn off(now: u64, or_before: bool) -> Self {
        Activity::Off {
            since: now,
            began: Began {
                at_ns: now,
                or_before,
            },
        }
    }
}

impl Accounting {
    /// When the thread gave the GVL up; `None` if it has it, or doesn't count.
    pub fn off_gvl_began(&self) -> Option<Began> {
        match self.activity {
            Activity::Off { began, .. } => Some(began),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Accounting, Mode, Pace};
    use std::sync::Arc;

    #[test]
    fn a_wait_has_begun_when_the_gvl_was_given_up_whoever_looks_in_between() {
        let pace = Arc::new(Pace::new(1_000_000));
        let mut accounting = Accounting::new(1, Mode::Wall, &pace, 0, 1);
        let began = |it: &Accounting| it.off_gvl_began().map(|it| (it.at_ns, it.or_before));
        assert_eq!(began(&accounting), None);
        accounting.begin_off_gvl(10);
        accounting.flush(40, 0, None);
        // An interrupted sleep.
        accounting.suspended(50);
        assert_eq!(began(&accounting), Some((10, true)));
        accounting.resumed(60, 55, || 0);
        assert_eq!(began(&accounting), None);
        accounting.suspended(70);
        accounting.flush(90, 0, None);
        assert_eq!(began(&accounting), Some((70, false)));
    }
}
