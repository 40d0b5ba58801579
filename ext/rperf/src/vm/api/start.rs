//! The start of a sampling session. On a thread of the main Ractor, with the GVL.

use super::section;
use crate::profile::errors;
use crate::ruby::frames::{Interrupted, RubyVm};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::{safepoint, thread_names};
use crate::running::sampling::{SESSION, StartedSession};
use crate::vm::hooks::ended_ractors;
use magnus::{Error, Ruby};
use rperf_sampling::{
    Capture, Mode, RunningSession, SessionConfig, StartOptions, TimerKind, set_other_ractors,
};
use rperf_session::settings::{self, Settings, Signal};
use rperf_vm::{GC_WATCH, Gvl};
use std::env;
use std::sync::Arc;

/// Begins a session with these settings. None is running, and hooks that a fork has left are gone.
/// `others`: there are other Ractors. Runs no Ruby code, and so lets no other thread run.
pub fn begin(
    ruby: &Ruby,
    gvl: &Gvl<'_>,
    settings: &Arc<Settings>,
    threads: &LiveThreads,
    others: bool,
) -> Result<(), Error> {
    thread_names::note_main();
    let vm = RubyVm::new(gvl);
    let running = RunningSession::start::<RubyVm<Interrupted>>(
        &vm,
        gvl,
        safepoint::trigger,
        options(settings),
    );
    let running = running.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let session = StartedSession::new(Arc::clone(settings), running);
    for thread in threads.threads().filter(|thread| thread.has_frames()) {
        // Also where a forked child has inherited a state.
        thread.announce(gvl, &session.new_threads);
    }
    set_other_ractors(others);
    GC_WATCH.session_begins();
    let session = SESSION.put(gvl, Box::new(session));
    if !settings.defer() && !settings.is_traced() {
        section::begin_only(gvl, session, threads);
    }
    Ok(())
}

/// The settings as the engine has them.
fn options(settings: &Settings) -> StartOptions {
    // Beside traced calls a session holds the labels, and never samples.
    let at_rest = settings.is_traced();
    let capture = settings.capture().map(|capture| match capture {
        settings::Capture::Tick => Capture::Tick,
        settings::Capture::Safepoint => Capture::Safepoint,
    });
    StartOptions {
        config: SessionConfig {
            mode: Mode::from_name(settings.mode()).unwrap_or_default(),
            frequency: settings.frequency(),
            max_overhead: settings.max_overhead(),
            max_nodes: settings.max_nodes(),
            timer: match at_rest {
                true => TimerKind::Sleep,
                false => timer_kind(settings.signal()),
            },
            aggregate: settings.aggregate(),
        },
        any_timer: settings.signal().is_none(),
        lines: settings.lines() != Some(false),
        capture: match at_rest {
            true => Some(Capture::Safepoint),
            false => capture,
        },
        shares_native_threads: env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1"),
        on_ended_threads: Some(ended_ractors::note),
    }
}

fn timer_kind(signal: Option<Signal>) -> TimerKind {
    #[cfg(target_os = "linux")]
    return match signal {
        None => TimerKind::Signal(rperf_sampling::default_signal()),
        Some(Signal::Number(number)) => TimerKind::Signal(number),
        Some(Signal::None) => TimerKind::Sleep,
    };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = signal;
        TimerKind::Sleep
    }
}
