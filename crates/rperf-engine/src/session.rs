//! One profiling session as the bridge uses it: the call tree, the active buffer
//! and the worker behind one [`Session`]. All calls under the GVL.

use crate::accounting::{Accounting, Dues};
use crate::buffer::ActiveBuffer;
use crate::call_tree::{CapturedTree, FrameWord, LastStack};
use crate::clock;
use crate::config::{SessionConfig, VmCalls};
use crate::counters::{Capture, CaptureCounters};
use crate::profile_builder::{RAW_CAP, ROW_CAP, ResolvedFrame};
use crate::recording::{NotedLabels, Position, Recording};
use crate::sample::{SampleSums, SumLimits};
use crate::snapshot::Snapshot;
use crate::sources::{TimerConfig, TimerKind};
use crate::tick_capture::signal::{self, TickSignal};
use crate::tick_capture::{TakeStack, TickLog};
use crate::ticks::Ticks;
use crate::worker::{EndedEpoch, Reply, Worker, WorkerConfig, WorkerEnded};
use std::io;
use std::ops::Range;
use std::sync::Arc;

mod clear;

/// Nodes that an epoch's call tree holds at most, should its end be delayed.
const EPOCH_NODE_CAP: usize = 1 << 20;

/// Ends of epochs hold the program up for at most one part in this many of the
/// time, if the tree has room enough.
const EPOCH_END_SHARE: u64 = 500;

/// A running session.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    start_ns: u64,
    start_realtime_ns: u64,
    seed: u64,
    take_stack: TakeStack,
    capture: Capture,
    /// There while stacks are taken at the tick.
    tick_signal: Option<TickSignal>,
    recording: Recording,
    /// The epoch that is being ended: its frames must stay alive until they have
    /// been resolved.
    ending: Option<EndingEpoch>,
    /// Up to when an epoch ends only if its tree is full.
    no_end_before: u64,
    worker: Worker,
    /// The number of the thread that was seen last.
    last_seq: u32,
    /// The timer's expiries before what is kept began.
    triggers_before: u64,
}

/// An epoch whose frames are being given names.
#[derive(Debug)]
struct EndingEpoch {
    since: u64,
    tree: CapturedTree,
    collected: SampleSums,
}

impl Session {
    /// Starts the worker and, at rest, the timer.
    pub fn start(config: SessionConfig, calls: VmCalls) -> io::Result<Session> {
        let ticks = Arc::new(Ticks::new(calls.trigger, signal::interrupt));
        let seed = clock::realtime_ns() ^ u64::from(std::process::id()).rotate_left(40);
        let limits = SumLimits {
            aggregate: config.aggregate,
            rows: if config.aggregate { ROW_CAP } else { RAW_CAP },
        };
        let worker_config = WorkerConfig {
            timer: TimerConfig {
                kind: config.timer,
                interval: config.interval(),
                seed,
            },
            limits,
        };
        let (worker, (full, empty)) = Worker::start(worker_config, ticks)?;
        Ok(Session {
            config,
            start_ns: clock::monotonic_ns(),
            start_realtime_ns: clock::realtime_ns(),
            seed,
            take_stack: calls.take_stack,
            capture: Capture::Safepoint,
            tick_signal: None,
            recording: Recording::new(EPOCH_NODE_CAP, ActiveBuffer::new(full, empty)),
            ending: None,
            no_end_before: 0,
            worker,
            last_seq: 0,
            triggers_before: 0,
        })
    }

