//! The sampling side of the double buffer. Called under the GVL, in hooks too:
//! it takes no lock, and allocates only when the worker has fallen behind.

use crate::Values;
use crate::collect::messages::Message;
use crate::collect::sample::Sample;
use crossbeam_channel::{Receiver, Sender};

/// Samples in a buffer before it is handed over. At 1000 Hz with one busy thread
/// a buffer lasts 4 s, so the worker wakes up rarely.
pub const BUFFER_SAMPLES: usize = 4096;
/// Samples that the active buffer holds at most while the worker is behind.
pub const BUFFER_CAP: usize = 16 * BUFFER_SAMPLES;

/// The buffer being filled, and the way to the worker and back.
#[derive(Debug)]
pub struct ActiveBuffer {
    samples: Vec<Sample>,
    full: Sender<Message>,
    empty: Receiver<Vec<Sample>>,
    dropped: Values,
}

impl ActiveBuffer {
    /// A buffer that hands over through `full` and gets buffers back from `empty`.
    pub fn new(full: Sender<Message>, empty: Receiver<Vec<Sample>>) -> Self {
        let samples = Vec::with_capacity(BUFFER_SAMPLES);
        Self {
            samples,
            full,
            empty,
            dropped: Values::default(),
        }
    }

    /// Adds a sample. Returns whether the worker has got something to do.
    #[inline]
    pub fn push(&mut self, sample: Sample) -> bool {
        if self.samples.len() >= BUFFER_CAP {
            self.dropped.add(sample.values());
            return false;
        }
        self.samples.push(sample);
        self.samples.len() >= BUFFER_SAMPLES && self.hand_over()
    }

    /// Takes out what has not been handed over.
    pub fn take(&mut self) -> Vec<Sample> {
        std::mem::replace(&mut self.samples, Vec::with_capacity(BUFFER_SAMPLES))
    }

    /// Takes out what has not been handed over; the worker gives this buffer back.
    pub fn take_early(&mut self) -> Vec<Sample> {
        let empty = self.empty.try_recv();
        let empty = empty.unwrap_or_else(|_| Vec::with_capacity(BUFFER_SAMPLES));
        std::mem::replace(&mut self.samples, empty)
    }

    /// Samples dropped at the cap, and the time they stood for.
    pub fn dropped(&self) -> Values {
        self.dropped
    }

    /// Counts anew what is dropped.
    pub fn forget_dropped(&mut self) {
        self.dropped = Values::default();
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>()
    }

    #[cold]
    fn hand_over(&mut self) -> bool {
        // Without an empty buffer the worker is behind: this one grows instead.
        let Ok(empty) = self.empty.try_recv() else {
            return false;
        };
        let full = std::mem::replace(&mut self.samples, empty);
        // Without the worker they are lost; `stop` says so.
        self.full.try_send(Message::Samples(full)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Times;
    use crate::collect::sample::RequestNews;
    use crossbeam_channel::bounded;
    use rperf_model::{LabelSetId, Mode, NodeId, State};
    use rperf_vm::RequestNumber;

    const SAMPLE: Sample = Sample {
        time_ns: 0,
        times: Times::of(Mode::Wall, 3),
        node: NodeId(1),
        thread: 1,
        labels: LabelSetId(0),
        request: RequestNumber::NONE,
        state: State::Running,
        gc: None,
        count: 1,
    };

    #[test]
    fn a_full_buffer_is_handed_over_when_an_empty_one_is_there() {
        let (full, from_sampling) = bounded(1);
        let (to_sampling, empty) = bounded(1);
        to_sampling.send(Vec::new()).expect("room");
        let mut buffer = ActiveBuffer::new(full, empty);
        let handed_over = (0..BUFFER_SAMPLES).filter(|_| buffer.push(SAMPLE)).count();
        assert_eq!(handed_over, 1);
        let Ok(Message::Samples(samples)) = from_sampling.recv() else {
            panic!("no buffer")
        };
        assert_eq!(samples.len(), BUFFER_SAMPLES);
        assert!(buffer.take().is_empty());
    }

    #[test]
    fn while_the_worker_is_behind_it_grows_to_its_cap_then_drops_and_counts() {
        let (full, _from_sampling) = bounded(1);
        let (_to_sampling, empty) = bounded::<Vec<Sample>>(1);
        let mut buffer = ActiveBuffer::new(full, empty);
        for _ in 0..BUFFER_CAP + 5 {
            assert!(!buffer.push(SAMPLE));
        }
        assert_eq!(
            buffer.dropped(),
            Values {
                count: 5,
                times: Times::of(Mode::Wall, 15)
            }
        );
        for news in [RequestNews::LetGo, RequestNews::Waited { since_ns: 5 }] {
            assert!(!buffer.push(Sample::of_request(RequestNumber(1), news)));
        }
        assert_eq!(buffer.dropped().count, 5, "no news is a sample");
        assert!(buffer.memory() >= BUFFER_CAP * size_of::<Sample>());
        assert_eq!(buffer.take().len(), BUFFER_CAP);
    }
}
