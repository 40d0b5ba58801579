//! The sections of a deferred session: time counts while at least one is open. In
//! between there are neither ticks nor hooks, so that the program runs as if there
//! were no session; but for a hook on collections that can't be removed, which does nothing then.
//! With the GVL, on the main Ractor, outside of hooks.
//!
//! Hooks that stay and do nothing are not free: the VM takes a lock and walks their
//! list at each event. Threads that hand a token around took 3 to 15 % more CPU time
//! so, on small pipes 4 to 5 %; without hooks no difference could be measured. To add
//! and remove them takes some 2 us for each section, 5 us with 50 threads.

use crate::interrupts::Interrupts;
use crate::probes::sampling::objects_in_use;
use crate::probes::{self, Lasts};
use crate::recording::sample;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::ractor;
use crate::ruby::threads::RubyThread;
use crate::running::sampling::sampling;
use crate::running::{Running, running};
use crate::running::{derived_labels, label_set};
use magnus::{Error, RArray, Ruby};
use rperf_sampling::threads::native;
use rperf_sampling::{AtWork, RunningSession, Sections, reset_at_work, set_other_ractors};
use rperf_vm::{Gvl, clock};

/// How time begins and ends to count in a session.
pub struct Switch {
    /// Time begins to count for these threads.
    pub open: fn(&Gvl<'_>, &LiveThreads),
    /// Time no longer counts. Lets no other thread run, and no interrupt come.
    pub close: fn(&Gvl<'_>),
}

/// Which one a session has, if it has sections and pauses. Asked for when it is needed: Ruby code that
/// has run meanwhile may have begun another session.
pub type SwitchOf = fn(&Running) -> Option<&'static Switch>;

/// The switch of sessions that sample.
pub const SAMPLING: Switch = Switch {
    open: |gvl, threads| {
        if let Some(session) = sampling(gvl) {
            open(gvl, session, threads, clock::monotonic_ns());
        }
    },
    close: |gvl| {
        if let Some(session) = sampling(gvl) {
            close(gvl, session);
        }
    },
};

/// Begins the section of a session that isn't deferred.
pub fn begin_only(gvl: &Gvl<'_>, session: &RunningSession, threads: &LiveThreads) {
    session.sections.add();
    let now = clock::monotonic_ns();
    if let Some(mut state) = session.state(gvl) {
        state.engine.begin(now);
    }
    open(gvl, session, threads, now);
}

/// A section begins; its session's id is noted in `undo`. Without a session there is
/// nothing to begin. Runs Ruby code.
pub fn enter(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    switch_of: SwitchOf,
    undo: RArray,
) -> Result<(), Error> {
    let opens = |sections: &Sections| sections.is_none() && !sections.is_paused();
    if label_set::are_used(gvl) {
        // Between sections nothing tells of a fiber's beginning.
        derived_labels::adopt(gvl)?;
    }
    let threads = match running(gvl).and_then(Running::sections).is_some_and(opens) {
        true => Some(threads(ruby, gvl)?),
        false => None,
    };
    let Some(running) = running(gvl) else {
        return Ok(());
    };
    let (Some(sections), Some(switch)) = (running.sections(), switch_of(running)) else {
        return Ok(());
    };
    if opens(sections) {
        match &threads {
            Some(threads) => (switch.open)(gvl, threads),
            // Another session has just begun, or the last section just ended.
            None => return enter(ruby, gvl, switch_of, undo),
        }
    }
    sections.add();
    undo.push(running.id.0)
}

/// A section of the session with this id ends. The session may be over. Lets no other
/// thread run, and no interrupt come.
pub fn leave(gvl: &Gvl<'_>, switch_of: SwitchOf, id: u64) {
    if let Some(running) = running(gvl).filter(|running| running.id.0 == id)
        && let Some(sections) = running.sections()
        && sections.remove()
        && !sections.is_paused()
        && let Some(switch) = switch_of(running)
    {
        (switch.close)(gvl);
    }
}

/// The threads as time begins to count: nothing has told of their beginning. Runs Ruby code.
fn threads(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<LiveThreads, Error> {
    set_other_ractors(ractor::are_there_others(ruby, gvl)?);
    LiveThreads::list(ruby, gvl)
}

/// How long a pause lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// For a block.
    Block,
    /// Until it is ended.
    Held,
}

/// A pause of the running session begins. Returns the session's id, unless nothing has changed.
/// Lets no other thread run, and no interrupt come.
pub fn pause(gvl: &Gvl<'_>, switch_of: SwitchOf, pause: Pause) -> Option<u64> {
    let running = running(gvl)?;
    let sections = running.sections()?;
    let was_wanted = sections.are_wanted();
    let is_news = match pause {
        Pause::Held => sections.hold(true),
        Pause::Block => {
            sections.add_pause();
            true
        }
    };
    if was_wanted && let Some(switch) = switch_of(running) {
        (switch.close)(gvl);
    }
    is_news.then_some(running.id.0)
}

/// A pause of the session with this id ends, or one of any session. Returns whether there was one,
/// and interrupts that have come meanwhile. Runs Ruby code.
pub fn resume(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    switch_of: SwitchOf,
    pause: Pause,
    id: Option<u64>,
) -> Result<(bool, Interrupts), Error> {
    let mut interrupts = Interrupts::default();
    let threads = interrupts.until_done(|| {
        if label_set::are_used(gvl) {
            // Nor in pauses.
            derived_labels::adopt(gvl)?;
        }
        threads(ruby, gvl)
    })?;
    let running = running(gvl).filter(|running| id.is_none_or(|id| running.id.0 == id));
    let Some((running, sections)) = running.and_then(|it| Some((it, it.sections()?))) else {
        return Ok((false, interrupts));
    };
    let was_wanted = sections.are_wanted();
    let is_news = match pause {
        Pause::Held => sections.hold(false),
        Pause::Block => {
            sections.remove_pause();
            true
        }
    };
    if !was_wanted
        && sections.are_wanted()
        && let Some(switch) = switch_of(running)
    {
        (switch.open)(gvl, &threads);
    }
    Ok((is_news, interrupts))
}

/// Time counts from `now` on.
fn open(gvl: &Gvl<'_>, session: &RunningSession, threads: &LiveThreads, now: u64) {
    if session.is_over() {
        return;
    }
    // First: what takes stacks at ticks relies on them.
    native::forget_all();
    reset_at_work();
    probes::add(gvl, Lasts::Section);
    session.begin_section(gvl, now, |thread| threads.lacks(gvl, thread));
    let current = RubyThread::current(gvl).id();
    for thread in threads.threads() {
        // One that has no frames is not there yet, or not any more.
        let is_current = thread.id() == current;
        if is_current || thread.has_frames() {
            let labels = label_set::of_thread(gvl, thread);
            let state = thread.state(gvl, &session.turnover.new);
            session.begin_thread(gvl, state, is_current, labels, now);
        }
    }
    session.sections.open();
}

/// Time no longer counts.
fn close(gvl: &Gvl<'_>, session: &RunningSession) {
    let guard = AtWork::begin(gvl);
    sample::drain_ticks(gvl, session, &guard);
    session.sections.close();
    session.ticks.pause();
    probes::end_section(gvl);
    objects_in_use::end_section();
    let threads = session.end_section(gvl, RubyThread::current(gvl).id());
    threads.for_each(|wanted| sample::record(gvl, session, wanted));
}
