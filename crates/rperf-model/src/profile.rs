//! The profile itself and the small types in it. Any thread, no I/O.

use crate::{CallTree, LabelSetId, LabelSets, NodeId, State, StringId, Strings};
use rustc_hash::FxHashMap;

/// What the weights measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// CPU time of each thread.
    #[default]
    Cpu,
    /// Wall time of each thread, with the CPU time used beside it.
    Wall,
}

impl Mode {
    /// `"cpu"` or `"wall"`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Cpu => "cpu",
            Mode::Wall => "wall",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Mode> {
        [Mode::Cpu, Mode::Wall]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// Index of a frame in [`Frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FrameId(pub u32);

/// A method, block, or top-level script. Two frames with the same content are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Qualified name: `Integer#times`, `block in <main>`.
    pub name: StringId,
    /// Path as Ruby gives it, or a marker such as `<C method>` or `<GVL>`.
    pub path: StringId,
    /// Line of the definition, or 0 where none is known.
    pub first_line: u32,
}

/// A table of unique frames.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    table: Vec<Frame>,
    index: FxHashMap<Frame, FrameId>,
}

impl Frames {
    /// The id of `frame`, which is added if it is new.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        *self.index.entry(frame).or_insert_with(|| {
            self.table.push(frame);
            FrameId(self.table.len() as u32 - 1)
        })
    }

    /// The id of `frame`, if it is there.
    pub fn find(&self, frame: &Frame) -> Option<FrameId> {
        self.index.get(frame).copied()
    }

    /// The frame with this id.
    pub fn get(&self, id: FrameId) -> Option<&Frame> {
        self.table.get(id.0 as usize)
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// All frames with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        self.table
            .iter()
            .enumerate()
            .map(|(row, frame)| (FrameId(row as u32), frame))
    }
}

/// The fixed row of values that a weight carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Samples taken.
    pub count: u64,
    /// Wall time in ns. In cpu mode 0, but for GC states.
    pub wall_ns: u64,
    /// CPU time in ns. In cpu mode GC states carry their wall time here too:
    /// GC time is always wall time, and cpu is that mode's only time value.
    pub cpu_ns: u64,
}

impl Values {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: Values) {
        self.count = self.count.saturating_add(other.count);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }

    /// The time that `mode` is about: its weight, in ns.
    pub fn weight_ns(&self, mode: Mode) -> u64 {
        match mode {
            Mode::Cpu => self.cpu_ns,
            Mode::Wall => self.wall_ns,
        }
    }

    /// Whether all values are 0.
    pub fn is_zero(&self) -> bool {
        *self == Values::default()
    }
}

/// Values summed over all samples with the same stack, thread, labels and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// The stack.
    pub node: NodeId,
    /// The thread's seq (from 1); a row of [`Profile::threads`].
    pub thread: u32,
    /// The labels.
    pub labels: LabelSetId,
    /// The state.
    pub state: State,
    /// The sums.
    pub values: Values,
}

/// One sample as it was taken, when samples are not aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawSample {
    /// When it was taken: ns since the profile's start.
    pub time_ns: u64,
    /// Where its values belong, and what they are.
    pub weight: Weight,
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

/// What was counted while profiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
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
    /// Samples whose stack was folded into `[truncated]`.
    pub truncated_samples: u64,
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
}

/// What is known about the run as a whole.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// What the weights measure.
    pub mode: Mode,
    /// Samples asked for per second.
    pub frequency: u32,
    /// Start, in ns since the Unix epoch.
    pub start_time_ns: u64,
    /// Length of the session in ns.
    pub duration_ns: u64,
    /// Name of the program, as shown by tools.
    pub program: String,
    /// For people: versions, mode, frequency.
    pub comments: Vec<String>,
    /// What was counted.
    pub counters: Counters,
}

/// A profile. [`Profile::check`] tells whether all of it hangs together.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The run as a whole.
    pub meta: Meta,
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
    /// One row for each (node, thread, labels, state).
    pub weights: Vec<Weight>,
    /// The samples one by one, in the order they were taken, where they were
    /// kept. `weights` then holds their sums.
    pub raw_samples: Option<Vec<RawSample>>,
}
