//! The worker thread: sums full buffers and hosts the source of ticks. It knows nothing of
//! Ruby, holds no frame, and sleeps unless a tick, a buffer or a request is due.

use crate::collect::holders::HolderLog;
use crate::collect::messages::{
    AwaitedReply, Message, NamedEpoch, Reply, Request, RequestKind, WorkerEnded,
};
use crate::collect::open_requests::OpenRequests;
use crate::collect::profile_builder::{ProfileBuilder, ProfileLimits};
use crate::collect::sample::{RequestNews, Sample, SampleSums, SumLimits};
use crate::collect::shared::{News, SharedFeed};
use crate::ractors::OtherRactors;
use crate::timer::sources::{Source, TimerConfig};
use crate::timer::ticks::Ticks;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rperf_vm::native_thread::{ask_for_short_slices, block_all_signals, restore_signals};
use rperf_vm::{RequestNumber, TreeSize};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// Rows of requests that are told apart from all others: 4 MB. One that ends beyond them isn't, nor is one
/// that has so many itself that a few of them took all.
const KEPT_ROWS: usize = 1 << 16;
const ROWS_OF_ONE: usize = 1 << 12;

/// What the worker is started with.
#[derive(Debug)]
pub struct WorkerConfig {
    /// What makes the ticks.
    pub timer: TimerConfig,
    /// Whether those are charged who had the GVL while a request waited for it.
    pub charges_holders: bool,
    /// How samples are collected.
    pub limits: SumLimits,
    /// How large the profile may become.
    pub profile: ProfileLimits,
}

/// How much the worker holds, for the sampling side to read.
#[derive(Debug, Default)]
struct WorkerSize {
    bytes: AtomicUsize,
    /// Nodes and frames of the epochs that have ended, by names.
    nodes: AtomicUsize,
    frames: AtomicUsize,
    /// Sums of the present epoch.
    rows: AtomicUsize,
}

/// The sampling side's handle of the worker.
#[derive(Debug)]
pub struct Worker {
    thread: Option<JoinHandle<()>>,
    held: Arc<WorkerSize>,
    messages: Sender<Message>,
    ticks: Arc<Ticks>,
    source: Arc<dyn Source>,
}

/// The sampling side's ends of the ways of full and of empty buffers.
pub type BufferEnds = (Sender<Message>, Receiver<Vec<Sample>>);

type Opened = io::Result<Arc<dyn Source>>;

impl Worker {
    /// Starts the thread and waits until its source is open.
    pub fn start(
        config: WorkerConfig,
        ticks: Arc<Ticks>,
        others: Arc<OtherRactors>,
    ) -> io::Result<(Worker, BufferEnds)> {
        let (to_sampling, empty) = bounded(2);
        // Unbounded: if the worker panics, what is queued is dropped, and with it
        // the reply that somebody may be waiting for. There are a few at most, as a full
        // buffer is sent only if an empty one has come back.
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
                earlier: ProfileBuilder::new(config.profile),
                profile: config.profile,
                limits: config.limits,
                collected: SampleSums::default(),
                requests: OpenRequests::default(),
                holders: match config.charges_holders {
                    true => HolderLog::new(Arc::clone(&config.timer.pace)),
                    false => HolderLog::default(),
                },
                unnamed: VecDeque::new(),
                watched: None,
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
        let buffers = (messages.clone(), empty);
        let worker = Worker {
            thread: Some(thread),
            held,
            messages,
            ticks,
            source,
        };
        Ok((worker, buffers))
    }

    /// Ends the rest of the source; only for the caller to whom `Ticks::set_holder` said
    /// so.
    pub fn arm(&self) {
        self.source.arm();
    }

    /// Begins a rest of the source, if nobody has the GVL.
    pub fn stop_ticks(&self, now: u64) {
        self.source.stop_ticks(now);
    }

    /// Lets the worker look for full buffers. Takes no lock.
    #[inline]
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// What has been collected, `samples` included.
    pub fn report(&self, samples: Vec<Sample>) -> Result<AwaitedReply, WorkerEnded> {
        self.ask(RequestKind::Report, samples)
    }

    /// What has been collected, `samples` included; collecting begins anew.
    pub fn take_all(&self, samples: Vec<Sample>) -> Result<AwaitedReply, WorkerEnded> {
        self.ask(RequestKind::TakeAll, samples)
    }

