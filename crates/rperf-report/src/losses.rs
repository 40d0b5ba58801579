//! What a profile lacks, in words. The one wording of text reports, `rperf stat`, `-v`
//! and the comments in files. Any thread.

use crate::numbers::{grouped, milliseconds};
use rperf_model::Counters;

/// What was lost while profiling: one phrase for each kind of loss.
pub fn losses(counters: &Counters) -> Vec<String> {
    let mut phrases = Vec::new();
    // Time can be lost without a sample of its own.
    if counters.dropped_samples > 0 || counters.dropped_ns > 0 {
        let (samples, ms) = (counters.dropped_samples, milliseconds(counters.dropped_ns));
        phrases.push(format!("{} dropped ({ms} ms)", number(samples, "sample")));
    }
    if counters.truncated_samples > 0 {
        let stacks = number(counters.truncated_samples, "stack");
        phrases.push(format!("{stacks} truncated"));
    }
    if counters.unlabelled_samples > 0 {
        let samples = number(counters.unlabelled_samples, "sample");
        phrases.push(format!("{samples} without their labels"));
    }
    phrases
}

/// All of [`losses()`] in one line, if there are any.
pub fn losses_line(counters: &Counters) -> Option<String> {
    let phrases = losses(counters);
    (!phrases.is_empty()).then(|| format!("Lost: {}", phrases.join(", ")))
}

fn number(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_only_if_there_are_any() {
        let mut counters = Counters::default();
        assert_eq!(losses_line(&counters), None);
        counters.truncated_samples = 5;
        assert_eq!(losses(&counters), ["5 stacks truncated"]);
        counters.dropped_samples = 1_000;
        counters.dropped_ns = 2_000_000;
        counters.unlabelled_samples = 1;
        assert_eq!(
            losses_line(&counters).as_deref(),
            Some(
                "Lost: 1,000 samples dropped (2.0 ms), 5 stacks truncated, 1 sample without their labels"
            )
        );
        let time_only = Counters {
            dropped_ns: 50_000,
            ..Counters::default()
        };
        assert_eq!(losses(&time_only), ["0 samples dropped (0.1 ms)"]);
    }
}
