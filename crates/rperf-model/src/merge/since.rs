//! Parts of a profile: what came after an earlier snapshot of the same session, and all but one
//! thread. Used by the port of a running program, on native threads of its own.

use super::Ids;
use crate::fold::settle;
use crate::labels::label_keys::{CALL, LATENCY, REQUEST};
use crate::{Profile, SamplingStats, Suite, WeightTable, Weights};
use std::borrow::Cow;

/// How many nanoseconds a time may be less than in an earlier snapshot: clock ticks are made
/// nanoseconds anew in each.
const ROUNDING: i64 = 1000;

/// A profile isn't an earlier one of the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session was begun anew, or its profile was cleared, meanwhile")]
pub struct NotEarlier;

impl Profile {
    /// Takes away all that is in `earlier`, a snapshot of the same session; also of stacks that have
    /// been folded meanwhile. Time lines, latencies, tests, the slowest calls, requests with their
    /// classes, and raw samples can't be told apart, and go. Ops are by name alone afterwards. Levels,
    /// such as objects in use, stay as they are.
    ///
    /// # Errors
    /// If it is none: then this profile has lost its meaning.
    pub fn subtract(&mut self, earlier: &Profile) -> Result<(), NotEarlier> {
        let (start, end) = (self.meta.start_time_ns, self.meta.duration_ns);
        let columns = self.schema.matching(&earlier.schema);
        if columns.is_none_or(|columns| !columns.iter().copied().eq(self.schema.columns()))
            || (start, true) != (earlier.meta.start_time_ns, earlier.meta.duration_ns <= end)
            || earlier.check().is_err()
        {
            return Err(NotEarlier);
        }
        let earlier = &*without_what_changes(earlier);
        CHANGING.iter().for_each(|key| self.remove_label(key));
        // Those that aren't there any more have been added up under thread 0.
        let seqs = self.threads.iter().map(|it| (it.seq, it.seq)).collect();
        let ids = Ids::intern(self, earlier, seqs);
        let mut weights = WeightTable::from(&self.weights);
        let mut negative = Vec::new();
        for weight in earlier.weights.iter() {
            negative.clear();
            negative.extend(weight.values.iter().map(|value| value.saturating_neg()));
            weights.add(ids.key(weight.key), &negative);
        }
        if let Some(folded) = self.find_folded_frame() {
            settle(&self.tree, folded, &mut weights);
        }
        self.weights = weights.into_weights();
        self.round_up()?;
        self.meta.start_time_ns += earlier.meta.duration_ns;
        self.meta.duration_ns -= earlier.meta.duration_ns;
        self.meta.counters.subtract(&earlier.meta.counters);
        let folded = self.folded();
        self.meta.counters.folded_samples = folded.samples;
        self.meta.counters.folded_ns = folded.ns;
        self.raw_samples = None;
        self.time_lines.clear();
        self.latencies.clear();
        self.suite = Suite::default();
        self.requests.clear();
        self.ops.subtract(&earlier.ops);
        self.collections.subtract(&earlier.collections);
        Ok(())
    }

    /// No value may be negative but by rounding.
    fn round_up(&mut self) -> Result<(), NotEarlier> {
        let is_negative = |value: &i64| *value < 0;
        if !self
            .weights
            .iter()
            .any(|it| it.values.iter().any(is_negative))
        {
            return Ok(());
        }
        let types = self.schema.types().iter();
        let least: Vec<i64> = types
            .map(|it| {
                if it.unit == "nanoseconds" {
                    -ROUNDING
                } else {
                    0
                }
            })
            .collect();
        let mut weights = WeightTable::new(self.weights.width());
        for weight in self.weights.iter() {
            if weight
                .values
                .iter()
                .zip(&least)
                .any(|(value, least)| value < least)
            {
                return Err(NotEarlier);
            }
            let values: Vec<i64> = weight.values.iter().map(|value| *value.max(&0)).collect();
            weights.add(weight.key, &values);
        }
        self.weights = weights.into_weights();
        Ok(())
    }

    /// Takes away the thread `seq`.
    pub fn remove_thread(&mut self, seq: u32) {
        let mut weights = Weights::new(self.weights.width());
        for weight in self.weights.iter().filter(|it| it.key.thread != seq) {
            weights.push(weight.key, weight.values);
        }
        self.weights = weights;
        let before = self.threads.len();
        self.threads.retain(|thread| thread.seq != seq);
        if self.threads.len() < before {
            let threads = &mut self.meta.counters.detected_thread_count;
            *threads = threads.saturating_sub(1);
        }
    }
}

/// Labels that samples can come to have later, or lose: some requests that are open have a class then,
/// and others are the slowest ones.
const CHANGING: [&str; 3] = [CALL, LATENCY, REQUEST];

/// The slowest calls and requests as all others, and requests without their classes; nothing has a level.
fn without_what_changes(profile: &Profile) -> Cow<'_, Profile> {
    let changes = |&(key, _): &(_, _)| CHANGING.contains(&profile.strings.get(key));
    let has_changes = profile.label_sets.iter().any(|set| set.iter().any(changes));
    if !has_changes && !profile.has_levels() {
        return Cow::Borrowed(profile);
    }
    let mut profile = profile.clone();
    CHANGING.iter().for_each(|key| profile.remove_label(key));
    if profile.has_levels() {
        profile.remove_levels();
    }
    Cow::Owned(profile)
}

