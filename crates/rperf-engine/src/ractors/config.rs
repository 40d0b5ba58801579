//! What all recorders of a session have in common.

use crate::mode::Mode;
use crate::sample::SumLimits;

/// See above.
#[derive(Debug, Clone, Copy)]
pub struct RecorderConfig {
    /// What the weights measure.
    pub mode: Mode,
    /// Mean gap between samples in ns.
    pub interval: u64,
    /// Whether stacks have lines.
    pub with_lines: bool,
    /// How samples are kept.
    pub limits: SumLimits,
}
