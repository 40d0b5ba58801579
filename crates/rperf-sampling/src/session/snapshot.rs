//! What a session had collected at one moment, and the profile that is made of it. On the thread
//! that asked for it, without the GVL.

use crate::Values;
use crate::collect::messages::{AwaitedReply, WorkerEnded};
use crate::collect::profile_builder::{BuilderCounts, ProfileBuilder, SessionNames};
use crate::collect::sample::SampleSums;
use crate::config::{Missing, SessionConfig};
use crate::counters::{Capture, SessionCounters};
use crate::session::budget::Intervals;
use rperf_model::fold::FoldedSum;
use rperf_model::label_keys::RACTOR;
use rperf_model::{Meta, Note, Profile, SamplingStats};
use rperf_vm::{CapturedNode, LabelTexts, ResolvedFrame, ThreadNames};
use std::sync::Arc;

/// What was taken from a session, without what the worker has yet to hand out.
#[derive(Debug)]
pub struct Taken {
    snapshot: Snapshot,
    reply: AwaitedReply,
    nodes: Vec<CapturedNode>,
}

impl Taken {
    /// The `snapshot` lacks what comes with the `reply`; these are its epoch's nodes.
    pub(crate) fn new(snapshot: Snapshot, reply: AwaitedReply, nodes: Vec<CapturedNode>) -> Self {
        Self {
            snapshot,
            reply,
            nodes,
        }
    }

    /// Timer expiries that asked for a sample.
    pub(crate) fn triggers(&self) -> u64 {
        self.snapshot.counted.triggers
    }

    /// Waits for the worker. Returns all of it, and the nodes of the present epoch.
    /// Fails if the worker has ended early.
    pub fn complete(self) -> Result<(Snapshot, Vec<CapturedNode>), WorkerEnded> {
        let reply = self.reply.wait()?;
        let snapshot = Snapshot {
            collected: reply.collected,
            earlier: reply.earlier,
            ..self.snapshot
        };
        Ok((snapshot, self.nodes))
    }
}

/// Everything collected up to now, still with frames as the VM gives them.
#[derive(Debug)]
pub struct Snapshot {
    /// How the session was configured.
    pub config: SessionConfig,
    /// Where stacks of running threads were taken.
    pub capture: Capture,
    /// What samples lack, as the VM isn't of the form that is expected.
    pub missing: Missing,
    /// When it was collected.
    pub period: Period,
    /// The sums or samples of the present epoch.
    pub collected: SampleSums,
    /// The epochs before it.
    pub earlier: ProfileBuilder,
    /// What was counted meanwhile.
    pub counted: Counted,
    /// What stands in a profile in place of numbers.
    pub texts: Texts,
}

/// From when to when samples were collected.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    /// Start, in ns since the Unix epoch.
    pub start_time_ns: u64,
    /// Start on the monotonic clock.
    pub start_ns: u64,
    /// Up to when, on the monotonic clock.
    pub end_ns: u64,
}

/// How the sampling went: what was counted beside the samples.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// The sampling side's counters.
    pub counters: SessionCounters,
    /// The longest intervals that were in force.
    pub intervals: Intervals,
    /// Samples dropped in the buffer.
    pub dropped: Values,
    /// Timer expiries that asked for a sample.
    pub triggers: u64,
    /// Samples that went without their labels, as there was no room for these.
    pub unlabelled: u64,
}

/// What the numbers stand for that samples have in place of texts.
#[derive(Debug)]
pub struct Texts {
    /// The label sets, from number 1.
    pub label_sets: Vec<LabelTexts>,
    /// The names of ops, from number 1.
    pub ops: Vec<Arc<str>>,
    /// The names of threads.
    pub thread_names: ThreadNames,
    /// The word of [`RequestId`](rperf_model::RequestId) for the session's requests.
    pub request_word: u32,
}

impl Texts {
    /// The texts that samples name by numbers of their own.
    fn session_names(&self) -> SessionNames<'_> {
        SessionNames {
            label_sets: &self.label_sets,
            ops: &self.ops,
            request_word: self.request_word,
        }
    }

    /// Gives the threads of a profile their names.
    fn name_threads(&self, profile: &mut Profile) {
        for thread in &mut profile.threads {
            if let Some(name) = self.thread_names.get(thread.seq) {
                thread.name = profile.strings.intern(name);
            }
        }
    }
}

