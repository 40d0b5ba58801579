//! A made-up VM: its threads, fibers and frames, and the events by which it tells a tracer of
//! them, as Ruby does. It compares the tracer's stack with its own at each call.

mod frames;
mod pauses;

use crate::{Call, ThreadNumber, TraceLevel, TraceVm, TracedFrame, Tracer};
use frames::{Frame, Kind, View};
use rperf_model::State;
use rperf_vm::{FrameWord, GcEvent};
use std::collections::BTreeMap;

/// What the program does next.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    Method(usize),
    /// A block of that method.
    Block(usize),
    /// A method that a block defines.
    BlockMethod(usize),
    /// The block of such a method, called as a block.
    DefiningBlock(usize),
    C(usize),
    /// The body of a file: no event tells of it.
    Body(usize),
    /// A frame that backtraces don't show, without events.
    Hidden,
    Return,
    TailCall(usize),
    /// An ensure clause of the topmost frame, if that is Ruby: no event tells of it.
    Clause,
    /// A stack overflow: so many frames go without a word, and a rescue clause of the next Ruby
    /// frame begins.
    Overflow(usize),
    /// The topmost method or block rescues an exception of its own, and `retry` begins it anew.
    Retry,
    /// An exception unwinds so many frames.
    Unwind(usize),
    SwitchFiber(usize),
    /// The present fiber ends, if it isn't the thread's own; the next one has its place.
    EndFiber,
    SwitchThread(usize),
    /// Another thread wants to run, if there is such.
    Ready(usize),
    /// A piece of a collection: some time of marking, some of sweeping.
    Collect(u64, u64),
    /// Nothing counts, up to the next `Resume`.
    Pause,
    Resume,
    /// All threads are brought up to now, as for a profile.
    Flush,
}

#[derive(Debug, Default)]
struct Thread {
    /// The first is the thread's own.
    fibers: Vec<Vec<Frame>>,
    fiber: usize,
    number: Option<ThreadNumber>,
    /// When it has been without the GVL from, and ready to run from; 0 if it isn't.
    away_since: u64,
    ready: u64,
}

/// The VM, and the tracer that it tells.
#[derive(Debug)]
pub struct Machine {
    pub level: TraceLevel,
    threads: Vec<Thread>,
    thread: usize,
    pub tracer: Option<Tracer>,
    pub now: u64,
    /// Events have the time as it is noted once in so long; pauses and profiles read it.
    pub note_every: u64,
    /// What had counted as each traced thread was first seen.
    pub begun: Vec<u64>,
    /// Since when nothing counts, and how long that has been before.
    paused_since: Option<u64>,
    paused: u64,
    /// Time in states other than running, of all traced threads.
    pub states: BTreeMap<State, u64>,
    /// Calls that were told, by the words from the root.
    pub calls: BTreeMap<Vec<usize>, i64>,
    /// Stacks that weren't equal: the VM's, and the tracer's.
    pub unequal: Vec<(Vec<FrameWord>, Vec<FrameWord>)>,
}

/// The object of a fiber.
fn object(thread: usize, fiber: usize) -> usize {
    1000 * (thread + 1) + fiber
}

impl Machine {
    pub fn new(level: TraceLevel) -> Self {
        let main = Thread {
            fibers: vec![Vec::new()],
            ..Thread::default()
        };
        Machine {
            level,
            threads: vec![main],
            thread: 0,
            tracer: None,
            now: 0,
            note_every: 1,
            begun: Vec::new(),
            paused_since: None,
            paused: 0,
            states: BTreeMap::new(),
            calls: BTreeMap::new(),
            unequal: Vec::new(),
        }
    }

