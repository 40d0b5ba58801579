//! The start of a session, on the Ruby thread that begins it, with the GVL.

use super::RunningSession;
use crate::config::{SessionConfig, StartError, StartOptions};
use crate::counters::Capture;
use crate::session::Session;
use crate::timer::sources::TimerKind;
use rperf_vm::{Backtrace, Gvl, SessionId, TickVm, VmFrames};
use std::io;

impl RunningSession {
    /// Starts a session; time doesn't count yet. `trigger` asks the VM for the sampling callback,
    /// and is async-signal-safe. `V` is what the handler of ticks asks for stacks.
    pub fn start<V: TickVm + 'static>(
        vm: &impl VmFrames,
        gvl: &Gvl<'_>,
        trigger: fn(),
        options: StartOptions,
    ) -> Result<RunningSession, StartError> {
        let engine = start_engine(options, trigger).map_err(StartError::Worker)?;
        let session = RunningSession::new(
            vm,
            engine,
            SessionId::next(),
            options.config,
            options.lines,
            options.shares_native_threads,
        );
        if options.shares_native_threads {
            // One that is about to wait, and need not, has given the GVL up by its events, and goes on
            // without a further one (`thread_sched_wait_events` in Ruby's thread_pthread_mn.c).
            session.ticks.expect_missing_resumptions();
        }
        if let Some(tell) = options.on_ended_threads {
            session.others.listen_to_ends(tell);
        }
        if options.capture == Some(Capture::Safepoint) {
            return Ok(session);
        }
        match session.begin_tick_capture::<V>(vm, gvl) {
            Err(error) if options.capture == Some(Capture::Tick) => {
                let (mut engine, _) = session.into_parts();
                engine.abandon();
                Err(StartError::TickCapture(error))
            }
            _ => Ok(session),
        }
    }

    /// Fails if stacks can't be taken at the tick.
    fn begin_tick_capture<V: TickVm + 'static>(
        &self,
        vm: &impl VmFrames,
        gvl: &Gvl<'_>,
    ) -> io::Result<()> {
        if !are_frames_known(vm) {
            if let Some(mut state) = self.state(gvl) {
                state.engine.lacks_tick_stacks();
            }
            let message = "the stacks of this Ruby are of an unknown form";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let state = self.state(gvl);
        state.map_or(Ok(()), |mut state| {
            state.engine.begin_tick_capture::<V>(&self.stacks.at_ticks)
        })
    }
}

/// With the timer that was asked for; or one that sleeps, if any will do and signal timers are used
/// up.
fn start_engine(options: StartOptions, trigger: fn()) -> io::Result<Session> {
    let StartOptions {
        config, any_timer, ..
    } = options;
    Session::start(config, trigger).or_else(|error| {
        if !any_timer || config.timer == TimerKind::Sleep {
            return Err(error);
        }
        let timer = TimerKind::Sleep;
        Session::start(SessionConfig { timer, ..config }, trigger)
    })
}

/// Whether all frames of the calling thread's stack are of the form that the signal handler
/// expects: else this VM is one that it doesn't know.
fn are_frames_known(vm: &impl VmFrames) -> bool {
    let mut backtrace = Backtrace::new(false);
    let depth = backtrace.take(vm);
    // SAFETY: from the VM, which is at a safepoint, where all frames are objects.
    depth > 0 && unsafe { vm.are_frames(backtrace.stack(depth).frames) }
}
