//! Sessions that clients of the port have begun, and what clients are given of sessions. With the
//! GVL, on threads of the main Ractor: on the helper, and where the program's own session needs the
//! place.

use super::session::{self, ProgramBegins};
use crate::interrupts::{Interrupts, let_others_run};
use crate::profile::{errors, shared};
use crate::ruby::threads::RubyThread;
use crate::running::facts;
use crate::running::sampling::sampling;
use crate::settings::SettingsObject;
use magnus::{Error, Ruby, Value};
use rperf_protocol::hello::Beginner;
use rperf_vm::Gvl;

use rperf_model::Mode;
use rperf_port::task::{ProfileUpTo, Why};
use rperf_protocol::ask::Sampling;
use rperf_session::settings::{BLAME, FREQUENCY, Given, MEASURE, MODE, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

/// The helper's number in the session that clients have begun; 0 if it has none.
static HELPER: AtomicU32 = AtomicU32::new(0);

/// How many threads of the program are ending a session.
static PROGRAM_ENDS: AtomicUsize = AtomicUsize::new(0);

/// While it lives, a profile is about to be handed over.
struct ProgramEnds(());

impl ProgramEnds {
    fn new() -> Self {
        PROGRAM_ENDS.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for ProgramEnds {
    fn drop(&mut self) {
        // In a child that was forked meanwhile there is nothing to take away.
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = PROGRAM_ENDS.fetch_update(SeqCst, SeqCst, less);
    }
}

/// In a forked child: whoever began or ended a session isn't there.
pub fn forget_in_child() {
    PROGRAM_ENDS.store(0, SeqCst);
    ProgramBegins::forget();
}

/// Begins a session for clients. Returns whether it runs: not if there is another one.
pub fn begin(ruby: &Ruby, gvl: &mut Gvl<'_>, sampling: Sampling) -> Result<bool, Error> {
    let shown = String::new;
    let given = [
        (&MODE, Given::Symbol(sampling.mode.name().into()), shown),
        (&FREQUENCY, Given::Integer(sampling.frequency.into()), shown),
    ];
    // Who looks at a program that runs asks who keeps others waiting, too.
    let blame = (sampling.mode == Mode::Wall).then_some(BLAME);
    let words = blame.into_iter().chain(sampling.measure.words());
    let words: Vec<String> = words.map(Into::into).collect();
    let measure = (!words.is_empty()).then_some((&MEASURE, Given::Symbols(words), shown));
    let settings = Settings::from_keywords(given.into_iter().chain(measure));
    let settings = settings.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let begun = session::start(ruby, gvl, &Arc::new(settings), Beginner::Clients)?;
    HELPER.store(0, SeqCst);
    note_helper(gvl);
    Ok(begun)
}

/// The calling thread is the helper: clients' profiles are without it, and nobody is to blame for its
/// waits.
pub fn note_helper(gvl: &Gvl<'_>) {
    if let Some(seq) = seq_of_current(gvl) {
        HELPER.store(seq, SeqCst);
    }
    if facts::is_of_clients()
        && let Some(session) = sampling(gvl)
    {
        session.leave_out_waits(gvl, RubyThread::current(gvl).id());
    }
}

fn seq_of_current(gvl: &Gvl<'_>) -> Option<u32> {
    sampling(gvl)?;
    let part = RubyThread::current(gvl).known_state(gvl)?.gvl_part(gvl)?;
    Some(part.accounting.as_ref()?.seq())
}

/// A profile for clients; `is_theirs`: so is its session.
pub fn up_to(profile: Value, is_theirs: bool) -> Result<ProfileUpTo, Error> {
    let helper = Some(HELPER.load(SeqCst)).filter(|&seq| seq > 0 && is_theirs);
    Ok(ProfileUpTo {
        profile: shared(profile)?,
        helper,
    })
}

/// Ends the session of clients; its profile, if there is one.
pub fn end(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<ProfileUpTo>, Interrupts), Error> {
    let (profile, interrupts) = session::stop(ruby, gvl)?;
    let profile = profile.map(|it| up_to(it, true)).transpose()?;
    Ok((profile, interrupts))
}

/// Ends the session of clients, if one runs, and hands them its profile: the program begins its
/// own, or ends.
pub fn give_way(ruby: &Ruby, gvl: &mut Gvl<'_>, why: Why) -> Result<(), Error> {
    while facts::is_of_clients() {
        let _ends = ProgramEnds::new();
        let (taken, interrupts) = end(ruby, gvl)?;
        if let Some(taken) = taken {
            rperf_port::session_ended(why, taken);
        }
        interrupts.raise()?;
    }
    Ok(())
}

/// `Native.start`: the program's sessions come first.
pub fn start_programs(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    settings: &SettingsObject,
) -> Result<bool, Error> {
    let _begins = ProgramBegins::new();
    give_way(ruby, gvl, Why::BeginsOwn)?;
    session::start(ruby, gvl, &settings.0, Beginner::Program)
}

/// Ends the program's session. Clients that watch it get what they have waited for.
pub fn stop_programs(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<Value>, Interrupts), Error> {
    if facts::is_of_clients() {
        return Ok(Default::default());
    }
    let _ends = ProgramEnds::new();
    let (profile, interrupts) = session::stop(ruby, gvl)?;
    if let Some(profile) = profile {
        rperf_port::session_ended(Why::EndsOwn, up_to(profile, false)?);
    }
    Ok((profile, interrupts))
}

/// Waits while the program begins a session, or hands a profile over.
pub fn wait_for_program(gvl: &mut Gvl<'_>) -> Result<(), Error> {
    while PROGRAM_ENDS.load(SeqCst) > 0 || ProgramBegins::is_there() {
        let_others_run(gvl)?;
    }
    Ok(())
}