    /// Tracing begins, in whatever runs just now.
    pub fn begin(&mut self, mut tracer: Tracer) {
        self.now = 0;
        let present = self.thread;
        // The present thread is the first.
        let order =
            std::iter::once(present).chain((0..self.threads.len()).filter(|it| *it != present));
        for thread in order.collect::<Vec<_>>() {
            let number = tracer.announce(self.now);
            self.begun.push(self.now);
            let state = &mut self.threads[thread];
            state.number = Some(number);
            (state.away_since, state.ready) = (self.now, 0);
            let view = View(state.fibers[state.fiber].clone());
            let mut frames = vec![0; 1000];
            let found = view.frames(&mut frames);
            view.mark_blocks(&mut frames[..found]);
            let depth = (thread == present).then(|| view.depth());
            tracer.adopt_stack(&view, number, &frames[..found], depth);
        }
        tracer.resumed(ThreadNumber(0), 0, self.now);
        tracer.name_fiber(object(present, self.threads[present].fiber));
        self.tracer = Some(tracer);
    }

    fn stack(&mut self) -> &mut Vec<Frame> {
        let thread = &mut self.threads[self.thread];
        &mut thread.fibers[thread.fiber]
    }

    /// Tells of a call or of what else counts.
    fn tell(&mut self, event: impl FnOnce(&mut Tracer, &View, u64)) {
        match self.paused_since {
            Some(_) => self.now += 3,
            None => self.tell_always(event),
        }
    }

    /// The time that an event has.
    fn noted(&self) -> u64 {
        self.now / self.note_every * self.note_every
    }

    fn tell_always(&mut self, event: impl FnOnce(&mut Tracer, &View, u64)) {
        self.now += 3;
        let view = View(self.stack().clone());
        let now = self.noted();
        if let Some(tracer) = &mut self.tracer {
            event(tracer, &view, now);
            tracer.follow_calls(now);
        }
    }

    /// Exchanges two fibers' places, as a compaction can.
    pub fn swap_fibers(&mut self, one: usize, other: usize) {
        self.threads[self.thread].fibers.swap(one, other);
    }

    pub fn act(&mut self, act: Act) {
        self.now += 5;
        if self.stack().len() > 200 {
            return self.pop();
        }
        match act {
            Act::Method(number) => self.push(Frame::new(Kind::Method, number)),
            Act::Block(number) => self.push(Frame::new(Kind::Block, number)),
            Act::BlockMethod(number) => self.push(Frame::new(Kind::BlockMethod, number)),
            Act::DefiningBlock(number) => self.push(Frame {
                kind: Kind::Block,
                ..Frame::new(Kind::BlockMethod, number)
            }),
            Act::C(number) => self.push(Frame::new(Kind::C, number)),
            Act::Body(number) => self.push(Frame::new(Kind::Body, number)),
            Act::Hidden => self.push(Frame::new(Kind::Hidden, 0)),
            Act::Return => self.pop(),
            Act::TailCall(number) => self.tail_call(Frame::new(Kind::Method, number)),
            Act::Clause => {
                if let Some(clause) = self.stack().last().and_then(|frame| frame.clause()) {
                    self.push(clause);
                }
            }
            Act::Overflow(frames) => self.overflow(frames),
            Act::Retry => self.retry(),
            Act::Unwind(frames) => (0..frames).for_each(|_| self.unwind()),
            Act::SwitchFiber(number) => self.switch_fiber(number),
            Act::EndFiber => self.end_fiber(),
            Act::SwitchThread(number) => self.switch_thread(number),
            Act::Ready(number) => self.ready(number),
            Act::Collect(marking, sweeping) => self.collect(marking, sweeping),
            Act::Pause => self.pause(),
            Act::Resume => self.resume(),
            Act::Flush => self.flush(),
        }
    }

    fn push(&mut self, mut frame: Frame) {
        // The first frame of a fiber looks as a new fiber does.
        frame.is_known = self.is_counting() && !self.stack().is_empty();
        let c_method = Call::C {
            owner: frame.word,
            method: 1,
        };
        match frame.kind {
            // Its frame comes after the event.
            Kind::C if self.level.c_methods => {
                self.tell(|tracer, vm, now| begin(tracer, vm, c_method, now));
                self.stack().push(frame);
                self.was_called();
            }
            Kind::Method | Kind::Block | Kind::BlockMethod => {
                self.stack().push(frame);
                let is_block = frame.kind == Kind::Block;
                let call = if is_block { Call::Block } else { Call::Method };
                self.tell(|tracer, vm, now| begin(tracer, vm, call, now));
                self.was_called();
                if frame.kind == Kind::BlockMethod {
                    self.tell(|tracer, vm, now| begin(tracer, vm, Call::Block, now));
                }
            }
            _ => self.stack().push(frame),
        }
    }

