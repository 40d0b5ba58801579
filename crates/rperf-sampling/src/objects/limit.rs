//! What samples of objects may cost: where they take too much time, the gaps between them lengthen.

use super::countdown::Step;
use crate::session::budget::NO_LIMIT;

/// In ns: how long time is counted before it is judged.
const WINDOW: u64 = 250_000_000;

/// In ns: what a sample costs at most. One that took longer was preempted meanwhile.
const MOST_PER_SAMPLE: u64 = 100_000;

/// Gaps shorten again below this part of what is allowed. Half as long, they then take twice as much.
const FEW: f64 = 0.25;

/// The limit. Threads that make objects take turns, so it is a part of one CPU's time.
#[derive(Debug)]
pub(super) struct CostLimit {
    /// `None`: there is no limit.
    part: Option<f64>,
    since_ns: u64,
    spent_ns: u64,
}

impl CostLimit {
    /// From `now_ns` on; `max_overhead` in percent.
    pub(super) fn new(max_overhead: u32, now_ns: u64) -> Self {
        Self {
            part: (max_overhead < NO_LIMIT).then_some(f64::from(max_overhead) / 100.0),
            since_ns: now_ns,
            spent_ns: 0,
        }
    }

    /// A sample has taken so long by `now_ns`. Returns how gaps change, if they do.
    pub(super) fn spent(&mut self, ns: u64, now_ns: u64) -> Option<Step> {
        let part = self.part?;
        self.spent_ns += ns.min(MOST_PER_SAMPLE);
        let passed = now_ns.saturating_sub(self.since_ns);
        let allowed = part * passed.max(WINDOW) as f64;
        let step = match self.spent_ns as f64 {
            spent if spent > allowed => Some(Step::Longer),
            _ if passed < WINDOW => return None,
            spent if spent < FEW * allowed => Some(Step::Shorter),
            _ => None,
        };
        (self.since_ns, self.spent_ns) = (now_ns, 0);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_lengthen_where_samples_take_too_long_and_shorten_again() {
        let mut limit = CostLimit::new(4, 0);
        // 4 % of 250 ms are 10 ms: 100 samples of 0.1 ms, however soon.
        let steps = (1..=101).filter_map(|it| limit.spent(1_000_000, it * 1000));
        assert_eq!(steps.collect::<Vec<_>>(), [Step::Longer]);
        assert_eq!(limit.spent(1000, WINDOW), None);
        assert_eq!(limit.spent(1000, 2 * WINDOW), Some(Step::Shorter));
        let busy = (1..=60).filter_map(|it| limit.spent(100_000, 2 * WINDOW + it * WINDOW / 60));
        assert_eq!(busy.collect::<Vec<_>>(), [], "neither much nor little");
    }

    #[test]
    fn without_a_limit_gaps_stay() {
        let mut limit = CostLimit::new(100, 0);
        assert!((0..2000).all(|it| limit.spent(1_000_000, it).is_none()));
    }
}
