//! The stacks that the signal handler has taken and that no sample is made of yet.
//! Writer and reader are the same thread, the one with the GVL: the reader keeps the
//! handler off while it works, so there is no protocol between them.

use super::stack_buffer::StackBuffer;
use rperf_vm::Waits;
use rperf_vm::{FiberWord, FrameWord, Stack};

/// Words of a log: 1 MB.
const WORDS: usize = 1 << 17;

/// Divides a log's room: once such a part is in use, somebody should empty the log. The next
/// collection has to look at all of it.
const FILLING_PART: usize = 4;

/// Words of a record before its frames.
const HEADER: usize = 7;

/// In the word of the ticks, above their number: how many threads waited, and whether that is known.
const WAITING: u32 = 24;
const KNOWS_WAITS: u64 = 1 << 63;

/// Equal stacks that one record stands for at most: a sample's count has 16 bits.
const MAX_TICKS: u64 = u16::MAX as u64;

/// In a record's first word: frames at the root may be missing.
const CUT: u64 = 1 << 63;

/// When a stack was taken. Times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickTimes {
    /// The tick, on the monotonic clock.
    pub tick_ns: u64,
    /// The handler's run, on the monotonic clock.
    pub now_ns: u64,
    /// The thread's CPU clock then.
    pub cpu_ns: u64,
    /// The waits for the GVL up to the tick; `None` if they aren't known.
    pub waits: Option<Waits>,
}

/// A stack from the log.
#[derive(Debug, Clone, Copy)]
pub struct LoggedTick<'a> {
    /// The stack.
    pub stack: Stack<'a>,
    /// Ticks in a row that found this stack.
    pub ticks: u64,
    /// The times of the last of these ticks.
    pub times: TickTimes,
    /// The fiber whose stack it is.
    pub fiber: FiberWord,
}

/// The stacks taken at ticks, in the order of time. A record holds the frames that
/// differ from the stack before it, seen from the root; the log's first one holds
/// all of its stack.
#[derive(Debug)]
pub struct TickLog {
    /// Never longer than `room`, which is allocated: the handler must not allocate.
    words: Vec<u64>,
    room: usize,
    /// The stack of the last record.
    last: StackBuffer,
    /// Where the last record begins, if there is one.
    last_record: Option<usize>,
    /// The stack of the record that is being read.
    read: StackBuffer,
    with_lines: bool,
    /// Stacks equal to the one before it share its record.
    merges: bool,
}

impl TickLog {
    /// An empty log for stacks of up to `max_depth` frames. `merges`: ticks in a row
    /// that find the same stack become one sample of several counts.
    pub fn new(max_depth: usize, with_lines: bool, merges: bool) -> Self {
        Self::with_room(WORDS, max_depth, with_lines, merges)
    }

    /// An empty log, as [`TickLog::new`] makes it, with room for so many words of 8 bytes.
    pub fn with_room(room: usize, max_depth: usize, with_lines: bool, merges: bool) -> Self {
        Self {
            words: Vec::with_capacity(room),
            room,
            last: StackBuffer::new(max_depth, with_lines),
            last_record: None,
            read: StackBuffer::new(max_depth, with_lines),
            with_lines,
            merges,
        }
    }

    /// Whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether it should be emptied soon.
    pub fn is_filling(&self) -> bool {
        self.words.len() >= self.room / FILLING_PART
    }

    /// How many frames from the root `stack` shares with the last one: those are in
    /// the log already. Async-signal-safe.
    #[inline]
    pub fn shared_with(&self, stack: Stack<'_>) -> usize {
        self.last.shared_with(stack)
    }

    /// Adds a stack of `fiber`'s, of which `shared` frames are in the log already. Returns
    /// false if there is no room for it. Async-signal-safe.
    pub fn push(
        &mut self,
        stack: Stack<'_>,
        shared: usize,
        times: TickTimes,
        fiber: FiberWord,
    ) -> bool {
        let depth = stack.frames.len();
        let new = depth - shared.min(depth);
        let is_equal = new == 0 && depth == self.last.stack().frames.len();
        if is_equal && self.repeat(times, fiber) {
            return true;
        }
        let needed = HEADER + new + words_for_lines(new, self.with_lines);
        let has_room =
            self.words.len() + needed <= self.room && self.last.has_room(depth - new, new);
        if !has_room {
            return false;
        }
        self.last_record = Some(self.words.len());
        let cut = if stack.cut { CUT } else { 0 };
        let header = [
            cut | (new as u64) << 32 | (depth - new) as u64,
            1 | waiting(times.waits),
            times.tick_ns,
            times.now_ns,
            times.cpu_ns,
            times.waits.map_or(0, |waits| waits.ns),
            fiber.0 as u64,
        ];
        self.words.extend_from_slice(&header);
        let frames = &stack.frames[..new];
        self.words.extend(frames.iter().map(|&frame| frame as u64));
        let lines = stack.lines.get(..new).unwrap_or_default();
        if self.with_lines {
            self.words.extend(lines.chunks(2).map(|pair| {
                let second = pair.get(1).copied().unwrap_or(0);
                u64::from(pair[0]) | u64::from(second) << 32
            }));
        }
        let (frames, lines) = (frames.iter().copied(), lines.iter().copied());
        self.last.replace_top(depth - new, new, frames, lines);
        true
    }