    /// Adds sums to the epoch's, in the background.
    pub fn add(&self, sums: SampleSums) {
        // Without the worker they are lost; `stop` says so.
        let _ = self.messages.send(Message::Sums(Box::new(sums)));
        self.wake();
    }

    /// The epoch is over, with these last `samples`; [`Worker::add_epoch`] follows.
    pub fn end_epoch(&self, samples: Vec<Sample>) {
        // Without the worker it is lost; `stop` says so.
        let _ = self.messages.send(Message::EpochOver(samples));
        self.wake();
    }

    /// Adds the epoch that is over to the profile.
    pub fn add_epoch(&self, epoch: NamedEpoch) {
        let _ = self.messages.send(Message::EpochNamed(Box::new(epoch)));
        self.wake();
    }

    /// Somebody watches: this is new.
    pub fn tell(&self, news: News) {
        let _ = self.messages.send(Message::News(Box::new(news)));
        self.wake();
    }

    /// Nobody watches any more.
    pub fn end_watch(&self) {
        let _ = self.messages.send(Message::Unwatched);
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

    /// Rows of summed samples of the present epoch.
    #[inline]
    pub fn epoch_rows(&self) -> usize {
        self.held.rows.load(Relaxed)
    }

    /// What has been collected, `samples` included; the worker ends.
    pub fn stop(&mut self, samples: Vec<Sample>) -> Result<AwaitedReply, WorkerEnded> {
        let reply = self.ask(RequestKind::Stop, samples)?;
        Ok(reply.with_end_of(self.thread.take()))
    }

    /// The shared ticks.
    pub fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The shared ticks, to keep.
    pub fn shared_ticks(&self) -> Arc<Ticks> {
        Arc::clone(&self.ticks)
    }

    fn ask(&self, kind: RequestKind, samples: Vec<Sample>) -> Result<AwaitedReply, WorkerEnded> {
        let (reply, replies) = bounded(1);
        let request = Request {
            samples,
            reply,
            kind,
        };
        let sent = self.messages.send(Message::Ask(request));
        sent.map_err(|_| WorkerEnded)?;
        self.wake();
        Ok(AwaitedReply::new(replies))
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
    profile: ProfileLimits,
    limits: SumLimits,
    collected: SampleSums,
    /// Samples whose requests go on.
    requests: OpenRequests,
    /// Who had the GVL lately, for requests that have waited for it.
    holders: HolderLog,
    /// What epochs have collected that are over, and whose frames have no names yet.
    unnamed: VecDeque<SampleSums>,
    /// There while somebody watches.
    watched: Option<Box<SharedFeed>>,
    emptied: Sender<Vec<Sample>>,
    messages: Receiver<Message>,
}

impl WorkerMain {
    fn run(&mut self, timer: TimerConfig, ticks: Arc<Ticks>, opened: &Sender<Opened>) {
        ask_for_short_slices();
        let _ = self
            .emptied
            .try_send(Vec::with_capacity(crate::collect::buffer::BUFFER_SAMPLES));
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
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Samples(samples) => self.collect(samples),
                Message::EpochOver(samples) => {
                    self.add(&samples);
                    // Their nodes go with the epoch.
                    self.let_requests_go();
                    self.holders.clear();
                    self.unnamed.push_back(std::mem::take(&mut self.collected));
                    if let Some(watched) = &mut self.watched {
                        watched.end_epoch();
                    }
                }
                Message::EpochNamed(epoch) => {
                    if let Some(watched) = &mut self.watched {
                        watched.add_epoch(&epoch.nodes, &epoch.names);
                    }
                    let collected = self.unnamed.pop_front().unwrap_or_default();
                    self.earlier.add(&epoch.nodes, &epoch.names, collected);
                }
                Message::Sums(sums) => {
                    if let Some(watched) = &mut self.watched {
                        watched.add_sums(&sums);
                    }
                    self.collected.merge(*sums, self.limits);
                }
                Message::News(news) => self.take_news(*news),
                Message::Unwatched => self.watched = None,
                Message::Ask(request) => {
                    self.add(&request.samples);
                    let reply = self.reply(request.kind);
                    self.tell_what_is_held();
                    let _ = request.reply.send(reply);
                    if request.kind == RequestKind::Stop {
                        return false;
                    }
                }
            }
            self.tell_what_is_held();
        }
        true
    }