impl Snapshot {
    /// The profile. `nodes` and `frames` are the present epoch's, the frames in
    /// the order of its frame table; `program` and `notes` describe the run.
    pub fn into_profile(
        mut self,
        nodes: &[CapturedNode],
        frames: &[Arc<ResolvedFrame>],
        program: String,
        mut notes: Vec<Note>,
    ) -> Profile {
        let mut builder = std::mem::take(&mut self.earlier);
        builder.add(nodes, frames, std::mem::take(&mut self.collected));
        let counts = builder.counts();
        if counts.folded_threads > 0 {
            let threads = counts.folded_threads;
            let line = format!("{threads} threads that had ended are shown together as thread 0");
            notes.push(line.into());
        }
        notes.extend(self.longer_intervals().map(Note::from));
        let raw_since = (!self.config.aggregate).then_some(self.period.start_ns);
        let names = self.texts.session_names();
        let mut profile = builder.finish(self.config.measured(), names, raw_since);
        let SessionCounters {
            unknown_holder_ns,
            hand_over_ns,
            ..
        } = self.counted.counters;
        profile.add_unheld_waits(unknown_holder_ns, hand_over_ns);
        self.texts.name_threads(&mut profile);
        profile.meta = self.meta(counts, profile.folded(), program, notes);
        profile
    }

    /// How many other Ractors have samples, or a few of them that are told apart.
    pub fn other_ractors(&self) -> usize {
        let is_other = |set: &&LabelTexts| set.iter().any(|(key, _)| **key == *RACTOR);
        self.texts.label_sets.iter().filter(is_other).count()
    }

    /// For people: that fewer samples were taken than asked for.
    fn longer_intervals(&self) -> impl Iterator<Item = String> + use<> {
        let Intervals {
            tick_ns,
            off_gvl_ns,
        } = self.counted.intervals;
        let limit = self.config.max_overhead;
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        let ticks = (tick_ns > self.config.interval()).then(|| {
            format!(
                "samples were taken as seldom as every {}, as sampling took more than {limit} % of \
                 the CPU time",
                ms(tick_ns)
            )
        });
        let stacks = (off_gvl_ns > tick_ns).then(|| {
            format!(
                "stacks of blocked and waiting threads were taken as seldom as every {} of a \
                 thread's time, as there were many",
                ms(off_gvl_ns)
            )
        });
        ticks.into_iter().chain(stacks)
    }

    fn meta(
        &self,
        counts: BuilderCounts,
        folded: FoldedSum,
        program: String,
        notes: Vec<Note>,
    ) -> Meta {
        let Self { config, period, .. } = self;
        let Counted {
            counters,
            intervals,
            dropped,
            triggers,
            unlabelled,
        } = self.counted;
        let mut lost = dropped;
        lost.add(counts.lost);
        lost.add(counters.uncaptured);
        Meta {
            frequency: config.frequency,
            period: None,
            start_time_ns: period.start_time_ns,
            duration_ns: period.end_ns.saturating_sub(period.start_ns),
            program,
            roots: Vec::new(),
            rperf_directories: Vec::new(),
            notes,
            missing: Vec::new(),
            counters: SamplingStats {
                trigger_count: triggers,
                sampling_count: counters.sampling_count,
                sampling_time_ns: counters.sampling_time_ns,
                detected_thread_count: u64::from(counters.threads),
                dropped_samples: lost.count,
                dropped_ns: lost.times.weight_ns(config.mode),
                truncated_samples: counters.truncated + counts.truncated,
                folded_samples: folded.samples,
                folded_ns: folded.ns,
                unlabelled_samples: unlabelled,
                tick_stacks: counters.capture.tick_stacks,
                safepoint_stacks: counters.capture.safepoint_stacks,
                safepoint_calls: counters.capture.safepoint_calls,
                unreadable_stacks: counters.capture.unreadable_stacks,
                hidden_frames: counters.capture.hidden_frames,
                known_waits: counters.capture.known_waits,
                interval_ns: intervals.tick_ns,
                off_gvl_interval_ns: intervals.off_gvl_ns,
            },
        }
    }
}