impl SamplingStats {
    /// What was counted after `earlier`; intervals, how many threads there were, and what is folded
    /// stay.
    fn subtract(&mut self, earlier: &SamplingStats) {
        for (ours, theirs) in [
            (&mut self.trigger_count, earlier.trigger_count),
            (&mut self.sampling_count, earlier.sampling_count),
            (&mut self.sampling_time_ns, earlier.sampling_time_ns),
            (&mut self.dropped_samples, earlier.dropped_samples),
            (&mut self.dropped_ns, earlier.dropped_ns),
            (&mut self.truncated_samples, earlier.truncated_samples),
            (&mut self.unlabelled_samples, earlier.unlabelled_samples),
            (&mut self.tick_stacks, earlier.tick_stacks),
            (&mut self.safepoint_stacks, earlier.safepoint_stacks),
            (&mut self.safepoint_calls, earlier.safepoint_calls),
            (&mut self.unreadable_stacks, earlier.unreadable_stacks),
            (&mut self.hidden_frames, earlier.hidden_frames),
            (&mut self.known_waits, earlier.known_waits),
        ] {
            *ours = ours.saturating_sub(theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use crate::test_support::test_profile::TestProfile;

    fn session(rows: &[(&[&str], u32, i64)], duration_ns: u64) -> Profile {
        let add = |profile: TestProfile, &(stack, thread, ns): &(&[&str], u32, i64)| {
            profile.with(stack, thread, State::Running, ns)
        };
        let mut profile = rows.iter().fold(TestProfile::wall(), add).profile;
        profile.meta.start_time_ns = 1_000;
        profile.meta.duration_ns = duration_ns;
        profile.meta.counters.trigger_count = duration_ns / 10;
        profile
    }

    fn rows(profile: &Profile) -> Vec<(u32, i64)> {
        let column = profile.schema.default_column();
        let rows = profile.weights.iter();
        let mut rows: Vec<_> = rows.map(|it| (it.key.thread, it.value(column))).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn what_came_after_a_snapshot_is_the_rest() {
        let earlier = session(&[(&["a", "b"], 1, 30), (&["a"], 2, 7)], 50);
        let later = [
            (&["a"][..], 2, 7),
            (&["a", "b"], 1, 40),
            (&["c"], 1, 5),
            (&["a"], 3, 1),
        ];
        let mut profile = session(&later, 80);
        profile.subtract(&earlier).expect("earlier");
        assert_eq!(rows(&profile), [(1, 5), (1, 10), (3, 1)]);
        assert!(profile.check().is_ok());
        let meta = &profile.meta;
        assert_eq!((meta.start_time_ns, meta.duration_ns), (1_050, 30));
        assert_eq!(meta.counters.trigger_count, 3);
        let folded = [(&["a"][..], 0, 9), (&["a", "b"], 1, 30)];
        let mut profile = session(&folded, 80);
        profile.subtract(&earlier).expect("earlier");
        assert_eq!(rows(&profile), [(0, 2)]);
        let mut same = session(&later, 80);
        same.subtract(&session(&later, 80)).expect("earlier");
        assert!(same.weights.is_empty());
    }

    #[test]
    fn other_calls_may_be_the_slowest_and_times_are_rounded() {
        let mut earlier = session(&[(&["a"], 1, 30)], 50);
        earlier.label_all(&[(CALL, "the first")]);
        let mut later = session(&[(&["a"], 1, 31), (&["b"], 1, 5)], 80);
        later.subtract(&earlier).expect("earlier");
        assert_eq!(rows(&later), [(1, 1), (1, 5)]);
        let mut less = session(&[(&["a"], 1, 29), (&["b"], 1, 5)], 80);
        less.subtract(&earlier).expect("earlier");
        assert_eq!(rows(&less).iter().map(|row| row.1).sum::<i64>(), 5);
        assert!(less.check().is_ok());
    }

    #[test]
    fn what_is_no_earlier_one_is_refused() {
        let whole = session(&[(&["a"], 1, 30)], 50);
        let mut anew = whole.clone();
        anew.meta.start_time_ns += 1;
        let mut longer = whole.clone();
        longer.meta.duration_ns += 1;
        let more = session(&[(&["a"], 1, 30 + ROUNDING + 1)], 50);
        let mut other = TestProfile::cpu().profile;
        other.meta.start_time_ns = 1_000;
        for earlier in [anew, longer, more, other] {
            assert_eq!(whole.clone().subtract(&earlier), Err(NotEarlier));
        }
    }

    #[test]
    fn a_thread_goes_with_its_rows() {
        let mut profile = session(&[(&["a"], 1, 30), (&["a"], 2, 7)], 50);
        profile.meta.counters.detected_thread_count = 2;
        profile.remove_thread(9);
        profile.remove_thread(2);
        assert_eq!(rows(&profile), [(1, 30)]);
        assert_eq!(
            (
                profile.threads.len(),
                profile.meta.counters.detected_thread_count
            ),
            (1, 1)
        );
        assert!(profile.check().is_ok());
    }
}
