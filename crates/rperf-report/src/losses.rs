//! The losses of a profile in words: one wording for text reports, `rperf stat`, `-v` and the
//! comments in files. Any thread.

use rperf_model::numbers::{counted, milliseconds};
use rperf_model::{Note, OwnColumn, Profile, SamplingStats};

/// What a profile says of the values that it is about.
pub fn notes_on(profile: &Profile) -> impl Iterator<Item = &Note> {
    let own = profile.schema.default_own();
    let name = &*profile.schema.default_type().name;
    profile.meta.notes.iter().filter(move |note| match note {
        Note::Values(column, _) => Some(*column) == own,
        Note::SampledObjects(_) => own.is_some_and(OwnColumn::is_of_objects),
        Note::InUse(_) | Note::InUseLeftOut => own.is_some_and(OwnColumn::is_level),
        // The column of another tool, which says so in the same way.
        Note::Text(text) => text.split_once(": ").is_some_and(|(of, _)| of == name),
        _ => false,
    })
}

/// Something that a profile lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The counter that tells it.
    pub counter: &'static str,
    /// The counter's value.
    pub value: u64,
    /// The loss in words, for people.
    pub text: String,
}

/// The losses of a profile: one entry for each kind.
pub fn losses(counters: &SamplingStats) -> Vec<Loss> {
    let mut losses = Vec::new();
    let mut lose = |counter, value, text| {
        losses.push(Loss {
            counter,
            value,
            text,
        });
    };
    // Time can be lost without a sample of its own.
    if counters.dropped_samples > 0 || counters.dropped_ns > 0 {
        let (samples, ms) = (counters.dropped_samples, milliseconds(counters.dropped_ns));
        let text = format!("{} dropped ({ms} ms)", counted(samples, "sample"));
        match samples {
            0 => lose("dropped_ns", counters.dropped_ns, text),
            _ => lose("dropped_samples", samples, text),
        }
    }
    if counters.truncated_samples > 0 {
        let stacks = counters.truncated_samples;
        let text = format!("{} truncated", counted(stacks, "stack"));
        lose("truncated_samples", stacks, text);
    }
    if counters.folded_samples > 0 || counters.folded_ns > 0 {
        let (stacks, ms) = (counters.folded_samples, milliseconds(counters.folded_ns));
        let text = format!("{} folded ({ms} ms)", counted(stacks, "stack"));
        match stacks {
            0 => lose("folded_ns", counters.folded_ns, text),
            _ => lose("folded_samples", stacks, text),
        }
    }
    if counters.unlabelled_samples > 0 {
        let samples = counters.unlabelled_samples;
        let text = format!("{} without their labels", counted(samples, "sample"));
        lose("unlabelled_samples", samples, text);
    }
    losses
}

/// All of [`losses()`] in one line, if there are any.
pub fn losses_line(counters: &SamplingStats) -> Option<String> {
    let texts = losses(counters).into_iter().map(|loss| loss.text);
    let phrases: Vec<_> = texts.collect();
    (!phrases.is_empty()).then(|| format!("Lost: {}", phrases.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::schema;
    use rperf_model::{Column, Schema};

    #[test]
    fn the_values_that_are_shown_have_their_notes() {
        let types = [("alloc_objects", "count"), ("alloc_space", "bytes")];
        let mut profile = Profile::new(schema(&types, 1));
        let comments = ["mode: wall", "alloc_space: slots", "alloc_space2: x"];
        profile.meta.notes = comments.map(Note::from).into();
        assert!(notes_on(&profile).eq(&[Note::from("alloc_space: slots")]));
        let types = profile.schema.types().to_vec();
        profile.schema = Schema::new(types, Column(0)).expect("it has the column");
        assert_eq!(notes_on(&profile).count(), 0);
    }

    #[test]
    fn losses_are_told_only_if_there_are_any() {
        let mut counters = SamplingStats::default();
        assert_eq!(losses_line(&counters), None);
        counters.truncated_samples = 5;
        let truncated = Loss {
            counter: "truncated_samples",
            value: 5,
            text: "5 stacks truncated".into(),
        };
        assert_eq!(losses(&counters), [truncated]);
        counters.dropped_samples = 1_000;
        counters.dropped_ns = 2_000_000;
        counters.folded_samples = 1_200;
        counters.folded_ns = 3_400_000;
        counters.unlabelled_samples = 1;
        assert_eq!(
            losses_line(&counters).as_deref(),
            Some(
                "Lost: 1,000 samples dropped (2.0 ms), 5 stacks truncated, 1,200 stacks folded (3.4 ms), \
                 1 sample without their labels"
            )
        );
        let time_only = SamplingStats {
            dropped_ns: 50_000,
            ..SamplingStats::default()
        };
        let lost = &losses(&time_only)[0];
        assert_eq!((lost.counter, lost.value), ("dropped_ns", 50_000));
        assert_eq!(lost.text, "0 samples dropped (0.1 ms)");
        let time_only = SamplingStats {
            folded_ns: 50_000,
            ..SamplingStats::default()
        };
        let lost = &losses(&time_only)[0];
        assert_eq!((lost.counter, lost.value), ("folded_ns", 50_000));
    }
}
