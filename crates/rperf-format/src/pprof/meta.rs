//! The facts about a run that pprof has no field for, as comments: one line for
//! people if something was lost, and lines for the reader, which pprof does not show
//! in reports because they begin with `#`. Used by writer and reader; any thread.

use super::value_types;
use rperf_model::{Meta, SamplingStats, Schema};
use rperf_report::losses_line;

const MACHINE_PREFIX: &str = "#rperf ";
/// What follows is a directory, to the end of the line.
const ROOT: &str = "root=";
/// Likewise, one that has rperf's own files.
const RPERF_DIRECTORY: &str = "rperf_directory=";

/// All comments for a profile with this `meta` and `schema`.
pub(crate) fn comments(meta: &Meta, schema: &Schema) -> Vec<String> {
    let mut comments = meta.lines();
    comments.extend(losses_line(&meta.counters));
    if meta.frequency > 0 || meta.counters != SamplingStats::default() {
        comments.push(machine_line(meta, schema));
    }
    let directories = [
        (ROOT, &meta.roots),
        (RPERF_DIRECTORY, &meta.rperf_directories),
    ];
    for (key, directories) in directories {
        let line = |it| format!("{MACHINE_PREFIX}{key}{it}");
        comments.extend(directories.iter().map(line));
    }
    comments
}

/// Sets what `comments` tell, but for the mode, which the default sample type tells. Those
/// not written by [`comments`] itself are kept. Profiles that pprof has merged have
/// several machine-made lines, whose counters are summed; of intervals the longest stays.
pub(crate) fn restore(comments: Vec<String>, meta: &mut Meta) {
    for comment in &comments {
        if let Some(fields) = comment.strip_prefix(MACHINE_PREFIX) {
            if let Some(root) = fields.strip_prefix(ROOT) {
                meta.add_root(root);
            } else if let Some(directory) = fields.strip_prefix(RPERF_DIRECTORY) {
                meta.add_rperf_directory(directory);
            } else {
                parse_fields(fields, meta);
            }
        }
    }
    let losses = losses_line(&meta.counters);
    let notes = comments
        .into_iter()
        .filter(|comment| !comment.starts_with(MACHINE_PREFIX))
        .filter(|comment| Some(comment) != losses.as_ref());
    meta.set_lines(notes);
}

