//! How long no thread has given the GVL up, in ticks: it decides how the gaps between ticks are drawn.

/// So many ticks in a row must find that no thread has given the GVL up, and none collects garbage,
/// before the gaps between them are even. A gap that isn't memoryless at the end of a slice leaves
/// another time pending than a memoryless one: the beginning of the next slice would get too little.
const CALM: u32 = 64;

/// The number of those ticks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calm(u32);

impl Calm {
    /// At the beginning: nothing has disturbed it yet.
    pub(crate) const COMPLETE: Self = Self(CALM);

    /// The calm of so many ticks, as [`Calm::ticks`] tells them.
    pub(crate) fn of(ticks: u32) -> Self {
        Self(ticks)
    }

    /// The ticks.
    pub(crate) fn ticks(self) -> u32 {
        self.0
    }

    /// After a further tick. `was_rest`: a thread has given the GVL up since the last one, or garbage is
    /// being collected, so that running time stood still.
    #[must_use]
    pub(crate) fn after_tick(self, was_rest: bool) -> Self {
        match was_rest {
            true => Self(0),
            false => Self((self.0 + 1).min(CALM)),
        }
    }

    /// Whether running time comes in slices, so that gaps are to be memoryless.
    pub(crate) fn in_slices(self) -> bool {
        self.0 < CALM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_many_ticks_after_a_rest_until_gaps_are_even() {
        let mut calm = Calm::COMPLETE.after_tick(false);
        assert!(!calm.in_slices());
        for _ in 0..2 {
            calm = calm.after_tick(true);
            for turn in 0..CALM {
                assert!(calm.in_slices(), "tick {turn}");
                calm = calm.after_tick(false);
            }
            assert!(!calm.in_slices());
            assert_eq!(Calm::of(calm.ticks()), calm);
        }
    }
}
