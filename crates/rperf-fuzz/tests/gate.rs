//! Each target for two seconds, with inputs of this run's own.

use rperf_fuzz::{TARGETS, Target, run, try_input};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn no_input_does_harm() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = now.expect("a clock").as_nanos() as u64;
    let each = move |target: &'static Target| {
        let found = run(target, Duration::from_secs(2), seed).err()?;
        Some(format!(
            "{} {}: {}",
            target.name,
            found.harm,
            found.input.escape_ascii()
        ))
    };
    let threads = TARGETS
        .iter()
        .map(|target| thread::spawn(move || each(target)));
    let threads: Vec<_> = threads.collect();
    let found = threads
        .into_iter()
        .filter_map(|it| it.join().expect("caught"));
    assert_eq!(
        found.collect::<Vec<_>>(),
        Vec::<String>::new(),
        "seed {seed}"
    );
}

#[test]
fn a_reader_that_panics_is_found() {
    let target = Target {
        name: "planted",
        fed_by: "this test",
        read: |input| assert!(!input.ends_with(b"\xff"), "planted"),
        seeds: || vec![b"abc".to_vec()],
    };
    assert!(try_input(&target, b"abc").is_ok());
    let found = run(&target, Duration::from_secs(20), 7).expect_err("it is found");
    assert!(found.harm.contains("planted"), "{}", found.harm);
    assert!(found.input.ends_with(b"\xff"));
}
