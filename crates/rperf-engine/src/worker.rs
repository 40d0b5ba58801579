//! The worker thread: sums full buffers and hosts the source of ticks. It knows nothing of
//! Ruby, holds no frame, and sleeps unless a tick, a buffer or a request is due.

use crate::call_tree::{CapturedTree, TreeSize};
use crate::profile_builder::{ProfileBuilder, ResolvedFrame};
use crate::ractors::OtherRactors;
use crate::sample::{Sample, SampleSums, SumLimits};
use crate::sources::{Source, TimerConfig};
use crate::ticks::Ticks;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// What the worker is started with.
#[derive(Debug)]
pub struct WorkerConfig {
    /// What makes the ticks.
    pub timer: TimerConfig,
    /// How samples are collected.
    pub limits: SumLimits,
}

/// What is sent to the worker.
#[derive(Debug)]
enum Message {
    Ask(Request),
    /// An epoch is over, and its frames have names: it goes into the profile.
    EpochEnded(Box<EndedEpoch>),
    /// Sums of the present epoch that the sampling side has made itself.
    Sums(Box<SampleSums>),
}

/// A request, with the samples not handed over yet.
#[derive(Debug)]
struct Request {
    samples: Vec<Sample>,
    reply: Sender<Reply>,
    kind: RequestKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// What there is; collecting goes on.
    Report,
    /// What the epoch has; collecting begins anew.
    TakeEpoch,
    /// What there is, of which the worker keeps nothing.
    TakeAll,
    /// What there is, and the end of the worker.
    Stop,
}

/// What the worker has collected.
#[derive(Debug, Default)]
pub struct Reply {
    /// In the present epoch.
    pub collected: SampleSums,
    /// In those before it; empty where only the epoch was asked for.
    pub earlier: ProfileBuilder,
}

/// What an epoch held: the call tree, its frames' names, what was collected on it.
#[derive(Debug)]
pub struct EndedEpoch {
    /// The nodes, and frames that are no longer used.
    pub tree: CapturedTree,
    /// The names, in the order of the tree's frames.
    pub names: Vec<ResolvedFrame>,
    /// The sums.
    pub collected: SampleSums,
}

/// How much the worker holds, for the sampling side to read.
#[derive(Debug, Default)]
struct WorkerSize {
    bytes: AtomicUsize,
    /// Of the epochs that have ended, by names.
    nodes: AtomicUsize,
    frames: AtomicUsize,
}

/// The worker is gone, by a panic whose message has been printed; what it had
/// collected is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the profile is lost: rperf's worker thread ended by an internal error")]
pub struct WorkerEnded;

/// The sampling side's handle of the worker.
#[derive(Debug)]
pub struct Worker {
    thread: Option<JoinHandle<()>>,
    held: Arc<WorkerSize>,
    messages: Sender<Message>,
    ticks: Arc<Ticks>,
    source: Arc<dyn Source>,
}

/// The sampling side's ends of the buffer channels.
pub type BufferEnds = (Sender<Vec<Sample>>, Receiver<Vec<Sample>>);

type Opened = io::Result<Arc<dyn Source>>;

impl Worker {
    /// Starts the thread and waits until its source is open.
    pub fn start(
        config: WorkerConfig,
        ticks: Arc<Ticks>,
        others: Arc<OtherRactors>,
    ) -> io::Result<(Worker, BufferEnds)> {
        let (full, from_sampling) = bounded(2);
        let (to_sampling, empty) = bounded(2);
        // Unbounded: if the worker panics, what is queued is dropped, and with it
        // the reply that somebody may be waiting for. There are a few at most.
        let (messages, from_messages) = unbounded();
        let (opened, is_opened) = bounded::<Opened>(1);
        let worker_ticks = Arc::clone(&ticks);
        let held = Arc::new(WorkerSize::default());
        let worker_held = Arc::clone(&held);
        let worker_others = Arc::clone(&others);
        let body = move || {
            let mut main = WorkerMain {
                held: worker_held,
                others: worker_others,
                earlier: ProfileBuilder::default(),
                limits: config.limits,
                collected: SampleSums::default(),
                buffers: from_sampling,
                emptied: to_sampling,
                messages: from_messages,
            };
            main.run(config.timer, worker_ticks, &opened);
        };
        // Signals for the process are the program's: the worker takes none.
        let mask = block_all_signals();
        let spawned = thread::Builder::new()
            .name("rperf".into())
            .stack_size(256 << 10)
            .spawn(body);
        restore_signals(&mask);
        let thread = spawned?;
        let source = is_opened
            .recv()
            .map_err(|_| io::Error::other("the worker ended early"))??;
        others.set_worker(Arc::clone(&source), thread.thread().clone());
        let worker = Worker {
            thread: Some(thread),
            held,
            messages,
            ticks,
            source,
        };
        Ok((worker, (full, empty)))
    }

