//! Processors whose machine code isn't read.

use super::Form;
use std::ops::Range;

/// Does nothing.
pub fn prepare() {}

/// Nothing is found.
pub fn stores_program_counter_for(_: usize, _: &Range<usize>, _: Form) -> Option<bool> {
    None
}

/// Nothing is known.
pub fn begins_frame(_: usize, _: &Range<usize>, _: usize) -> bool {
    false
}

/// Nothing is found.
pub fn program_counter_at(
    _: usize,
    _: &Range<usize>,
    _: Form,
    _: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    None
}
