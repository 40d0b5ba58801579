//! Gives a target one input after the other, and tells what harm one does. Any thread.

use crate::mutate::Mutator;
use crate::targets::Target;
use nix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How much of a processor an input may take: it is of 1 MB at most.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Runs a target for so long, with inputs that `seed` decides on; `before` is called with each of them.
/// Returns how many it was given, or what harm the last one does.
pub fn run(
    target: &Target,
    duration: Duration,
    seed: u64,
    mut before: impl FnMut(&[u8]),
) -> Result<u64, String> {
    let seeds = (target.seeds)();
    let mut give = |input: &[u8]| {
        before(input);
        try_input(target, input)
    };
    for input in &seeds {
        give(input)?;
    }
    let mut mutator = Mutator::new(seeds, seed);
    let end = Instant::now() + duration;
    let mut count = 0;
    while Instant::now() < end {
        give(&mutator.next_input())?;
        count += 1;
    }
    Ok(count)
}

/// Gives the target this input. Returns what harm it does.
pub fn try_input(target: &Target, input: &[u8]) -> Result<(), String> {
    let began = processor_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        return Err(format!("panics: {}", text.unwrap_or("without words")));
    }
    match processor_time().saturating_sub(began) {
        taken if taken > PATIENCE => Err(format!("takes {taken:?}")),
        _ => Ok(()),
    }
}

/// What the process has had of processors.
pub(crate) fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    now.map(Duration::from).unwrap_or_default()
}
