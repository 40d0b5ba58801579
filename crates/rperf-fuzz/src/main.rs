//! `rperf-fuzz TARGET|all SECONDS [SEED]`: see bin/fuzz, which runs it.

#![allow(clippy::print_stdout, reason = "what it prints is for people")]

use rperf_fuzz::{TARGETS, Target, run};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((targets, seconds, seed)) = parsed(&arguments) else {
        eprintln!("usage: bin/fuzz TARGET|all SECONDS [SEED]\n");
        for target in &TARGETS {
            eprintln!("  {:<16}{}", target.name, target.fed_by);
        }
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        match run(target, Duration::from_secs(seconds), seed) {
            Ok(count) => println!("{}: {count} inputs, no harm", target.name),
            Err(finding) => {
                let file = format!("fuzz-{}.bin", target.name);
                let kept = match std::fs::write(&file, &finding.input) {
                    Ok(()) => format!("the input is in {file}"),
                    Err(error) => format!("the input can't be written to {file} ({error})"),
                };
                println!("{}: {}; {kept}; seed {seed}", target.name, finding.harm);
                code = ExitCode::FAILURE;
            }
        }
    }
    code
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