    /// Whoever watches sees what is collected, too.
    fn add(&mut self, samples: &[Sample]) {
        for sample in samples {
            let (collected, limits) = (&mut self.collected, self.limits);
            let mut put = |it: &Sample| collected.add_one(it, limits);
            self.requests.take(sample, &mut put);
            match sample.request_news() {
                None => self.holders.note(sample),
                Some(RequestNews::Waited { since_ns }) => {
                    let requests = &mut self.requests;
                    let charge = |it: Sample| requests.take(&it, &mut put);
                    self.holders.each_of_wait(sample, since_ns, charge);
                }
                Some(news) => self.tend_kept(sample.request, news),
            }
        }
        if let Some(watched) = &mut self.watched {
            watched.add(samples);
        }
    }

    /// After `news` of `request`: its rows are as all others if there are too many, or if it is one of the
    /// slowest no more.
    fn tend_kept(&mut self, request: RequestNumber, news: RequestNews) {
        let goes = match news {
            RequestNews::LetGo => true,
            RequestNews::Waited { .. } => false,
            RequestNews::Ended { is_kept, .. } => is_kept && !self.has_room_for(request),
        };
        if !goes {
            return;
        }
        self.requests.forget(request);
        let limits = self.limits;
        let epochs = self.unnamed.iter_mut().chain([&mut self.collected]);
        epochs.for_each(|it| it.let_go(request, limits));
        self.earlier.let_go(request);
    }

    fn has_room_for(&self, request: RequestNumber) -> bool {
        let unnamed = self.unnamed.iter().map(|it| it.kept.rows());
        let kept = &self.collected.kept;
        let rows = kept.rows() + self.earlier.kept_rows() + unnamed.sum::<usize>();
        rows <= KEPT_ROWS && kept.rows_of(request) <= ROWS_OF_ONE
    }

    /// All samples that wait for the end of a request are collected as they are.
    fn let_requests_go(&mut self) {
        let (collected, limits) = (&mut self.collected, self.limits);
        self.requests.let_go(|it| collected.add_one(it, limits));
    }

    /// What is collected, and what waits.
    fn all_collected(&self) -> SampleSums {
        let mut all = self.collected.clone();
        self.requests.each(|it| all.add_one(it, self.limits));
        all
    }

    fn take_news(&mut self, mut news: News) {
        if news.is_first {
            let feed = SharedFeed::new(
                self.profile.nodes,
                &self.earlier,
                &self.unnamed,
                &self.all_collected(),
            );
            self.watched = Some(Box::new(feed));
        }
        let samples = std::mem::take(&mut news.samples);
        self.collect(samples);
        if let Some(watched) = &mut self.watched {
            watched.tell(news);
        }
    }

    fn reply(&mut self, kind: RequestKind) -> Reply {
        if let Some(watched) = self
            .watched
            .as_mut()
            .filter(|_| kind == RequestKind::TakeAll)
        {
            watched.clear();
        }
        match kind {
            RequestKind::Report => Reply {
                collected: self.all_collected(),
                earlier: self.earlier.clone(),
            },
            RequestKind::TakeAll | RequestKind::Stop => {
                self.let_requests_go();
                self.requests.forget_all();
                self.holders.clear();
                let earlier = ProfileBuilder::new(self.profile);
                Reply {
                    collected: std::mem::take(&mut self.collected),
                    earlier: std::mem::replace(&mut self.earlier, earlier),
                }
            }
        }
    }

    fn collect(&mut self, mut samples: Vec<Sample>) {
        self.add(&samples);
        samples.clear();
        samples.shrink_to(crate::collect::buffer::BUFFER_SAMPLES);
        let _ = self.emptied.try_send(samples);
    }

    fn tell_what_is_held(&self) {
        let TreeSize { nodes, frames } = self.earlier.size();
        let unnamed = self.unnamed.iter().map(SampleSums::memory);
        let bytes = self.collected.memory()
            + self.requests.memory()
            + self.holders.memory()
            + self.earlier.memory()
            + unnamed.sum::<usize>();
        self.held.bytes.store(bytes, Relaxed);
        self.held.nodes.store(nodes, Relaxed);
        self.held.frames.store(frames, Relaxed);
        self.held.rows.store(self.collected.sums.len(), Relaxed);
    }
}
