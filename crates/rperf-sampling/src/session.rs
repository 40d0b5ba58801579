//! A profiling session as the bridge uses it: the call tree, the active buffer and the worker behind one
//! [`Session`]. All calls under the GVL.

use crate::accounting::{Accounting, Dues};
use crate::collect::buffer::ActiveBuffer;
use crate::collect::messages::AwaitedReply;
use crate::collect::profile_builder::{ProfileLimits, RAW_CAP, ROW_CAP};
use crate::collect::sample::{RequestNews, SumLimits};
use crate::config::SessionConfig;
use crate::counters::{CaptureCounters, StackCounts};
use crate::ractors::{OtherRactors, RecorderConfig};
use crate::recording::{NotedLabels, Position, Recording};
use crate::session::budget::Budget;
use crate::session::worker::{Worker, WorkerConfig};
use crate::tick_capture::TickLog;
use crate::tick_capture::signal;
use crate::timer::sources::TimerConfig;
use crate::timer::ticks::Ticks;
use rperf_model::{AmongSlowest, LatencyClass};
use rperf_vm::{CapturedTree, FrameWord, LabelSet, LastStack, RequestNumber, ThreadNames, clock};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

pub(crate) mod budget;
mod capturing;
mod ending_epoch;
mod epoch_state;
mod epochs;
mod kept_since;
mod known_ractors;
mod others;
pub(crate) mod snapshot;
mod stack_taker;
mod taking;
mod tick_stacks;
mod told;
mod watching;
pub(crate) mod worker;

use epoch_state::EpochState;
use kept_since::KeptSince;
use known_ractors::KnownRactors;
use tick_stacks::TickStacks;
use told::Told;

/// Nodes that an epoch's call tree holds at most, should its end be delayed; with half of them it is
/// due. A smaller limit for profiles is one for it, too, but each end has a price.
const EPOCH_NODES: RangeInclusive<usize> = 1 << 17..=1 << 20;

/// With so many rows an epoch's end is due.
const EPOCH_ROWS: usize = ROW_CAP / 2;

/// A running session.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    seed: u64,
    kept_since: KeptSince,
    tick_stacks: TickStacks,
    recording: Recording,
    epoch: EpochState,
    budget: Budget,
    worker: Worker,
    /// There while somebody watches.
    told: Option<Told>,
    others: KnownRactors,
    thread_names: ThreadNames,
}

impl Session {
    /// Starts the worker and, at rest, the timer. `trigger` asks the VM for the sampling callback,
    /// and is async-signal-safe.
    pub fn start(config: SessionConfig, trigger: fn()) -> io::Result<Session> {
        let ticks = Ticks::new(trigger, signal::interrupt);
        let ticks = Arc::new(ticks.with_others(signal::INTERRUPTER));
        let seed = clock::realtime_ns() ^ u64::from(std::process::id()).rotate_left(40);
        let limits = SumLimits {
            aggregate: config.aggregate,
            rows: if config.aggregate { ROW_CAP } else { RAW_CAP },
        };
        let start_ns = clock::monotonic_ns();
        let budget = Budget::new(
            config.interval(),
            config.max_overhead,
            start_ns,
            clock::process_cpu_ns(),
        );
        let worker_config = WorkerConfig {
            timer: TimerConfig {
                kind: config.timer,
                pace: Arc::clone(budget.pace()),
                seed,
            },
            charges_holders: config.measured().pairs,
            limits,
            profile: ProfileLimits {
                nodes: config.max_nodes as usize,
                rows: ROW_CAP,
                mode: config.mode,
            },
        };
        let recorder_config = RecorderConfig {
            mode: config.mode,
            interval: config.interval(),
            with_lines: true,
            layout: None,
            limits,
        };
        let others = Arc::new(OtherRactors::new(
            recorder_config,
            Arc::clone(budget.pace()),
            seed,
        ));
        let (worker, (full, empty)) = Worker::start(worker_config, ticks, Arc::clone(&others))?;
        let mut recording = Recording::new(epoch_nodes(&config), ActiveBuffer::new(full, empty));
        if config.measured().pairs {
            recording.tell_of_waits();
        }
        Ok(Session {
            config,
            seed,
            kept_since: KeptSince::start(start_ns),
            tick_stacks: TickStacks::none(),
            recording,
            epoch: EpochState::default(),
            budget,
            worker,
            told: None,
            others: KnownRactors::new(others),
            thread_names: ThreadNames::default(),
        })
    }