    /// Adds a tick to the last record, if it can take it. Returns whether it could.
    fn repeat(&mut self, times: TickTimes, fiber: FiberWord) -> bool {
        let Some(at) = self.last_record.filter(|_| self.merges) else {
            return false;
        };
        let words = self.words.get_mut(at + 1..at + HEADER);
        let Some([ticks, tick_ns, now_ns, cpu_ns, waited_ns, of_fiber]) = words else {
            return false;
        };
        let is_full = *ticks & MAX_TICKS == MAX_TICKS;
        if is_full || *of_fiber != fiber.0 as u64 {
            return false;
        }
        *ticks = ((*ticks & MAX_TICKS) + 1) | waiting(times.waits);
        (*tick_ns, *now_ns, *cpu_ns) = (times.tick_ns, times.now_ns, times.cpu_ns);
        *waited_ns = times.waits.map_or(0, |waits| waits.ns);
        true
    }

    /// The tick of the last record, 0 if there is none.
    pub fn last_tick(&self) -> u64 {
        let word = self.last_record.and_then(|at| self.words.get(at + 2));
        word.copied().unwrap_or(0)
    }

    /// All frames in it, for the garbage collector. Some come several times.
    pub fn frames(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let record = Record::at(&self.words, at, self.with_lines)?;
            at = record.end;
            Some(record.frames)
        })
        .flatten()
        .map(|&word| word as FrameWord)
    }

    /// Hands out everything in it, in the order of time, and empties it.
    pub fn drain(&mut self, mut take: impl FnMut(LoggedTick<'_>)) {
        let mut at = 0;
        while let Some(record) = Record::at(&self.words, at, self.with_lines) {
            at = record.end;
            let frames = record.frames.iter().map(|&word| word as FrameWord);
            let pairs = record.lines.iter();
            let lines = pairs.flat_map(|&pair| [pair as u32, (pair >> 32) as u32]);
            let new = record.frames.len();
            self.read.replace_top(record.shared, new, frames, lines);
            take(LoggedTick {
                stack: Stack {
                    cut: record.cut,
                    ..self.read.stack()
                },
                ticks: record.ticks,
                times: record.times,
                fiber: record.fiber,
            });
        }
        self.clear();
    }

    /// Throws everything away.
    pub fn clear(&mut self) {
        self.words.clear();
        self.last_record = None;
        self.last.clear();
        self.read.clear();
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.last.memory() + self.read.memory()
    }
}

/// What the word of the ticks has of `waits`.
fn waiting(waits: Option<Waits>) -> u64 {
    waits.map_or(0, |waits| KNOWS_WAITS | u64::from(waits.threads) << WAITING)
}

/// Words that the lines of so many frames take.
fn words_for_lines(frames: usize, with_lines: bool) -> usize {
    if with_lines { frames.div_ceil(2) } else { 0 }
}

/// A record as it lies in the log.
struct Record<'a> {
    cut: bool,
    /// Frames that it shares, from the root, with the record before it.
    shared: usize,
    ticks: u64,
    times: TickTimes,
    fiber: FiberWord,
    /// The others, leaf first.
    frames: &'a [u64],
    /// Their lines, two in a word.
    lines: &'a [u64],
    /// Where the next record begins.
    end: usize,
}

impl Record<'_> {
    fn at(words: &[u64], at: usize, with_lines: bool) -> Option<Record<'_>> {
        let header = words.get(at..at + HEADER)?;
        let &[sizes, ticks, tick_ns, now_ns, cpu_ns, waited_ns, fiber] = header else {
            return None;
        };
        let new = (sizes & !CUT) as usize >> 32;
        let frames = at + HEADER;
        let lines = frames + new;
        let end = lines + words_for_lines(new, with_lines);
        Some(Record {
            cut: sizes & CUT != 0,
            shared: sizes as u32 as usize,
            ticks: ticks & MAX_TICKS,
            times: TickTimes {
                tick_ns,
                now_ns,
                cpu_ns,
                waits: (ticks & KNOWS_WAITS != 0).then_some(Waits {
                    ns: waited_ns,
                    threads: (ticks & !KNOWS_WAITS).wrapping_shr(WAITING) as u32,
                }),
            },
            fiber: FiberWord(fiber as usize),
            frames: words.get(frames..lines)?,
            lines: words.get(lines..end)?,
            end,
        })
    }
}

#[cfg(test)]
mod tests;
