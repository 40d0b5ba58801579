//! Each target for two seconds, with inputs of this run's own; and what the fuzzer has to find.

use rperf_fuzz::TARGETS;
use rperf_fuzz::apart::Task;
use rperf_fuzz::targets::is_harmful;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rperf-fuzz");

fn task(target: &str, seconds: u64, seed: u64) -> Task {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    Task {
        target: target.to_string(),
        duration: Duration::from_secs(seconds),
        seed,
        input: directory.join(format!("fuzz-{target}.bin")),
    }
}

/// What harm is found.
fn harm(task: &Task) -> Option<String> {
    let outcome = task.run_apart(Path::new(PROGRAM)).expect("a process");
    outcome.err()
}

#[test]
fn no_input_does_harm() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = now.expect("a clock").as_nanos() as u64;
    let tasks = TARGETS.iter().map(|it| task(it.name, 2, seed));
    let each = |task: Task| {
        let found = harm(&task)?;
        let input = std::fs::read(&task.input).expect("the input");
        Some(format!("{task:?}: {found}: {}", input.escape_ascii()))
    };
    let threads: Vec<_> = tasks.map(|it| thread::spawn(move || each(it))).collect();
    let found = threads
        .into_iter()
        .filter_map(|it| it.join().expect("it waits"));
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

/// A planted fault is found, and its input kept.
fn finds(target: &str, expected: &str) {
    let task = task(target, 60, 7);
    let found = harm(&task).expect("it is found");
    assert!(found.contains(expected), "{found}");
    let input = std::fs::read(&task.input).expect("the input");
    assert!(is_harmful(&input), "{}", input.escape_ascii());
}

#[test]
fn a_reader_that_panics_is_found() {
    finds("planted-panic", "panics: planted");
}

#[test]
fn a_reader_that_ends_the_process_is_found() {
    finds("planted-abort", "SIGABRT");
}

#[test]
fn a_reader_that_calls_itself_too_often_is_found() {
    finds("planted-depth", "overflowed its stack");
}

#[test]
fn a_reader_that_takes_all_memory_is_found() {
    finds("planted-memory", "memory allocation");
}

#[test]
fn a_reader_that_never_ends_is_found() {
    finds("planted-endless", "doesn't end");
}

#[test]
fn the_program_says_where_the_input_is() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let output = std::process::Command::new(PROGRAM)
        .args(["session", "0", "7"])
        .current_dir(directory)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "session: 0 inputs, no harm; seed 7\n");
}
