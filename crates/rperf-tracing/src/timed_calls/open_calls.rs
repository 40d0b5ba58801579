//! The open calls of each fiber with their begins: they follow the stack as the tracer has it after
//! an event, and so need nothing of the events themselves. For the time line and for how long calls
//! take, and only there if one of them was asked for. In hooks, under the GVL.

use crate::fiber::Open;

/// The open calls of all fibers.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    fibers: Vec<Followed>,
}

/// A call with its begin and end, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedCall {
    pub(crate) node: u32,
    pub(crate) thread: u32,
    pub(crate) fiber: u32,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

/// The open frames of a fiber.
#[derive(Debug, Default)]
struct Followed {
    stack: Vec<Begun>,
    thread: u32,
    /// When the last event in it came.
    last: u64,
}

/// An open frame.
#[derive(Debug, Clone, Copy)]
struct Begun {
    node: u32,
    depth: u32,
    began: u64,
    /// Whether an event told of its begin.
    is_told: bool,
}

impl OpenCalls {
    /// The stack of a fiber is this one, after an event in it; `end` gets the calls that have
    /// ended.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        fiber: usize,
        thread: u32,
        stack: &[Open],
        now: u64,
        end: impl FnMut(TimedCall),
    ) {
        if self.fibers.len() <= fiber {
            self.fibers.resize_with(fiber + 1, Followed::default);
        }
        let followed = &mut self.fibers[fiber];
        let mut same = followed.stack.len().min(stack.len());
        // Events change the top only.
        while same > 0 && !followed.stack[same - 1].is(&stack[same - 1]) {
            same -= 1;
        }
        // Of another fiber, or taken anew: what was there had gone before.
        let is_another = same == 0 && !stack.is_empty();
        let ended = if is_another { followed.last } else { now };
        followed.end(fiber, same, ended, end);
        let new = stack[same..].iter();
        followed.stack.extend(new.map(|open| Begun::of(open, now)));
        (followed.last, followed.thread) = (now, thread);
    }

    /// A fiber is gone, and the next one has its place.
    pub(crate) fn end_fiber(&mut self, fiber: usize, end: impl FnMut(TimedCall)) {
        if let Some(followed) = self.fibers.get_mut(fiber) {
            followed.end(fiber, 0, followed.last, end);
        }
    }

    /// The open calls of a fiber are followed up to this moment.
    pub(crate) fn pause_fiber(&mut self, fiber: usize, at: u64, end: impl FnMut(TimedCall)) {
        if let Some(followed) = self.fibers.get_mut(fiber) {
            followed.end(fiber, 0, at, end);
        }
    }

    /// The calls that are open, as if they ended `now`.
    pub(crate) fn iter(&self, now: u64) -> impl Iterator<Item = TimedCall> {
        let fibers = self.fibers.iter().enumerate();
        fibers.flat_map(move |(fiber, followed)| {
            let told = followed.stack.iter().filter(|it| it.is_told);
            told.map(move |it| it.ended(followed.thread, fiber, now))
        })
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let frames = self.fibers.iter().map(|it| it.stack.capacity());
        frames.sum::<usize>() * size_of::<Begun>()
    }
}

impl TimedCall {
    pub(crate) fn ticks(&self) -> u64 {
        self.ended.saturating_sub(self.began)
    }
}

impl Followed {
    /// The calls above the first `left` have ended.
    #[inline]
    fn end(&mut self, fiber: usize, left: usize, ended: u64, mut end: impl FnMut(TimedCall)) {
        let thread = self.thread;
        for begun in self.stack.drain(left..).rev().filter(|it| it.is_told) {
            end(begun.ended(thread, fiber, ended));
        }
    }
}

impl Begun {
    fn of(open: &Open, now: u64) -> Self {
        Self {
            node: open.node,
            depth: open.depth,
            began: now,
            is_told: open.is_told(),
        }
    }

    fn is(&self, open: &Open) -> bool {
        (self.node, self.depth) == (open.node, open.depth)
    }

    fn ended(self, thread: u32, fiber: usize, ended: u64) -> TimedCall {
        TimedCall {
            node: self.node,
            thread,
            fiber: fiber as u32,
            began: self.began,
            ended,
        }
    }
}
