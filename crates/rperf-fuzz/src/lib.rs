//! Feeds what reads bytes from elsewhere with damaged ones: files that others give, answers of programs that
//! are watched, requests of other users. Each [`Target`] reads them, and does with what it read all that
//! users can do. `cargo test` has each for two seconds; `bin/fuzz` for as long as it is told. Inputs are
//! made from whole ones by chance, without knowledge of the code: that finds less than a fuzzer that
//! follows the branches, and needs no other compiler. Runs nowhere but there.

mod mutate;
pub mod targets;

pub use mutate::Mutator;
pub use targets::{TARGETS, Target};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How long an input may take: it is of 1 MB at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// An input that does harm, and which.
#[derive(Debug)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What it does.
    pub harm: String,
}

/// Runs a target for so long, with inputs that `seed` decides on. Returns how many it was given, or what
/// was found.
pub fn run(target: &Target, duration: Duration, seed: u64) -> Result<u64, Finding> {
    let seeds = (target.seeds)();
    for input in &seeds {
        try_input(target, input)?;
    }
    let mut mutator = Mutator::new(seeds, seed);
    let end = Instant::now() + duration;
    let mut count = 0;
    while Instant::now() < end {
        try_input(target, &mutator.next_input())?;
        count += 1;
    }
    Ok(count)
}

/// Gives the target this input.
pub fn try_input(target: &Target, input: &[u8]) -> Result<(), Finding> {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    let finding = |harm: String| Finding {
        input: input.to_vec(),
        harm,
    };
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        return Err(finding(format!(
            "panics: {}",
            text.unwrap_or("without words")
        )));
    }
    match began.elapsed() {
        elapsed if elapsed > PATIENCE => Err(finding(format!("takes {elapsed:?}"))),
        _ => Ok(()),
    }
}