    /// From now on the thread that holds the GVL is interrupted at each tick, and its
    /// stack taken then and there. Fails if the program handles SIGURG itself, or if
    /// the timer may use no signals.
    pub fn begin_tick_capture(&mut self) -> io::Result<()> {
        if self.config.timer == TimerKind::Sleep {
            let message = "the timer uses no signals";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if self.tick_signal.is_none() {
            let ticks = self.worker.shared_ticks();
            self.tick_signal = Some(TickSignal::install(ticks, self.take_stack)?);
            self.worker.ticks().set_captures(true);
            self.capture = Capture::Tick;
        }
        Ok(())
    }

    /// Ends what [`Session::begin_tick_capture`] began; afterwards no handler is at work.
    pub fn end_tick_capture(&mut self) {
        self.worker.ticks().set_captures(false);
        self.tick_signal = None;
    }

    /// The accounting for a thread that was not seen before; `cpu_base` is its
    /// CPU clock.
    pub fn new_thread(&mut self, cpu_base: u64) -> Accounting {
        self.recording.counters.threads += 1;
        self.last_seq += 1;
        let seq = self.last_seq;
        let seed = self.seed ^ (u64::from(seq) << 32);
        Accounting::new(
            seq,
            self.config.mode,
            self.config.interval(),
            cpu_base,
            seed,
        )
    }

    /// The ticks that the timer, the hooks and the sampling callback share.
    pub fn shared_ticks(&self) -> Arc<Ticks> {
        self.worker.shared_ticks()
    }

    /// Starts the timer; only for the caller to whom [`Ticks::set_holder`] said so.
    pub fn arm(&self) {
        self.worker.arm();
    }

    /// The call tree and its frames.
    pub fn tree(&self) -> &CapturedTree {
        &self.recording.tree
    }

    /// Counts stacks that were taken, and the time spent in the sampling callback or
    /// in hooks, in ns.
    pub fn count_sampling(&mut self, stacks: u64, time_ns: u64) {
        self.recording.counters.sampling_count += stacks;
        self.recording.counters.sampling_time_ns += time_ns;
    }

    /// Counts how stacks were taken.
    pub fn count_capture(&mut self, counts: CaptureCounters) {
        self.recording.counters.capture.add(counts);
    }

    /// Whether the epoch should end at `now`: the call tree is full, or it has grown
    /// and the last end lies so far back that this one takes little of the time.
    #[inline]
    pub fn is_epoch_over(&self, now: u64) -> bool {
        let over = self.recording.tree.is_full()
            || (now >= self.no_end_before
                && self.recording.tree.has_outgrown(self.worker.earlier_size()));
        over && !self.is_ending()
    }

    /// Begins to end the epoch: an empty call tree takes over. The caller then
    /// lets all threads forget their nodes, resolves the frames
    /// ([`Session::ending_frame`]), and calls [`Session::end_epoch`].
    pub fn begin_epoch_end(&mut self) {
        self.ending = Some(EndingEpoch {
            since: clock::monotonic_ns(),
            tree: self.take_tree(),
            // Without the worker it is lost; `stop` says so.
            collected: self
                .worker
                .take_epoch(self.recording.buffer.take())
                .unwrap_or_default(),
        });
    }

    /// Frame `row` of the epoch that is being ended; `None` after the last one.
    pub fn ending_frame(&self, row: usize) -> Option<FrameWord> {
        self.ending.as_ref()?.tree.frames().get(row).copied()
    }

    /// Whether frames of an epoch, or of what was cleared, are being given names.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Lets go of the frames of the epoch that is being ended; the worker keeps the
    /// rest, with these names.
    pub fn end_epoch(&mut self, names: Vec<ResolvedFrame>) {
        let Some(EndingEpoch {
            since,
            tree,
            collected,
        }) = self.ending.take()
        else {
            return;
        };
        self.worker.end_epoch(EndedEpoch {
            tree,
            names,
            collected,
        });
        let now = clock::monotonic_ns();
        let took = now.saturating_sub(since);
        self.recording.counters.sampling_time_ns += took;
        self.no_end_before = now + took * EPOCH_END_SHARE;
    }

    /// All frames that must stay alive: the garbage collector's roots.
    pub fn frames(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let ending = self.ending.iter().flat_map(|epoch| epoch.tree.frames());
        self.recording.tree.frames().iter().chain(ending).copied()
    }

    /// Bytes held on both sides.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.recording.tree.memory()
            + self.ending.as_ref().map_or(0, |epoch| epoch.tree.memory())
            + self.recording.buffer.memory()
            + self.recording.labels.memory()
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
    }

    /// Records what no thread is left to record: the unattributed time.
    pub fn flush_unattributed(&mut self, now: u64) {
        let is_handed_over = self.recording.flush_unattributed(now);
        self.wake_worker(is_handed_over);
    }

    /// Everything up to `now`; the session goes on. Flush the threads first.
    /// Fails if the worker has ended early.
    pub fn snapshot(&mut self, now: u64) -> Result<Snapshot, WorkerEnded> {
        let reply = self.worker.report(self.recording.buffer.take())?;
        Ok(self.describe(now, reply))
    }

    /// Everything up to `now`, and the end of the worker and the timer.
    /// Fails if the worker had ended early.
    pub fn stop(mut self, now: u64) -> Result<Snapshot, WorkerEnded> {
        self.end_tick_capture();
        let reply = self.worker.stop(self.recording.buffer.take())?;
        Ok(self.describe(now, reply))
    }

    /// Ends the worker and the timer of a session that nobody wants the result of.
    pub fn abandon(&mut self) {
        self.end_tick_capture();
        // If the worker has ended early, there is nothing left to end.
        let _ = self.worker.stop(Vec::new());
    }

    /// Time counts from `now` on: what came before was the session's own set-up.
    pub fn begin(&mut self, now: u64) {
        let since = clock::monotonic_ns().saturating_sub(now);
        self.start_ns = now;
        self.start_realtime_ns = clock::realtime_ns().saturating_sub(since);
    }

    fn describe(&self, now: u64, reply: Reply) -> Snapshot {
        Snapshot {
            config: self.config,
            capture: self.capture,
            start_time_ns: self.start_realtime_ns,
            start_ns: self.start_ns,
            end_ns: now,
            collected: reply.collected,
            earlier: reply.earlier,
            counters: self.recording.counters,
            dropped: self.recording.buffer.dropped(),
            triggers: self.worker.ticks().triggers() - self.triggers_before,
            label_sets: self.recording.labels.sets().to_vec(),
            unlabelled: self.recording.labels.refused(),
        }
    }

    #[inline]
    fn wake_worker(&self, is_handed_over: bool) {
        if is_handed_over {
            self.worker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
