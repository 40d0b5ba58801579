//! The words of `measure`, for what can be measured beside times: which there are, what each goes with, the
//! settings that take them, and what they ask for. Used by `table` and `checked`, and by those who measure; any thread.

use super::form::Form::{self, Words};
use super::form::Value;
use super::map::Settings;
use super::setting::{Flags, Setting, Takes, Tracing};
use rperf_model::OwnColumn;

/// Objects, each counted.
pub(super) const ALLOC: &str = "alloc";
/// Some of the objects, by their bytes.
pub(super) const ALLOC_SAMPLED: &str = "alloc=sampled";
/// Whom threads wait for that want the GVL.
pub const BLAME: &str = "blame";
/// CPU time of traced calls.
pub(super) const CPU: &str = OwnColumn::Cpu.name();
/// What objects cost the garbage collector.
pub(super) const GC_COST: &str = OwnColumn::GcCost.name();
/// Objects that stay, and who has made them.
pub(super) const HEAP: &str = "heap";
/// How long traced calls took.
const LATENCY: &str = "latency";
/// Queries, requests to other servers, and what else has a name while it lasts.
const OPS: &str = "ops";
/// Which requests and jobs are slow.
const REQUESTS: &str = "requests";

/// The sessions in which a word is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// Samples or traced calls.
    All,
    /// Samples, in any of their modes.
    Samples,
    /// Samples in wall mode: without waits there is nobody to blame, and nothing to tell of most slow
    /// requests.
    Wall,
    /// Traced calls.
    Traces,
}

/// All words, in the order in which they are listed.
const ALL: [(&str, Within); 9] = [
    (ALLOC, Within::All),
    (ALLOC_SAMPLED, Within::Samples),
    (BLAME, Within::Wall),
    (CPU, Within::Traces),
    (GC_COST, Within::Samples),
    (HEAP, Within::Samples),
    (LATENCY, Within::Traces),
    (OPS, Within::Samples),
    (REQUESTS, Within::Wall),
];

const WORDS: [&str; ALL.len()] = {
    let mut words = [""; ALL.len()];
    let mut row = 0;
    while row < ALL.len() {
        words[row] = ALL[row].0;
        row += 1;
    }
    words
};

/// What is measured beside times.
pub static MEASURE: Setting = Setting {
    tracing: Tracing::Also,
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "MEASURES",
            "alloc: objects, by method, line and class; alloc=sampled: some of them, with their \
             callers; heap: these, and which of them stay; gc_cost: these, and the time of collections that they \
             cost; ops: queries and other ops, with their names; in wall mode also blame: how long others \
             waited for the GVL while a method had it, and requests: their accounts, and which are slow \
             for their endpoint, for 'rperf why'; of traced calls also cpu: CPU time, and latency: p50, \
             p99 and maximum of each method",
        ),
        record_only: true,
    }),
    ..measure(&[Words(&WORDS)])
};

/// The words that `rperf attach` has.
pub(super) static ATTACH_MEASURE: Setting = Setting {
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "MEASURES",
            "alloc=sampled: some of the objects that are made, with their callers; heap: these, and which \
             of them stay; ops: queries and other ops, with their names; requests, in wall mode: which \
             are slow, for 'rperf why'; blame is always measured in wall mode",
        ),
        record_only: false,
    }),
    ..measure(&[Words(&[ALLOC_SAMPLED, BLAME, HEAP, OPS, REQUESTS])])
};

/// The words that `rperf push` has. Its sessions are too short to see what stays, and what servers keep of
/// samples doesn't tell requests apart.
pub(super) static PUSH_MEASURE: Setting = Setting {
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "MEASURES",
            "alloc=sampled: some of the objects that are made, with their callers; ops: queries and other \
             ops are frames, with their names",
        ),
        record_only: false,
    }),
    ..measure(&[Words(&[ALLOC_SAMPLED, OPS])])
};

const fn measure(forms: &'static [Form]) -> Setting {
    Setting {
        unset: Some("nothing more"),
        ..Setting::named("measure", forms, "what to measure beside times")
    }
}

impl Settings {
    /// Whether objects that are made are sampled, with their stacks.
    pub fn samples_objects(&self) -> bool {
        self.measures(ALLOC_SAMPLED) || self.follows_objects() || self.shares_gc()
    }

    /// Whether the time of collections is shared among the sites of objects.
    pub fn shares_gc(&self) -> bool {
        self.measures(GC_COST)
    }

    /// Whether sampled objects are followed for as long as they live.
    pub fn follows_objects(&self) -> bool {
        self.measures(HEAP)
    }

    /// Whether each object that is made is counted.
    pub fn measures_objects(&self) -> bool {
        self.measures(ALLOC)
    }

    /// Whether waits for the GVL are charged to the thread that has it.
    pub fn measures_blame(&self) -> bool {
        self.measures(BLAME)
    }

    /// Whether requests and jobs are judged by how long they took.
    pub fn measures_requests(&self) -> bool {
        self.measures(REQUESTS)
    }

    /// Whether ops have frames and sums of their own.
    pub fn measures_ops(&self) -> bool {
        self.measures(OPS)
    }

    /// Whether traced calls have CPU time, too.
    pub fn measures_cpu(&self) -> bool {
        self.measures(CPU)
    }

    /// Whether it is kept how long the traced calls of each method took.
    pub fn measures_latency(&self) -> bool {
        self.measures(LATENCY)
    }

    fn measures(&self, word: &str) -> bool {
        matches!(self.get(&MEASURE), Some(Value::Words(words)) if words.contains(&word))
    }

    /// Whether something is measured that goes with this alone.
    pub(super) fn measures_within(&self, within: Within) -> bool {
        let mut words = ALL.iter().filter(|(_, it)| *it == within);
        words.any(|(word, _)| self.measures(word))
    }
}
