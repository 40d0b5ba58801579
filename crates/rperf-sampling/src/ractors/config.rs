//! What all recorders of a session have in common.

use crate::collect::sample::SumLimits;
use rperf_model::Mode;
use rperf_vm::FrameLayout;

/// See above.
#[derive(Debug, Clone, Copy)]
pub struct RecorderConfig {
    /// What the weights measure.
    pub mode: Mode,
    /// Mean gap between samples in ns.
    pub interval: u64,
    /// Whether stacks have lines.
    pub with_lines: bool,
    /// Where the VM has its data, if that is known: else lines of leaves are none at ticks.
    pub layout: Option<FrameLayout>,
    /// How samples are kept.
    pub limits: SumLimits,
}