    /// The accounting for a thread that was not seen before; `cpu_base` is its
    /// CPU clock.
    pub fn new_thread(&mut self, cpu_base: u64) -> Accounting {
        self.recording.counters.threads += 1;
        let seq = self.others.threads.next_seq();
        let seed = self.seed ^ (u64::from(seq) << 32);
        Accounting::new(seq, self.config.mode, self.budget.pace(), cpu_base, seed)
    }

    /// The thread with this number has this name from now on, or none.
    pub fn name_thread(&mut self, seq: u32, name: Option<Arc<str>>) {
        self.thread_names.set(seq, name);
    }

    /// The ticks that the timer, the hooks and the sampling callback share.
    pub fn shared_ticks(&self) -> Arc<Ticks> {
        self.worker.shared_ticks()
    }

    /// The threads of other Ractors.
    pub fn shared_others(&self) -> Arc<OtherRactors> {
        Arc::clone(&self.others.threads)
    }

    /// Starts the timer; only for the caller to whom [`Ticks::set_holder`] said so.
    pub fn arm(&self) {
        self.worker.arm();
    }

    /// Lets the timer rest, as a thread has given the GVL up at `now` and nobody has it.
    pub fn stop_ticks(&self, now: u64) {
        self.worker.stop_ticks(now);
    }

    /// The call tree and its frames.
    pub fn tree(&self) -> &CapturedTree {
        &self.recording.tree
    }

    /// Counts stacks that were taken, and the time spent in the sampling callback or
    /// in hooks up to `now`, in ns. Keeps both within bounds.
    pub fn count_sampling(&mut self, now: u64, stacks: StackCounts, time_ns: u64) {
        self.recording.counters.sampling_count += stacks.running;
        self.recording.counters.sampling_time_ns += time_ns;
        let cpu = clock::process_cpu_ns;
        self.budget.count(now, stacks, time_ns, cpu);
    }

    /// Counts waits for the GVL of which it isn't known who had it; less than none for those that
    /// were charged to somebody though they weren't for this GVL.
    pub fn count_unknown_holder(&mut self, ns: i64) {
        self.recording.counters.unknown_holder_ns += ns;
    }

    /// Counts waits for the GVL in which nobody had it.
    pub fn count_hand_over(&mut self, ns: u64) {
        self.recording.counters.hand_over_ns += ns;
    }

    /// Counts how stacks were taken.
    pub fn count_capture(&mut self, counts: CaptureCounters) {
        self.recording.counters.capture.add(counts);
    }

    /// All frames that must stay alive: the garbage collector's roots.
    pub fn frames(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let frames = self.recording.tree.frames().iter();
        frames.chain(self.epoch.unnamed()).copied()
    }