    /// The topmost frame was told just now.
    fn was_called(&mut self) {
        if !self.is_counting() {
            return;
        }
        let shown = self
            .stack()
            .iter()
            .filter(|frame| frame.kind != Kind::Hidden);
        let words: Vec<_> = shown.map(Frame::marked).collect();
        if let Some(tracer) = &self.tracer {
            let ours = tracer.stack_words();
            if ours != words {
                self.unequal.push((words.clone(), ours));
            }
            *self.calls.entry(words).or_default() += 1;
        }
    }

    fn pop(&mut self) {
        let Some(frame) = self.stack().last().copied() else {
            return;
        };
        let is_told_c = frame.kind == Kind::C && self.level.c_methods;
        if is_told_c {
            self.stack().pop();
        }
        self.tell_end(frame);
        if !is_told_c {
            self.stack().pop();
        }
    }

    /// An exception passes the topmost frame, which is still there at the event.
    fn unwind(&mut self) {
        if let Some(frame) = self.stack().last().copied() {
            self.tell_end(frame);
            self.stack().pop();
        }
    }

    fn tell_end(&mut self, frame: Frame) {
        let c_method = TracedFrame {
            word: frame.word,
            method: 1,
        };
        let level = self.level;
        if !level.timed {
            return;
        }
        match frame.kind {
            Kind::C if level.c_methods => {
                self.tell(|tracer, vm, now| tracer.leave(vm, Some(c_method), now));
            }
            Kind::Method | Kind::Block => self.tell(|tracer, vm, now| tracer.leave(vm, None, now)),
            Kind::BlockMethod => {
                self.tell(|tracer, vm, now| tracer.leave(vm, None, now));
                self.tell(|tracer, vm, now| tracer.leave(vm, None, now));
            }
            _ => {}
        }
    }

    fn tail_call(&mut self, frame: Frame) {
        let top = self.stack().last().copied();
        if let Some(top) = top.filter(|it| it.kind == Kind::Method) {
            // Of itself, it looks as `retry` does.
            if top.word != frame.word || !top.has_rescued {
                self.stack().pop();
                self.push(frame);
            }
        }
    }

    fn overflow(&mut self, frames: usize) {
        let left = self.stack().len().saturating_sub(frames);
        let stack = self.stack();
        stack.truncate(left);
        while stack.last().is_some_and(|frame| frame.clause().is_none()) {
            stack.pop();
        }
        let clause = stack.last().and_then(|frame| frame.clause());
        if let Some(frame) = stack.last_mut() {
            frame.has_rescued = true;
        }
        self.push(clause.unwrap_or(Frame::new(Kind::Body, 9)));
        if self.level.timed {
            self.tell(|tracer, vm, now| tracer.rescued(vm, now));
        }
    }

    fn retry(&mut self) {
        let Some(frame) = self.stack().last().copied() else {
            return;
        };
        let call = match frame.kind {
            Kind::Method => Call::Method,
            Kind::Block | Kind::BlockMethod => Call::Block,
            _ => return,
        };
        if let Some(clause) = frame
            .clause()
            .filter(|_| self.level.timed && frame.is_known)
        {
            if let Some(top) = self.stack().last_mut() {
                top.has_rescued = true;
            }
            self.stack().push(clause);
            self.tell(|tracer, vm, now| tracer.rescued(vm, now));
            self.stack().pop();
            self.tell(|tracer, vm, now| begin(tracer, vm, call, now));
        }
    }

    fn switch_fiber(&mut self, number: usize) {
        let thread = &mut self.threads[self.thread];
        if number == thread.fiber {
            return;
        }
        // When it goes on, the thread's own stack is taken from the VM.
        for frame in &mut thread.fibers[thread.fiber] {
            frame.is_known = false;
        }
        if thread.fibers.len() <= number {
            thread.fibers.resize_with(number + 1, Vec::new);
        }
        thread.fiber = number;
        let object = object(self.thread, number);
        self.tell_always(|tracer, vm, now| tracer.switched(vm, object, now));
    }

