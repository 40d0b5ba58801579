//! When objects are told at all. The VM takes most of what it costs to tell of an object, so the hook is
//! there for some of the objects only.
//!
//! What is counted are objects, not time: while they are told, fewer are made in the same time, so
//! that a share of the time would be a smaller share of the objects. And whether the next ones are
//! told is decided where an event comes anyway, before what follows is known; so it has nothing to
//! do with what they are.

use rperf_vm::Dither;

/// Spans in a row, in one of which objects are told.
pub(super) const SPANS: u64 = 16;

/// Objects of a span; it ends with the event that comes next.
const SPAN: u64 = 1024;

/// All objects are told until so many have been made: short programs have samples, too.
const FIRST: u64 = 1 << 17;

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Objects are told from here on.
    On,
    /// They aren't.
    Off,
}

/// Spans that their mean length is of.
const MEAN_OF: f64 = 64.0;

/// Over so many times [`SPANS`] spans a debt is made up for.
const REPAYMENT: f64 = 8.0;

/// The spans in which objects are told: one at random of each [`SPANS`] in a row.
///
/// Spans have different lengths. So what stands for all objects would be too many after some long ones,
/// or too few; but the VM has their number. The debt changes the weights of what comes, and which spans
/// are told has nothing to do with it: sums stay right, and have less noise.
#[derive(Debug)]
pub(super) struct Windows {
    dither: Dither,
    /// Objects that had been made when the present span began.
    since: u64,
    /// Objects that were made less those that told ones stood for.
    debt: f64,
    /// The mean length of a span.
    mean: f64,
    /// How many objects stand for each that is told.
    weight: f64,
    /// The present span's place among those in a row; `None` at first.
    place: Option<u64>,
    /// The place of the one in which objects are told.
    told: u64,
}

impl Windows {
    /// From the moment on when `made` objects had been made.
    pub(super) fn new(seed: u64, made: u64) -> Self {
        Self {
            dither: Dither::new(seed),
            since: made,
            debt: 0.0,
            mean: SPAN as f64,
            weight: 1.0,
            place: None,
            told: 0,
        }
    }

    /// Whether objects are told.
    pub(super) fn are_open(&self) -> bool {
        self.place.is_none_or(|place| place == self.told)
    }

    /// How many objects stand for each that is told.
    pub(super) fn weight(&self) -> f64 {
        self.weight
    }

    /// An event has come when `made` objects had been made.
    pub(super) fn event(&mut self, made: u64) -> Option<Switch> {
        let least = if self.place.is_none() { FIRST } else { SPAN };
        if made.wrapping_sub(self.since) < least {
            return None;
        }
        let were_open = self.are_open();
        self.close_span((made - self.since) as f64, were_open);
        self.since = made;
        let place = self.place.map_or(0, |place| (place + 1) % SPANS);
        self.place = Some(place);
        if place == 0 {
            self.told = self.dither.first_gap(SPANS);
            let usual = SPANS as f64;
            let more = self.debt / (self.mean * REPAYMENT);
            self.weight = (usual + more).clamp(usual / 2.0, usual * 2.0);
        }
        match (were_open, self.are_open()) {
            (false, true) => Some(Switch::On),
            (true, false) => Some(Switch::Off),
            _ => None,
        }
    }

    /// A span of so many objects is over.
    fn close_span(&mut self, length: f64, was_told: bool) {
        if self.place.is_some() {
            self.mean += (length - self.mean) / MEAN_OF;
            self.debt += length;
        }
        if self.place.is_some() && was_told {
            self.debt -= self.weight * length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_first_objects_are_told() {
        let mut windows = Windows::new(1, 500);
        assert_eq!(windows.event(500 + FIRST - 1), None);
        assert!(windows.are_open());
        assert!((windows.weight() - 1.0).abs() < f64::EPSILON);
        windows.event(500 + FIRST);
        assert!((windows.weight() - SPANS as f64).abs() < f64::EPSILON);
    }

    #[test]
    fn one_span_of_so_many_is_told_whatever_its_length() {
        let mut windows = Windows::new(7, 0);
        let mut lengths = Dither::new(8);
        let mut made = FIRST;
        windows.event(made);
        let (mut told, mut squares) = (0.0, 0.0);
        for _ in 0..40_000 {
            let length = SPAN + lengths.memoryless_gap(9 * SPAN);
            let were_open = windows.are_open();
            if were_open {
                told += windows.weight() * length as f64;
                squares += (windows.weight() * length as f64).powi(2);
            }
            made += length;
            let switch = windows.event(made);
            assert_eq!(switch.is_some(), were_open != windows.are_open());
        }
        let all = (made - FIRST) as f64;
        assert!((told - all).abs() < f64::sqrt(squares), "{told} of {all}");
    }

    #[test]
    fn what_is_told_stands_for_all_objects_of_each_kind() {
        const RUNS: u64 = 200;
        let (mut off, mut squares) = ([0.0; 2], [0.0; 2]);
        for run in 0..RUNS {
            let mut windows = Windows::new(run, 0);
            let mut lengths = Dither::new(run + 1000);
            let mut made = FIRST;
            windows.event(made);
            let (mut told, mut all) = ([0.0; 2], [0.0; 2]);
            for span in 0..400_u64 {
                // Spans of the second kind are longer.
                let kind = usize::from(span % 5 == 0);
                let length = SPAN + lengths.memoryless_gap((1 + 20 * kind as u64) * SPAN);
                all[kind] += length as f64;
                if windows.are_open() {
                    told[kind] += windows.weight() * length as f64;
                }
                made += length;
                windows.event(made);
            }
            for kind in 0..2 {
                off[kind] += told[kind] - all[kind];
                squares[kind] += (told[kind] - all[kind]).powi(2);
            }
        }
        for kind in 0..2 {
            let sigma = f64::sqrt(squares[kind]);
            assert!(off[kind].abs() < 4.0 * sigma, "kind {kind}: {off:?}");
        }
    }

    #[test]
    fn too_few_objects_end_no_span() {
        let mut windows = Windows::new(3, 0);
        windows.event(FIRST);
        let place = windows.place;
        for made in 1..SPAN {
            windows.event(FIRST + made);
        }
        assert_eq!(windows.place, place);
        windows.event(FIRST + SPAN);
        assert_ne!(windows.place, place);
    }
}