fn machine_line(meta: &Meta, schema: &Schema) -> String {
    // A copy, because the names are tied to places that can be written to.
    let mut counters = meta.counters;
    // A field ends at a blank, which other tools' types may have in their names.
    let mode = schema.default_type().name.replace(' ', "_");
    let mut line = format!("{MACHINE_PREFIX}mode={mode} frequency={}", meta.frequency);
    let is_told = |name: &str, value: u64| value > 0 || !IF_ANY.contains(&name);
    let named = named(&mut counters).into_iter();
    for (name, value) in named.filter(|it| is_told(it.0, *it.1)) {
        line.push_str(&format!(" {name}={value}"));
    }
    let known = intervals(&mut counters).into_iter().filter(|it| *it.1 > 0);
    for (name, value) in known {
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

fn parse_fields(fields: &str, meta: &mut Meta) {
    for (name, value) in fields.split(' ').filter_map(|field| field.split_once('=')) {
        let Ok(number) = value.parse::<u64>() else {
            continue;
        };
        if name == "frequency" {
            meta.frequency = value_types::frequency(number);
        }
        for (counter_name, counter) in named(&mut meta.counters) {
            if counter_name == name {
                *counter = counter.saturating_add(number);
            }
        }
        for (interval_name, interval) in intervals(&mut meta.counters) {
            if interval_name == name {
                *interval = number.max(*interval);
            }
        }
    }
}

/// Counters that are told only if anything was counted.
const IF_ANY: [&str; 2] = ["folded_samples", "folded_ns"];

fn named(counters: &mut SamplingStats) -> [(&'static str, &mut u64); 16] {
    [
        ("trigger_count", &mut counters.trigger_count),
        ("sampling_count", &mut counters.sampling_count),
        ("sampling_time_ns", &mut counters.sampling_time_ns),
        ("detected_thread_count", &mut counters.detected_thread_count),
        ("dropped_samples", &mut counters.dropped_samples),
        ("dropped_ns", &mut counters.dropped_ns),
        ("truncated_samples", &mut counters.truncated_samples),
        ("folded_samples", &mut counters.folded_samples),
        ("folded_ns", &mut counters.folded_ns),
        ("unlabelled_samples", &mut counters.unlabelled_samples),
        ("tick_stacks", &mut counters.tick_stacks),
        ("safepoint_stacks", &mut counters.safepoint_stacks),
        ("safepoint_calls", &mut counters.safepoint_calls),
        ("unreadable_stacks", &mut counters.unreadable_stacks),
        ("hidden_frames", &mut counters.hidden_frames),
        ("known_waits", &mut counters.known_waits),
    ]
}

fn intervals(counters: &mut SamplingStats) -> [(&'static str, &mut u64); 2] {
    [
        ("interval_ns", &mut counters.interval_ns),
        ("off_gvl_interval_ns", &mut counters.off_gvl_interval_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_model::{Note, test_support};

    fn restored(meta: &Meta, schema: &Schema) -> Meta {
        let mut restored = Meta::default();
        restore(comments(meta, schema), &mut restored);
        restored
    }

    #[test]
    fn what_is_written_is_restored_and_nothing_is_left_over() {
        let mut meta = Meta {
            frequency: 250,
            notes: vec!["ruby 3.4.5".into()],
            roots: vec!["/srv/my shop frequency=7".into(), "/srv".into()],
            missing: vec!["lines, because they are".into()],
            rperf_directories: vec!["/opt/rperf frequency=8/lib".into()],
            ..Meta::default()
        };
        meta.counters.dropped_samples = 3;
        meta.counters.dropped_ns = 4;
        meta.counters.truncated_samples = u64::MAX;
        meta.counters.unlabelled_samples = 5;
        meta.counters.folded_samples = 6;
        meta.counters.folded_ns = 7;
        let restored = restored(&meta, &test_support::wall_schema());
        assert_eq!(restored.notes, meta.notes);
        assert_eq!(restored.roots, meta.roots);
        assert_eq!(restored.missing, meta.missing);
        assert_eq!(restored.rperf_directories, meta.rperf_directories);
        assert_eq!(restored.counters, meta.counters);
        assert_eq!(restored.frequency, 250);
    }

    #[test]
    fn of_other_tools_profiles_nothing_is_said_that_is_not_known() {
        let schema = test_support::schema(&[("a frequency=5", "bytes")], 0);
        let mut meta = Meta::default();
        assert_eq!(comments(&meta, &schema), Vec::<String>::new());
        meta.counters.trigger_count = 1;
        assert_eq!(restored(&meta, &schema).counters, meta.counters);
        assert_eq!(restored(&meta, &schema).frequency, 0);
    }

    #[test]
    fn counters_of_merged_profiles_add_up_and_the_longest_intervals_stay() {
        let mut meta = Meta::default();
        let line =
            |interval: u64| format!("#rperf mode=wall trigger_count=2 interval_ns={interval}");
        restore(vec![line(3), line(5), line(4)], &mut meta);
        assert_eq!(meta.counters.trigger_count, 6);
        assert_eq!(meta.counters.interval_ns, 5);
    }

    proptest! {
        #[test]
        fn notes_of_all_kinds_are_restored(
            lines in prop::collection::vec(
                "((traced: )?(calls (ruby|count-all|some), clock |process 7: )?|chosen methods only|\
                  chosen: |chosen, not (found|traceable): |alloc_space: |mode: )[A-Za-z#,. ]{0,9}",
                0..6,
            ),
            missing in prop::collection::vec("[a-z ,:]{0,9}", 0..3),
            dropped_samples in 0..3_u64,
        ) {
            let counters = SamplingStats { dropped_samples, ..SamplingStats::default() };
            let notes = lines.into_iter().map(Note::from).collect();
            let meta = Meta { notes, missing, counters, ..Meta::default() };
            let restored = restored(&meta, &test_support::wall_schema());
            prop_assert_eq!(restored.notes, meta.notes);
            prop_assert_eq!(restored.missing, meta.missing);
            prop_assert_eq!(restored.counters, meta.counters);
        }
    }

    #[test]
    fn nonsense_is_passed_over() {
        let mut meta = Meta::default();
        let line = "#rperf mode=x frequency=99999999999999 dropped_ns=-1 a=b =";
        restore(vec![line.into(), "kept".into()], &mut meta);
        assert_eq!(meta.frequency, 0);
        assert_eq!(meta.counters, SamplingStats::default());
        assert_eq!(meta.notes, ["kept".into()]);
    }
}
