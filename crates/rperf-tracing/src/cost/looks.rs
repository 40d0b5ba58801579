//! The events at which the hook looks at its own time, and what it has seen. At events, under the
//! GVL.

use crate::cost::Bodies;
use crate::event::CallKind;

/// The looks at the hook's own time. The next one is fewer than 96 events ahead.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Events so far.
    pub(crate) events: u64,
    /// The event at which the next look comes, or soon after.
    next: u64,
    random: u64,
    bodies: Bodies,
}

impl Looks {
    /// No event has come. `seed`: any number.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            events: 0,
            next: 0,
            random: seed | 1,
            bodies: Bodies::default(),
        }
    }

    /// Whether enough events have come since the last look.
    #[inline]
    pub(crate) fn are_due(&self) -> bool {
        self.events >= self.next
    }

    /// Plans the next look: after about 64 events, at random, as calls and returns come in patterns;
    /// after a few if there are to be `many`.
    #[inline]
    pub(crate) fn plan_next(&mut self, many: bool) {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.next = self.events
            + match many {
                true => 1 + (self.random >> 60),
                false => 32 + (self.random >> 58),
            };
    }

    /// The hook was busy for so many ticks.
    pub(crate) fn add(&mut self, kind: CallKind, is_return: bool, ticks: u64) {
        self.bodies.add(kind, is_return, ticks);
    }

    /// What was seen.
    pub(crate) fn bodies(&self) -> Bodies {
        self.bodies
    }

    /// All is counted anew.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            random: self.random,
            ..Self::new(0)
        };
    }
}