    /// The word of [`RequestId`](rperf_model::RequestId) for its requests.
    pub fn request_word(&self) -> u32 {
        // Nearby seeds give words that are far apart (Knuth's multiplicative hash).
        (self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    /// Bytes held on both sides.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.recording.tree.memory()
            + self.epoch.memory()
            + self.recording.buffer.memory()
            + self.recording.labels.memory()
            + self.thread_names.memory()
            + self.worker.memory()
    }

    /// Rows of the call tree's frames that are new since this was asked last: the collector
    /// has to be told of them before it can run.
    #[must_use = "the garbage collector has to learn of new frames"]
    pub fn take_new_frames(&mut self) -> Range<usize> {
        self.recording.tree.take_new_frames()
    }

    /// Records the `dues` of the thread of `accounting`, which is at `position`, at
    /// `now`.
    pub fn record(
        &mut self,
        now: u64,
        accounting: &mut Accounting,
        dues: Dues,
        position: Position<'_>,
    ) {
        let is_handed_over = self.recording.record(now, accounting, dues, position);
        self.wake_worker(is_handed_over);
    }

    /// Makes samples of the stacks in the `log`, all of them from the thread of
    /// `accounting`, which has run fibers with these `labels`, and empties it. `last` as in
    /// [`Position`]. Returns of how many ticks they are.
    pub fn replay(
        &mut self,
        log: &mut TickLog,
        accounting: &mut Accounting,
        last: &mut LastStack,
        labels: &[NotedLabels<'_>],
    ) -> u64 {
        let (ticks, is_handed_over) = self.recording.replay(log, accounting, last, labels);
        self.wake_worker(is_handed_over);
        ticks
    }

    /// Takes in that the thread of `accounting` has ended, at which its CPU clock stood
    /// at `cpu`, if that is known: its remainders go where they belong.
    pub fn finish_thread(&mut self, now: u64, accounting: &mut Accounting, cpu: Option<u64>) {
        let dues = accounting.finish(cpu);
        let is_handed_over = self.recording.finish(now, accounting, dues);
        self.wake_worker(is_handed_over);
        let has_samples = accounting.was_sampled();
        self.thread_names.ended(accounting.seq(), has_samples);
    }

    /// `thread`, in the request of `labels`, has got the GVL now, for which it has waited `since` then.
    #[inline]
    pub fn end_request_wait(&mut self, thread: u32, labels: &LabelSet, since: u64) {
        let is_handed_over = self.recording.wait_ended(thread, labels, since);
        self.wake_worker(is_handed_over);
    }

    /// A request has ended, and is of this class: so are its samples. If it is `among_slowest` they are told
    /// apart from all others, in place of those of another one.
    pub fn end_request(
        &mut self,
        request: RequestNumber,
        class: LatencyClass,
        among_slowest: AmongSlowest,
    ) {
        let is_kept = among_slowest.is_one;
        // The old one goes first: there is room for few rows.
        if let Some(id) = among_slowest.in_place_of {
            let number = RequestNumber(id.number);
            self.tell_of_request(number, RequestNews::LetGo);
        }
        self.tell_of_request(request, RequestNews::Ended { class, is_kept });
    }

    fn tell_of_request(&mut self, request: RequestNumber, news: RequestNews) {
        let is_handed_over = self.recording.tell_of_request(request, news);
        self.wake_worker(is_handed_over);
    }

    /// Records what no thread is left to record: the unattributed time.
    pub fn flush_unattributed(&mut self, now: u64) {
        let is_handed_over = self.recording.flush_unattributed(now);
        self.wake_worker(is_handed_over);
    }

    /// Ends the worker and the timer of a session that nobody wants the result of.
    pub fn abandon(&mut self) {
        self.end_tick_capture();
        // If the worker has ended early, there is nothing left to end.
        let _ = self.worker.stop(Vec::new()).and_then(AwaitedReply::wait);
    }

    /// Time counts from `now` on: what came before was the session's own set-up.
    pub fn begin(&mut self, now: u64) {
        self.kept_since.begin(now);
    }

    #[inline]
    fn wake_worker(&self, is_handed_over: bool) {
        if is_handed_over {
            self.worker.wake();
        }
    }
}

/// Nodes that an epoch's call tree holds at most.
fn epoch_nodes(config: &SessionConfig) -> usize {
    let nodes = config.max_nodes as usize;
    nodes.clamp(*EPOCH_NODES.start(), *EPOCH_NODES.end())
}

#[cfg(test)]
mod tests;
