//! What there is of something in each state.

use rperf_model::State;

/// For each state by its number.
pub(super) type ByState<T> = [T; State::ALL.len()];
