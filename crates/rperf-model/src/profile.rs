//! The profile itself and the small types in it. Built by the engine's worker, traces and the
//! readers, read by everything else. Any thread, no I/O.

pub(crate) mod meta;
pub(crate) mod origin;

use crate::{
    CallTree, Collections, Column, Frames, LabelSets, Latencies, Note, Ops, OwnColumn, Requests,
    Schema, StringId, Strings, Suite, TimeLine, ValueType, Weight, WeightKey, Weights,
};

mod label_all;

/// The samples one by one, as they were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSamples {
    /// When each was taken: ns since the profile's start.
    pub times_ns: Vec<u64>,
    /// Keys and values: one row for each time.
    pub weights: Weights,
}

impl RawSamples {
    /// No samples yet, with values in `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            times_ns: Vec::new(),
            weights: Weights::new(width),
        }
    }

    /// Adds a sample.
    pub fn push(&mut self, time_ns: u64, key: WeightKey, values: &[i64]) {
        self.times_ns.push(time_ns);
        self.weights.push(key, values);
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.times_ns.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }

    /// All samples, each with its time.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Weight<'_>)> {
        self.times_ns.iter().copied().zip(self.weights.iter())
    }

    /// Puts them in order of time; those of one time stay as they are.
    pub fn sort(&mut self) {
        if self.times_ns.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.times_ns.len()).collect();
        order.sort_by_key(|&row| self.times_ns[row]);
        let mut sorted = Self::new(self.weights.width());
        for row in order {
            if let Some(weight) = self.weights.get(row) {
                sorted.push(self.times_ns[row], weight.key, weight.values);
            }
        }
        *self = sorted;
    }
}

/// A thread that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Number of the thread within the profile, from 1, in order of first sight.
    /// 0 is kept for time of threads that ended before any stack was taken.
    pub seq: u32,
    /// Its name, or the empty string.
    pub name: StringId,
}

/// The counts of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplingStats {
    /// Timer expiries that asked for a sample.
    pub trigger_count: u64,
    /// Stacks that were taken at ticks, or at the safepoint after them.
    pub sampling_count: u64,
    /// Time spent on them and in recording hooks: our overhead, in ns.
    pub sampling_time_ns: u64,
    /// Threads seen.
    pub detected_thread_count: u64,
    /// Samples that could not be kept.
    pub dropped_samples: u64,
    /// The time that they stood for, in ns.
    pub dropped_ns: u64,
    /// Samples whose stack was replaced by `[truncated]`.
    pub truncated_samples: u64,
    /// Samples whose stacks lack callers, which were folded into `[folded]`.
    pub folded_samples: u64,
    /// The time that they stand for, in ns.
    pub folded_ns: u64,
    /// Samples that went without their labels, as there were too many different ones.
    pub unlabelled_samples: u64,
    /// Stacks that were taken at the tick.
    pub tick_stacks: u64,
    /// Stacks that were taken at a safepoint.
    pub safepoint_stacks: u64,
    /// Calls of the sampling callback at safepoints, each of which interrupts compiled
    /// code.
    pub safepoint_calls: u64,
    /// Ticks at which the stack couldn't be read; a safepoint's stood in.
    pub unreadable_stacks: u64,
    /// Compiled methods that backtraces leave out, learned at a safepoint.
    pub hidden_frames: u64,
    /// Waits whose stack was that of the thread's last wait, so that none was taken.
    pub known_waits: u64,
    /// The longest interval between ticks that was in force, in ns; 0 if it is not known.
    pub interval_ns: u64,
    /// The longest between stacks of a thread off the GVL.
    pub off_gvl_interval_ns: u64,
}

/// The amount that one sample stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// The type of that amount.
    pub value_type: ValueType,
    /// How many of its units there are between two samples.
    pub value: i64,
}

/// The facts about the run as a whole.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Samples asked for per second; 0 if it is not known.
    pub frequency: u32,
    /// What one sample stands for, where the frequency doesn't tell: in profiles of
    /// other tools, such as one sample for each 512 KB that were allocated.
    pub period: Option<Period>,
    /// Start, in ns since the Unix epoch.
    pub start_time_ns: u64,
    /// Length of the session in ns.
    pub duration_ns: u64,
    /// Name of the program, as shown by tools.
    pub program: String,
    /// The directories that the program's own files belong to, without a slash at the end: that of
    /// the program and that of its repository. Paths of files stay as they were recorded; below
    /// these directories they mean the same wherever the program lies.
    pub roots: Vec<String>,
    /// The directories that have rperf's own files, without a slash at the end: `rperf.rb` and those
    /// in `rperf/`. Empty in old profiles and in those of other tools.
    pub rperf_directories: Vec<String>,
    /// Facts for people, such as versions, mode and frequency, and about how calls were traced.
    pub notes: Vec<Note>,
    /// What all samples lack, and why, each in a phrase: the Ruby wasn't known well enough.
    pub missing: Vec<String>,
    /// The counts of sampling.
    pub counters: SamplingStats,
}

/// The directories of each kind that a profile keeps: a fleet can have any number.
const MOST_DIRECTORIES: usize = 64;

