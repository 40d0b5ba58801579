//! What becomes of that which is due: its stack is interned, its labels get their
//! number, and it goes into the active buffer as a sample. Called by the session under
//! the GVL, in hooks too.

use crate::Values;
use crate::accounting::{Accounting, Dues, SamplePoint, UNATTRIBUTED};
use crate::collect::buffer::ActiveBuffer;
use crate::collect::packed_labels::with_op;
use crate::collect::sample::{RequestNews, Sample};
use crate::counters::SessionCounters;
use crate::tick_capture::TickLog;
use rperf_model::{LabelSetId, NodeId, State};
use rperf_vm::{
    CapturedTree, FiberWord, Interned, LabelSet, LabelTable, LastStack, RequestNumber, Stack,
};

/// The stack of a sample.
#[derive(Debug, Clone, Copy)]
pub enum SampleStack<'a> {
    /// The stack as the VM tells it.
    Frames(Stack<'a>),
    /// The node of the stack, which is known.
    Node(NodeId),
}

/// Where a thread is, as the bridge has found it.
#[derive(Debug)]
pub struct Position<'a> {
    /// Its stack; `None` if it couldn't be taken, or isn't needed ([`Dues::needs_stack`]).
    pub stack: Option<SampleStack<'a>>,
    /// Its stack at the last capture.
    pub last: &'a mut LastStack,
    /// Its label set, which gets its number if a sample is recorded.
    pub labels: Option<&'a LabelSet>,
}

/// The labels that were noted of a thread's fiber.
#[derive(Debug, Clone, Copy)]
pub struct NotedLabels<'a> {
    /// The fiber; 0 if it isn't known which.
    pub fiber: FiberWord,
    /// Its label set.
    pub set: Option<&'a LabelSet>,
}

impl NotedLabels<'_> {
    /// None, whatever the fiber.
    pub const NONE: NotedLabels<'static> = NotedLabels {
        fiber: FiberWord(0),
        set: None,
    };
}

/// The labels of `fiber`; `None` if they aren't noted.
fn labels_of<'a>(noted: &[NotedLabels<'a>], fiber: FiberWord) -> Option<NotedLabels<'a>> {
    let is_unknown = |fiber| fiber == FiberWord::default();
    let mut all = noted.iter().copied();
    let exact = all.clone().find(|it| it.fiber == fiber);
    exact.or_else(|| all.find(|it| is_unknown(fiber) || is_unknown(it.fiber)))
}

/// Where samples go.
pub(crate) trait Sink {
    /// Takes a sample. Returns whether the worker has got something to do.
    fn push(&mut self, sample: Sample) -> bool;
}

impl Sink for ActiveBuffer {
    #[inline]
    fn push(&mut self, sample: Sample) -> bool {
        ActiveBuffer::push(self, sample)
    }
}

/// The sampling side's tables, and the buffer that samples leave through.
#[derive(Debug)]
pub(crate) struct Recording<S = ActiveBuffer> {
    pub(crate) tree: CapturedTree,
    pub(crate) labels: LabelTable,
    pub(crate) buffer: S,
    pub(crate) counters: SessionCounters,
    /// The last sample of a thread that had the GVL, in ns; 0 for none. `None` if it isn't measured who had
    /// it while a request waited for it.
    last_held_ns: Option<u64>,
    /// Time of ended threads that never had a stack, by state.
    pub(crate) unattributed: [Values; State::ALL.len()],
}

impl<S: Sink> Recording<S> {
    /// An empty call tree of at most `node_cap` nodes; samples go into `buffer`.
    pub(crate) fn new(node_cap: usize, buffer: S) -> Self {
        Self {
            tree: CapturedTree::new(node_cap),
            labels: LabelTable::default(),
            buffer,
            counters: SessionCounters::default(),
            last_held_ns: None,
            unattributed: Default::default(),
        }
    }

    /// From now on the worker is told of the waits of requests for the GVL, and charges those who had it.
    pub(crate) fn tell_of_waits(&mut self) {
        self.last_held_ns = Some(0);
    }

    /// The call tree with all stacks so far; `empty` takes over.
    pub(crate) fn replace_tree(&mut self, empty: CapturedTree) -> CapturedTree {
        self.last_held_ns = self.last_held_ns.map(|_| 0);
        std::mem::replace(&mut self.tree, empty)
    }

    /// `thread`, in the request of `labels`, has waited for the GVL since then, up to now: what had it
    /// meanwhile gets the request's labels, if there was a sample. Returns whether the worker has got
    /// something to do.
    #[inline]
    pub(crate) fn wait_ended(&mut self, thread: u32, labels: &LabelSet, since_ns: u64) -> bool {
        let is_charged = self.last_held_ns.is_some_and(|last| last >= since_ns);
        is_charged && self.tell_of_wait(thread, labels, since_ns)
    }

    fn tell_of_wait(&mut self, thread: u32, labels: &LabelSet, since_ns: u64) -> bool {
        let number = self.labels.number(labels, 0);
        let news = RequestNews::Waited { since_ns };
        self.buffer.push(Sample {
            thread,
            labels: number,
            ..Sample::of_request(labels.request(), news)
        })
    }