    fn end_fiber(&mut self) {
        let fiber = self.threads[self.thread].fiber;
        if fiber != 0 {
            self.stack().clear();
            self.switch_fiber(0);
        }
    }

    fn switch_thread(&mut self, number: usize) {
        if number == self.thread {
            return;
        }
        if let Some(thread) = self.threads[self.thread].number {
            self.tell_always(|tracer, _, now| tracer.suspended(thread, now));
            let now = self.now;
            let state = &mut self.threads[self.thread];
            (state.away_since, state.ready) = (now, 0);
        }
        while self.threads.len() <= number {
            let fibers = vec![Vec::new()];
            self.threads.push(Thread {
                fibers,
                ..Thread::default()
            });
        }
        self.thread = number;
        self.now += 7;
        let (now, noted, counted) = (self.now, self.noted(), self.counted());
        if let Some(tracer) = &mut self.tracer {
            let thread = &mut self.threads[number];
            let begun = &mut self.begun;
            let number = *thread.number.get_or_insert_with(|| {
                begun.push(counted);
                thread.away_since = now;
                tracer.announce_new(noted)
            });
            tracer.resumed(number, thread.ready, noted);
            let ready = match thread.ready {
                0 => now,
                ready => ready.max(thread.away_since),
            };
            thread.ready = 0;
            let away_since = thread.away_since;
            if self.is_counting() {
                self.add(State::GvlBlocked, ready - away_since);
                self.add(State::GvlWait, now - ready);
            }
        }
    }

    fn add(&mut self, state: State, time: u64) {
        *self.states.entry(state).or_default() += time;
    }

    fn ready(&mut self, number: usize) {
        let now = self.now;
        if number != self.thread
            && let Some(thread) = self.threads.get_mut(number)
            && thread.ready == 0
        {
            thread.ready = now;
        }
    }

    fn collect(&mut self, marking: u64, sweeping: u64) {
        self.tell(|tracer, _, now| tracer.collecting(GcEvent::Enter, true, now));
        self.now += marking;
        self.tell(|tracer, _, now| tracer.collecting(GcEvent::MarkEnd, false, now));
        self.now += sweeping;
        self.tell(|tracer, _, now| tracer.collecting(GcEvent::Exit, false, now));
        if self.is_counting() {
            // Each event takes some time.
            self.add(State::GcMarking, marking + 3);
            self.add(State::GcSweeping, sweeping + 3);
        }
    }

    pub fn flush(&mut self) {
        if let Some(mut tracer) = self.tracer.take() {
            tracer.flush(self.now, |thread| Some(self.ready_since(thread)));
            self.tracer = Some(tracer);
        }
    }

    /// The times in states as of now: those of threads that are still away are with them.
    pub fn states_so_far(&self) -> BTreeMap<State, u64> {
        let mut states = self.states.clone();
        let away = self.threads.iter().enumerate();
        let away = away.filter(|(number, it)| {
            self.is_counting() && *number != self.thread && it.number.is_some()
        });
        for (_, thread) in away {
            let ready = match thread.ready {
                0 => self.now,
                ready => ready.max(thread.away_since),
            };
            *states.entry(State::GvlBlocked).or_default() += ready - thread.away_since;
            *states.entry(State::GvlWait).or_default() += self.now - ready;
        }
        states.retain(|_, time| *time > 0);
        states
    }

    /// Since when a thread has been ready to run; 0 if it isn't.
    pub fn ready_since(&self, thread: ThreadNumber) -> u64 {
        let mut threads = self.threads.iter();
        let found = threads.find(|it| it.number == Some(thread));
        found.map_or(0, |thread| thread.ready)
    }
}

/// Tells of a call as the hooks do.
fn begin(tracer: &mut Tracer, vm: &impl TraceVm, call: Call, now: u64) {
    match tracer.level.timed {
        true => tracer.enter(vm, call, now),
        false => tracer.count(vm, call),
    }
}
