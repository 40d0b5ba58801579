//! What the recording of a thread of another Ractor begins with. Hooks of all Ractors begin them, at the
//! same time.

use super::config::RecorderConfig;
use super::thread_recording::ThreadRecording;
use crate::timer::pace::Pace;
use rperf_vm::FrameLayout;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What new recordings have in common, and the number of the next one. Lines and layout are set before
/// the first hook, and stay.
#[derive(Debug)]
pub(super) struct NewRecordings {
    config: RecorderConfig,
    pace: Arc<Pace>,
    with_lines: AtomicBool,
    /// Empty if it isn't known.
    layout: OnceLock<FrameLayout>,
    seed: u64,
    /// The number of the thread that was seen last, of any Ractor.
    last_seq: AtomicU32,
}

impl NewRecordings {
    /// No thread was seen yet.
    pub(super) fn new(config: RecorderConfig, pace: Arc<Pace>, seed: u64) -> Self {
        Self {
            config,
            pace,
            with_lines: AtomicBool::new(config.with_lines),
            layout: config.layout.map(OnceLock::from).unwrap_or_default(),
            seed,
            last_seq: AtomicU32::new(0),
        }
    }

    /// Whether stacks have lines, and where the VM has its data, if that is known.
    pub(super) fn set_lines(&self, with_lines: bool, layout: Option<FrameLayout>) {
        self.with_lines.store(with_lines, Relaxed);
        if let Some(layout) = layout {
            let _ = self.layout.set(layout);
        }
    }

    /// The number for a thread that was not seen before, of any Ractor.
    pub(super) fn next_seq(&self) -> u32 {
        self.last_seq.fetch_add(1, Relaxed) + 1
    }

    /// The recording of a thread that was not seen before.
    pub(super) fn begin(&self) -> ThreadRecording {
        let seq = self.next_seq();
        let seed = self.seed ^ (u64::from(seq) << 32);
        let config = RecorderConfig {
            with_lines: self.with_lines.load(Relaxed),
            layout: self.layout.get().copied(),
            ..self.config
        };
        ThreadRecording::new(seq, seed, config, &self.pace)
    }
}