    /// Ends the rest of the source; only for the caller to whom `Ticks::set_holder` said
    /// so.
    pub fn arm(&self) {
        self.source.arm();
    }

    /// Lets the worker look for full buffers. Takes no lock.
    #[inline]
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// What has been collected, `samples` included.
    pub fn report(&self, samples: Vec<Sample>) -> Result<Reply, WorkerEnded> {
        self.ask(RequestKind::Report, samples)
    }

    /// What the epoch has collected, `samples` included; collecting begins anew.
    pub fn take_epoch(&self, samples: Vec<Sample>) -> Result<SampleSums, WorkerEnded> {
        Ok(self.ask(RequestKind::TakeEpoch, samples)?.collected)
    }

    /// What has been collected, `samples` included; collecting begins anew.
    pub fn take_all(&self, samples: Vec<Sample>) -> Result<Reply, WorkerEnded> {
        self.ask(RequestKind::TakeAll, samples)
    }

    /// Adds sums to the epoch's, in the background.
    pub fn add(&self, sums: SampleSums) {
        // Without the worker they are lost; `stop` says so.
        let _ = self.messages.send(Message::Sums(Box::new(sums)));
        self.wake();
    }

    /// Adds an epoch to the profile, in the background.
    pub fn end_epoch(&self, epoch: EndedEpoch) {
        // Without the worker it is lost; `stop` says so.
        let _ = self.messages.send(Message::EpochEnded(Box::new(epoch)));
        self.wake();
    }

    /// Bytes that the worker holds.
    pub fn memory(&self) -> usize {
        self.held.bytes.load(Relaxed)
    }

    /// What the epochs that have ended had, by names.
    #[inline]
    pub fn earlier_size(&self) -> TreeSize {
        TreeSize {
            nodes: self.held.nodes.load(Relaxed),
            frames: self.held.frames.load(Relaxed),
        }
    }

    /// What has been collected, `samples` included; the worker ends.
    pub fn stop(&mut self, samples: Vec<Sample>) -> Result<Reply, WorkerEnded> {
        let reply = self.ask(RequestKind::Stop, samples);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| WorkerEnded)?;
        }
        reply
    }

    /// The shared ticks.
    pub fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The shared ticks, to keep.
    pub fn shared_ticks(&self) -> Arc<Ticks> {
        Arc::clone(&self.ticks)
    }

    fn ask(&self, kind: RequestKind, samples: Vec<Sample>) -> Result<Reply, WorkerEnded> {
        let (reply, replies) = bounded(1);
        let request = Request {
            samples,
            reply,
            kind,
        };
        let sent = self.messages.send(Message::Ask(request));
        sent.map_err(|_| WorkerEnded)?;
        self.wake();
        replies.recv().map_err(|_| WorkerEnded)
    }
}

