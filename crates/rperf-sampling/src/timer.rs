//! The timer and its ticks: when it runs, when it rests, and which thread a tick interrupts.

pub(crate) mod calm;
pub(crate) mod idle_times;
pub(crate) mod interruption;
pub(crate) mod other_holders;
pub(crate) mod pace;
pub(crate) mod sources;
pub(crate) mod ticks;
pub(crate) mod timer_state;
