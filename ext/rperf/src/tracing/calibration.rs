//! What tracing costs here, measured before the program's first traced line: methods that make 2
//! and 12 calls in a loop, untraced and traced. With the GVL, on the thread that starts a session;
//! runs Ruby code of its own.

use super::start;
use crate::ruby::live_threads::LiveThreads;
use crate::running::tracing::trace_session;
use crate::running::{self, Kind, Running};
use magnus::{Error, Ruby, Value, prelude::*};
use rperf_protocol::hello::Beginner;
use rperf_session::settings::Settings;
use rperf_tracing::{Calibration, CallKind, LoopTimes, TraceClock, TraceLevel, TraceSnapshot};
use rperf_vm::Gvl;
use rperf_vm::clock::monotonic_ns;
use std::sync::{Arc, Mutex, PoisonError};

/// Turns of a loop, and how often each loop is run.
const TURNS: u32 = 500;
const RUNS: usize = 8;

/// A loop with this many calls more in each turn.
const MORE_CALLS: f64 = 10.0;

/// The loops of a kind: with 2 calls a turn, and with 12.
fn loops(kind: CallKind) -> (&'static str, &'static str) {
    match kind {
        CallKind::Method => ("method_2", "method_12"),
        CallKind::Block => ("block_2", "block_12"),
        CallKind::C => ("c_2", "c_12"),
    }
}

/// Their code, without a warning of Ruby's.
fn code() -> String {
    let mut code = String::from("Module.new do\ndef self.m = nil\n");
    for calls in [2, 12] {
        let turns = |call| format!("({}; i += 1) while i < n", vec![call; calls].join("; "));
        let (methods, blocks, of_c) = (turns("m"), turns("yield"), turns("f.nan?"));
        code += &format!(
            "def self.method_{calls}(n) = (i = 0; {methods})\n\
             def self.loop_{calls}(n) = (i = 0; {blocks})\n\
             def self.block_{calls}(n) = loop_{calls}(n) {{ nil }}\n\
             def self.c_{calls}(n) = (i = 0; f = 1.5; {of_c})\n"
        );
    }
    code + "end"
}

/// What was measured in this process so far: untraced calls, in ns, as they can't be had once
/// calls have been traced; and the costs.
#[derive(Default)]
struct Known {
    untraced_ns: Option<[f64; CallKind::ALL.len()]>,
    costs: Vec<(TraceLevel, TraceClock, Calibration)>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    untraced_ns: None,
    costs: Vec::new(),
});

/// The costs at this level with this clock, measured if they aren't known. Runs Ruby code.
pub fn of(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    settings: &Arc<Settings>,
    level: TraceLevel,
    clock: TraceClock,
) -> Result<Calibration, Error> {
    if !level.timed {
        return Ok(Calibration::default());
    }
    let untraced = {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let costs = known.costs.iter().find(|it| (it.0, it.1) == (level, clock));
        if let Some((_, _, calibration)) = costs {
            return Ok(*calibration);
        }
        known.untraced_ns
    };
    let module: Value = ruby.eval(&code())?;
    let untraced = match untraced {
        Some(untraced) => untraced,
        None => untraced_ns(module)?,
    };
    let threads = LiveThreads::list(ruby, gvl)?;
    running::check_none(ruby)?;
    let session = start::new_session(ruby, level, clock)?;
    let session = Running::new(settings, Beginner::Program, Kind::Calibration(session));
    let id = session.id;
    start::begin(gvl, session, &threads);
    let calibration = measured(gvl, module, level, clock, untraced);
    drop(start::end(gvl, id));
    let calibration = calibration?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.untraced_ns = Some(untraced);
    known.costs.push((level, clock, calibration));
    Ok(calibration)
}

/// What a call takes without tracing.
fn untraced_ns(module: Value) -> Result<[f64; CallKind::ALL.len()], Error> {
    let fastest = |name: &str| -> Result<f64, Error> {
        let mut fastest = f64::MAX;
        for _ in 0..RUNS {
            let started = monotonic_ns();
            module.funcall::<_, _, Value>(name, (TURNS,))?;
            fastest = fastest.min((monotonic_ns() - started) as f64);
        }
        Ok(fastest)
    };
    let mut all = [0.0; CallKind::ALL.len()];
    for kind in CallKind::ALL {
        let (few, many) = loops(kind);
        all[kind as usize] = per_call(fastest(many)? - fastest(few)?).max(0.0);
    }
    Ok(all)
}

fn per_call(ns: f64) -> f64 {
    ns / (MORE_CALLS * f64::from(TURNS))
}

/// Traces the loops, in the session that has begun.
fn measured(
    gvl: &Gvl<'_>,
    module: Value,
    level: TraceLevel,
    clock: TraceClock,
    untraced: [f64; CallKind::ALL.len()],
) -> Result<Calibration, Error> {
    let mut calibration = Calibration::default();
    for kind in CallKind::ALL {
        if kind == CallKind::C && !level.c_methods {
            continue;
        }
        let (few, many) = loops(kind);
        let (mut fews, mut manys) = (Vec::new(), Vec::new());
        // By turns: the machine may be busy for a while.
        for _ in 0..RUNS {
            fews.extend(traced(gvl, module, few, clock, kind)?);
            manys.extend(traced(gvl, module, many, clock, kind)?);
        }
        let untraced_ns = untraced[kind as usize];
        calibration.add(
            kind,
            &mut fews,
            &mut manys,
            MORE_CALLS * f64::from(TURNS),
            untraced_ns,
        );
    }
    Ok(calibration)
}

/// Runs a loop once.
fn traced(
    gvl: &Gvl<'_>,
    module: Value,
    name: &str,
    clock: TraceClock,
    kind: CallKind,
) -> Result<Option<LoopTimes>, Error> {
    take(gvl, clock);
    let started = monotonic_ns();
    module.funcall::<_, _, Value>(name, (TURNS,))?;
    let half = (monotonic_ns() - started) as f64 / 2.0;
    Ok(take(gvl, clock).map(|snapshot| {
        let (callee_ns, caller_ns) = match clock {
            // A loop is over after some of its ticks.
            TraceClock::Noted => (half, half),
            _ => snapshot.busiest_pair_ns(),
        };
        LoopTimes {
            callee_ns,
            caller_ns,
            body_ns: snapshot.bodies_ns()[kind as usize],
        }
    }))
}

/// What has been counted since this was done last.
fn take(gvl: &Gvl<'_>, clock: TraceClock) -> Option<TraceSnapshot> {
    let mut tracer = trace_session(gvl)?.tracer.borrow(gvl)?;
    let end = clock.reading();
    tracer.flush(end.ticks, |_| None);
    let snapshot = tracer.snapshot(end);
    tracer.clear(end);
    Some(snapshot)
}
