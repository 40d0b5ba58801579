//! Means of typical requests, and of those of the tail.

use rperf_model::RequestSums;
use rperf_model::numbers::signed;

/// What a typical request has of something, and one of the tail, in the mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Means {
    /// The mean of typical requests: of the half in the middle.
    pub typical: i64,
    /// The mean of the tail: of the slowest one in a hundred.
    pub tail: i64,
}

impl Means {
    pub(super) fn of(classes: [&RequestSums; 2], value: impl Fn(&RequestSums) -> u64) -> Self {
        let [typical, tail] = classes.map(|it| mean(value(it), it.count));
        Self { typical, tail }
    }

    /// What the tail has more.
    pub fn excess(self) -> i64 {
        self.tail.saturating_sub(self.typical)
    }
}

/// The mean of a sum.
pub(super) fn mean(sum: u64, count: u64) -> i64 {
    signed(sum.checked_div(count).unwrap_or(0))
}