    /// Records the `dues` of the thread of `accounting`, which is at `position`. Returns
    /// whether the worker has got something to do.
    pub(crate) fn record(
        &mut self,
        now: u64,
        accounting: &mut Accounting,
        dues: Dues,
        position: Position<'_>,
    ) -> bool {
        let Position {
            stack,
            last,
            labels,
        } = position;
        let stack = stack.filter(|_| dues.needs_stack());
        let here = stack.map(|stack| match stack {
            SampleStack::Frames(stack) => self.intern(stack, last),
            SampleStack::Node(node) => Interned {
                node,
                truncated: false,
            },
        });
        let mut is_handed_over = false;
        for due in dues {
            let (state, values) = (due.state, due.values);
            let known = accounting
                .last_point_of(&due)
                .filter(|_| due.is_remainder());
            let new = |it: &mut Self| {
                let point = it.point(here, labels, values)?;
                Some(SamplePoint {
                    gc: due.gc,
                    ..point
                })
            };
            let Some(point) = known.or_else(|| new(self)) else {
                continue;
            };
            is_handed_over |= self.push(now, point, accounting.seq(), state, values);
            if let Some(last) = &mut self.last_held_ns
                && state.has_gvl()
                && values.count > 0
            {
                *last = now;
            }
            if known.is_none() && accounting.recorded_at(point, &due) {
                is_handed_over |= self.adopt_unattributed(now, point, state);
            }
        }
        is_handed_over
    }

    /// Makes samples of what is in the `log`, all of it from the thread of `accounting`,
    /// and empties it. Returns of how many ticks, and whether the worker has got
    /// something to do.
    ///
    /// `labels` are those of the fibers that have run. A tick that came in another one makes no
    /// sample: its time waits for the next one.
    pub(crate) fn replay(
        &mut self,
        log: &mut TickLog,
        accounting: &mut Accounting,
        last: &mut LastStack,
        labels: &[NotedLabels<'_>],
    ) -> (u64, bool) {
        let (mut ticks, mut is_handed_over) = (0, false);
        log.drain(|tick| {
            let Some(labels) = labels_of(labels, tick.fiber) else {
                return;
            };
            ticks += tick.ticks;
            let dues = accounting.replay(tick.ticks, tick.times);
            let position = Position {
                stack: Some(SampleStack::Frames(tick.stack)),
                last,
                labels: labels.set,
            };
            is_handed_over |= self.record(tick.times.tick_ns, accounting, dues, position);
        });
        (ticks, is_handed_over)
    }

    /// Records the `dues` of the thread of `accounting`, which has ended: at its last
    /// points, or else they are unattributed. Returns whether the worker has got something
    /// to do.
    pub(crate) fn finish(&mut self, now: u64, accounting: &Accounting, dues: Dues) -> bool {
        let mut is_handed_over = false;
        for due in dues {
            let known = accounting.last_point_of(&due);
            match known.or_else(|| accounting.last_point(due.state)) {
                Some(point) => {
                    let seq = accounting.seq();
                    is_handed_over |= self.push(now, point, seq, due.state, due.values);
                }
                None => self.unattributed[due.state as usize].add(due.values),
            }
        }
        if accounting.was_sampled() {
            is_handed_over |= self.buffer.push(Sample::thread_ended(accounting.seq()));
        }
        is_handed_over
    }

    /// Tells `news` of a request, after the samples that were recorded so far. Returns whether the
    /// worker has got something to do.
    pub(crate) fn tell_of_request(&mut self, request: RequestNumber, news: RequestNews) -> bool {
        self.buffer.push(Sample::of_request(request, news))
    }

    /// Records what no thread is left to record: the unattributed time. Returns whether the
    /// worker has got something to do.
    pub(crate) fn flush_unattributed(&mut self, now: u64) -> bool {
        let point = SamplePoint {
            node: NodeId::ROOT,
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            gc: None,
        };
        let mut is_handed_over = false;
        for state in State::ALL {
            is_handed_over |= self.push_unattributed(now, point, state);
        }
        is_handed_over
    }

    #[inline]
    pub(crate) fn intern(&mut self, stack: Stack<'_>, last: &mut LastStack) -> Interned {
        let interned = self.tree.intern(stack.frames, stack.lines, last);
        Interned {
            truncated: interned.truncated || stack.cut,
            ..interned
        }
    }

    /// The point of a sample that was taken `here`. Without a stack the sample is lost,
    /// and counted.
    fn point(
        &mut self,
        here: Option<Interned>,
        labels: Option<&LabelSet>,
        values: Values,
    ) -> Option<SamplePoint> {
        let Some(Interned { node, truncated }) = here else {
            self.counters.uncaptured.add(values);
            return None;
        };
        // A sample may stand for no tick, but is one.
        let count = values.count.max(1);
        if truncated {
            self.counters.truncated += count;
        }
        Some(SamplePoint {
            node,
            labels: labels.map_or(LabelSetId::default(), |set| {
                with_op(self.labels.number(set, count), set.op())
            }),
            request: labels.map_or(RequestNumber::NONE, LabelSet::request),
            gc: None,
        })
    }

    /// A thread's first sample in `state` was recorded at `point`: the unattributed time of
    /// that state goes there too. Short threads of one kind tend to come in numbers, and
    /// the few that are caught alive stand for the others.
    fn adopt_unattributed(&mut self, now: u64, point: SamplePoint, state: State) -> bool {
        // Whose labels they had isn't known.
        let unlabelled = SamplePoint {
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            gc: None,
            ..point
        };
        self.push_unattributed(now, unlabelled, state)
    }

    fn push_unattributed(&mut self, now: u64, point: SamplePoint, state: State) -> bool {
        let values = std::mem::take(&mut self.unattributed[state as usize]);
        !values.is_zero() && self.push(now, point, UNATTRIBUTED, state, values)
    }

    #[inline]
    pub(crate) fn push(
        &mut self,
        now: u64,
        point: SamplePoint,
        thread: u32,
        state: State,
        values: Values,
    ) -> bool {
        self.buffer.push(Sample {
            time_ns: now,
            times: values.times,
            node: point.node,
            thread,
            labels: point.labels,
            request: point.request,
            state,
            gc: point.gc,
            count: values.count.min(u64::from(u16::MAX)) as u16,
        })
    }
}
