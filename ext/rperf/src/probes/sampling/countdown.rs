//! The bytes until the next new object becomes a sample.

use rperf_sampling::objects::Countdown;

/// The countdown doesn't end while nothing counts: then the hook on new objects, where it has to stay,
/// returns at once.
pub static COUNTDOWN: Countdown = Countdown::stopped();
