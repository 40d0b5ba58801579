//! What is recorded of the simulated threads.

use super::*;
use crate::collect::buffer::ActiveBuffer;
use crate::collect::sample::Sample;
use crate::recording::{Position, Recording, SampleStack};
use crossbeam_channel::bounded;
use rperf_model::NodeId;
use rperf_vm::{FrameWord, LastStack, Stack};

/// What is recorded of simulated threads, as a session does it; the test says at which
/// stack and with which labels.
pub struct Recorded {
    pub stack: u32,
    pub labels: LabelSet,
    pub recording: Recording,
    last: LastStack,
    pub samples: Vec<Row>,
    pub captures: u64,
}

/// A sample, with its stack and the number of its labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub stack: u32,
    pub labels: u32,
    pub thread: u32,
    pub state: State,
    pub values: Values,
}

impl Default for Recorded {
    fn default() -> Self {
        Self::at(0)
    }
}

impl Recorded {
    pub fn at(stack: u32) -> Self {
        // Nobody is at the other ends: samples stay in the buffer.
        let (full, empty) = (bounded(0).0, bounded(0).1);
        Self {
            stack,
            labels: LabelSet::empty(),
            recording: Recording::new(100, ActiveBuffer::new(full, empty)),
            last: LastStack::default(),
            samples: Vec::new(),
            captures: 0,
        }
    }

    /// Records `dues` of the thread at the present stack.
    pub fn record(&mut self, accounting: &mut Accounting, dues: Dues) {
        if dues.is_empty() {
            return;
        }
        let frames = [self.stack as FrameWord];
        let stack = dues.needs_stack().then_some(Stack {
            frames: &frames,
            lines: &[],
            cut: false,
        });
        self.captures += u64::from(stack.is_some());
        let position = Position {
            stack: stack.map(SampleStack::Frames),
            last: &mut self.last,
            labels: Some(&self.labels),
        };
        self.recording.record(0, accounting, dues, position);
        self.take_samples();
    }

    pub fn finish(&mut self, accounting: &mut Accounting, cpu: u64) {
        let dues = accounting.finish(Some(cpu));
        self.recording.finish(0, accounting, dues);
        self.take_samples();
    }

    fn take_samples(&mut self) {
        let tree = &self.recording.tree;
        let stack_of = |node: NodeId| {
            let node = tree.nodes()[node.0 as usize - 1];
            tree.frames()[node.frame as usize] as u32
        };
        let samples = self.recording.buffer.take().into_iter();
        let samples = samples.filter(|sample| *sample != Sample::thread_ended(sample.thread));
        self.samples.extend(samples.map(|sample| Row {
            stack: stack_of(sample.node),
            labels: sample.labels.0,
            thread: sample.thread,
            state: sample.state,
            values: sample.values(),
        }));
        assert_eq!(self.recording.counters.uncaptured, Values::default());
    }

    pub fn values(&self, keep: impl Fn(&Row) -> bool) -> Values {
        let mut sum = Values::default();
        let rows = self.samples.iter().filter(|row| keep(row));
        rows.for_each(|row| sum.add(row.values));
        sum
    }

    pub fn sum(&self, keep: impl Fn(&Row) -> bool) -> Times {
        self.values(keep).times
    }

    pub fn sum_of_thread(&self, seq: u32) -> Times {
        self.sum(|row| row.thread == seq)
    }

    pub fn unattributed(&self) -> Times {
        let mut sum = Times::default();
        let unattributed = self.recording.unattributed.iter();
        unattributed.for_each(|values| sum.add(values.times));
        sum
    }
}
