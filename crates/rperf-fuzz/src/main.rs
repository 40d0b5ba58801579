//! `rperf-fuzz TARGET|all SECONDS [SEED]`: see bin/fuzz, which runs it.

#![allow(clippy::print_stdout, reason = "what it prints is for people")]

use rperf_fuzz::apart::{self, Task};
use rperf_fuzz::{TARGETS, Target};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == apart::ARGUMENT) {
        return be_apart(&arguments[1..]);
    }
    let Some((targets, seconds, seed)) = parsed(&arguments) else {
        eprintln!("usage: bin/fuzz TARGET|all SECONDS [SEED]\n");
        for target in &TARGETS {
            eprintln!("  {:<16}{}", target.name, target.fed_by);
        }
        return ExitCode::from(2);
    };
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        let task = Task {
            target: target.name.to_string(),
            duration: Duration::from_secs(seconds),
            seed,
            input: format!("fuzz-{}.bin", target.name).into(),
        };
        if let Err(text) = fuzz(&task) {
            println!("{}: {text}", target.name);
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Runs it, and says how it went; or returns what is wrong.
fn fuzz(task: &Task) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|it| it.to_string())?;
    let outcome = task.run_apart(&program).map_err(|it| it.to_string())?;
    let file = task.input.display();
    let count =
        outcome.map_err(|harm| format!("{harm}; the input is in {file}; seed {}", task.seed))?;
    // It is that of the last input, which did no harm.
    let _ = std::fs::remove_file(&task.input);
    println!(
        "{}: {count} inputs, no harm; seed {}",
        task.target, task.seed
    );
    Ok(())
}

/// In a process of its own.
fn be_apart(arguments: &[String]) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let Some(task) = Task::of_arguments(arguments) else {
        return ExitCode::from(2);
    };
    match task.run_here() {
        Ok((status, text)) => {
            println!("{text}");
            ExitCode::from(status as u8)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// The targets, the seconds for each, and the seed.
fn parsed(arguments: &[String]) -> Option<(Vec<&'static Target>, u64, u64)> {
    let (name, seconds, seed) = match arguments {
        [name, seconds] => (name, seconds, clock()),
        [name, seconds, seed] => (name, seconds, seed.parse().ok()?),
        _ => return None,
    };
    let targets = TARGETS.iter().filter(|it| name == "all" || it.name == name);
    let targets: Vec<_> = targets.collect();
    (!targets.is_empty()).then_some((targets, seconds.parse().ok()?, seed))
}

fn clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |it| it.as_nanos() as u64)
}