impl Meta {
    /// Adds the directory of a program to the roots, if there is room, and if it is a whole path
    /// of less than all there is.
    pub fn add_root(&mut self, directory: &str) {
        add_directory(&mut self.roots, directory);
    }

    /// Adds a directory that has rperf's own files, likewise.
    pub fn add_rperf_directory(&mut self, directory: &str) {
        add_directory(&mut self.rperf_directories, directory);
    }
}

fn add_directory(known: &mut Vec<String>, directory: &str) {
    let directory = directory.trim_end_matches('/');
    let is_new = !known.iter().any(|it| it == directory);
    if directory.starts_with('/') && is_new && known.len() < MOST_DIRECTORIES {
        known.push(directory.to_string());
    }
}

/// The form in which paths are shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathView {
    /// Directories that are taken off the paths below them, before anything else is.
    pub trim: Vec<String>,
    /// Paths stay as they were recorded.
    pub is_full: bool,
}

/// A profile. [`Profile::check`] tells whether all of it hangs together.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The run as a whole.
    pub meta: Meta,
    /// The types of the values, column by column.
    pub schema: Schema,
    /// All text.
    pub strings: Strings,
    /// All frames.
    pub frames: Frames,
    /// All stacks.
    pub tree: CallTree,
    /// All threads, by seq.
    pub threads: Vec<Thread>,
    /// All label sets.
    pub label_sets: LabelSets,
    /// The rows of values: one for each (node, thread, labels, state).
    pub weights: Weights,
    /// The samples one by one, in the order they were taken, where they were
    /// kept. `weights` then holds their sums.
    pub raw_samples: Option<RawSamples>,
    /// The long calls of each process that were timed one by one.
    pub time_lines: Vec<TimeLine>,
    /// How long calls took, of each method once, if that was measured.
    pub latencies: Vec<Latencies>,
    /// What tests and factories took.
    pub suite: Suite,
    /// What ops took.
    pub ops: Ops,
    /// What collections took, where they were counted.
    pub collections: Collections,
    /// The requests and jobs that have ended, of each endpoint once, if they were judged.
    pub requests: Vec<Requests>,
    /// The form of its paths in answers. A choice of those who ask, which is in no file.
    pub path_view: PathView,
}

impl Profile {
    /// A profile without samples, with values of the types in `schema`.
    pub fn new(schema: Schema) -> Self {
        let weights = Weights::new(schema.len());
        Self {
            meta: Meta::default(),
            schema,
            strings: Strings::default(),
            frames: Frames::default(),
            tree: CallTree::default(),
            threads: Vec::new(),
            label_sets: LabelSets::default(),
            weights,
            raw_samples: None,
            time_lines: Vec::new(),
            latencies: Vec::new(),
            suite: Suite::default(),
            ops: Ops::default(),
            collections: Collections::default(),
            requests: Vec::new(),
            path_view: PathView::default(),
        }
    }

    /// Bytes held by what a program can have any number of, or nearly so.
    pub fn memory(&self) -> usize {
        let row = size_of::<WeightKey>() + self.schema.len() * size_of::<i64>();
        let lines = self.time_lines.iter().map(TimeLine::memory);
        let latencies = self.latencies.iter().map(|it| {
            size_of::<Latencies>() + it.name.len() + it.path.len() + it.durations.memory()
        });
        self.strings.memory()
            + self.frames.memory()
            + self.tree.memory()
            + self.label_sets.memory()
            + self.weights.len() * row
            + self.threads.len() * size_of::<Thread>()
            + lines.chain(latencies).sum::<usize>()
            + self.suite.memory()
            + self.ops.memory()
            + self.collections.memory()
            + self.requests.iter().map(Requests::memory).sum::<usize>()
    }

    /// The sum of all values in `column`, saturating.
    pub fn sum(&self, column: Column) -> i64 {
        let values = self.weights.iter().map(|weight| weight.value(column));
        values.fold(0, i64::saturating_add)
    }

    /// How many samples were taken; `None` if no column counts them, as in some
    /// profiles of other tools, or if the default values are of rows that count for none: what
    /// requests have waited for.
    pub fn sample_count(&self) -> Option<i64> {
        let is_counted = self.schema.default_type().own() != Some(OwnColumn::GvlWaitedFor);
        let samples = self.schema.samples().filter(|_| is_counted);
        samples.map(|column| self.sum(column))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;
    use crate::{LabelSetId, Mode, State};

    #[test]
    fn what_requests_have_waited_for_is_of_no_samples() {
        let columns = [OwnColumn::GvlBlame, OwnColumn::GvlWaitedFor];
        let mut test = TestProfile::new(Mode::Wall.schema().with(columns));
        test.add(&["spin"], 1, LabelSetId(0), State::Running, 7);
        let mut profile = test.profile;
        assert_eq!(profile.sample_count(), Some(1));
        for (column, count) in [(columns[0], Some(1)), (columns[1], None)] {
            let chosen = profile.schema.find_own(column).expect("a column");
            let types = profile.schema.types().to_vec();
            profile.schema = Schema::new(types, chosen).expect("a schema");
            assert_eq!(profile.sample_count(), count, "{column:?}");
        }
    }
}