/// Ends the source as the worker ends, by a panic too.
struct StopAtEnd(Arc<dyn Source>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The worker's own side.
struct WorkerMain {
    held: Arc<WorkerSize>,
    others: Arc<OtherRactors>,
    earlier: ProfileBuilder,
    limits: SumLimits,
    collected: SampleSums,
    buffers: Receiver<Vec<Sample>>,
    emptied: Sender<Vec<Sample>>,
    messages: Receiver<Message>,
}

impl WorkerMain {
    fn run(&mut self, timer: TimerConfig, ticks: Arc<Ticks>, opened: &Sender<Opened>) {
        ask_for_short_slices();
        let _ = self
            .emptied
            .try_send(Vec::with_capacity(crate::buffer::BUFFER_SAMPLES));
        let source = timer.open(Arc::clone(&ticks));
        let hosted = source
            .as_ref()
            .map(|source| StopAtEnd(Arc::clone(source)))
            .ok();
        let _ = opened.send(source);
        let Some(StopAtEnd(source)) = &hosted else {
            return;
        };
        while self.serve() {
            let pauses = [source.poll(), self.others.tend(&ticks.others)];
            match pauses.into_iter().flatten().min() {
                Some(pause) => thread::park_timeout(pause),
                None => thread::park(),
            }
        }
    }

    /// Does what is due. Returns whether to go on.
    fn serve(&mut self) -> bool {
        self.collect_buffers();
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::EpochEnded(epoch) => {
                    let EndedEpoch {
                        tree,
                        names,
                        collected,
                    } = *epoch;
                    self.earlier.add(tree.nodes(), &names, collected);
                    self.tell_what_is_held();
                }
                Message::Sums(sums) => self.collected.merge(*sums, self.limits),
                Message::Ask(request) => {
                    // Buffers handed over before the request belong into its reply.
                    self.collect_buffers();
                    self.collected.add(&request.samples, self.limits);
                    let reply = self.reply(request.kind);
                    self.tell_what_is_held();
                    let _ = request.reply.send(reply);
                    if request.kind == RequestKind::Stop {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn reply(&mut self, kind: RequestKind) -> Reply {
        match kind {
            RequestKind::Report => Reply {
                collected: self.collected.clone(),
                earlier: self.earlier.clone(),
            },
            RequestKind::TakeEpoch => Reply {
                collected: std::mem::take(&mut self.collected),
                ..Reply::default()
            },
            RequestKind::TakeAll | RequestKind::Stop => Reply {
                collected: std::mem::take(&mut self.collected),
                earlier: std::mem::take(&mut self.earlier),
            },
        }
    }

    fn collect_buffers(&mut self) {
        while let Ok(mut samples) = self.buffers.try_recv() {
            self.collected.add(&samples, self.limits);
            samples.clear();
            samples.shrink_to(crate::buffer::BUFFER_SAMPLES);
            let _ = self.emptied.try_send(samples);
            self.tell_what_is_held();
        }
    }

    fn tell_what_is_held(&self) {
        let TreeSize { nodes, frames } = self.earlier.size();
        let bytes = self.collected.memory() + self.earlier.memory();
        self.held.bytes.store(bytes, Relaxed);
        self.held.nodes.store(nodes, Relaxed);
        self.held.frames.store(frames, Relaxed);
    }
}

/// Asks the scheduler for a short time slice, so that a tick is served at once
/// though the program keeps the CPU busy (measured on one CPU: without, of 205
/// ticks due in 300 us slices between sleeps 1 was on time; with, all). Linux
/// 6.12 and later heed `sched_runtime` for SCHED_OTHER; older kernels preempt
/// at wake-up anyway. Needs no privilege; if it fails, ticks may come late.
fn ask_for_short_slices() {
    #[cfg(target_os = "linux")]
    {
        #[repr(C)]
        struct SchedAttr {
            size: u32,
            policy: u32,
            flags: u64,
            nice: i32,
            priority: u32,
            runtime: u64,
            deadline: u64,
            period: u64,
        }
        // The worker keeps the nice value it has inherited.
        // SAFETY: getpriority has no memory arguments; 0 means this thread.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let attr = SchedAttr {
            size: size_of::<SchedAttr>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            nice,
            priority: 0,
            runtime: 100_000,
            deadline: 0,
            period: 0,
        };
        // SAFETY: `attr` is a valid sched_attr of the size it states.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
        // SAFETY: sets this thread's timer slack (ns); no memory is involved.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    }
}

fn block_all_signals() -> libc::sigset_t {
    let (mut all, mut previous) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
    // SAFETY: sigfillset initialises `all`; pthread_sigmask fills `previous` in,
    // and if it failed a zeroed set is valid too.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), previous.as_mut_ptr());
        previous.assume_init()
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is what `block_all_signals` was given by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}
