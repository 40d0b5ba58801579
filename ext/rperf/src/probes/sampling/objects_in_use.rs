//! New objects in a session that follows some of them for as long as they live: the hook on new objects
//! holds them, as no object can be made there, and the VM's next safepoint puts them into the session's weak
//! map. On the threads of the main Ractor, with the GVL.

use super::countdown::COUNTDOWN;
use crate::ruby::frames::object;
use crate::ruby::process::collections;
use crate::ruby::safepoint::Job;
use crate::ruby::weak_map::WeakMap;
use crate::running::sampling::{self, sampling};
use rperf_sampling::HandlerOff;
use rperf_sampling::objects::ObjectSampler;
use rperf_vm::{Gvl, clock};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

static JOB: Job = Job::new();

/// They are put away at once if so many ns have gone by since others were, or when they are so many.
const SOON: u64 = 10_000_000;
const SOME: usize = 16;

/// Numbers that are taken out of the map at once.
const DROPPED: usize = 1 << 9;

/// When objects were put away last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many are held.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Makes what is made once per process. With the GVL.
pub fn init() {
    JOB.register(on_safepoint);
}

/// So many objects are held, one of them since `now_ns`. In the hook on new objects.
pub fn note_held(count: usize, now_ns: u64) {
    HELD.store(count, Relaxed);
    let is_due = now_ns.saturating_sub(LAST.load(Relaxed)) >= SOON;
    if count > 0 && (is_due || count.is_multiple_of(SOME)) {
        JOB.trigger();
    }
}

/// A collection has ended, which has left those alone that are held. In the hook on collections.
pub fn collected() {
    if HELD.load(Relaxed) > 0 {
        JOB.trigger();
    }
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    // SAFETY: on a thread that runs Ruby code.
    unsafe {
        sampling::with_session_of_main_ractor(|gvl| {
            let _handler_off = HandlerOff::begin();
            put_away(gvl, false);
        });
    }
}

/// Puts all objects that are held into the map, and forgets those that are gone if it is time for it, or
/// if this is a `look`. Outside of hooks. Calls methods of Ruby's own, and lets no other thread run.
pub fn put_away(gvl: &mut Gvl<'_>, is_look: bool) {
    let Some(map) = sampling(gvl).and_then(|session| session.objects_in_use) else {
        return;
    };
    let left = COUNTDOWN.pause();
    put(gvl, map);
    if (is_look || with_sampler(gvl, |it| it.wants_look()) == Some(true))
        && let Some(alive) = map.numbers(gvl)
    {
        with_sampler(gvl, |it| it.looked(alive));
    }
    let dropped = with_sampler(gvl, |it| it.take_dropped(DROPPED));
    for number in dropped.unwrap_or_default() {
        map.delete(gvl, number);
    }
    LAST.store(clock::monotonic_ns(), Relaxed);
    COUNTDOWN.go_on(left);
}

fn put(gvl: &mut Gvl<'_>, map: WeakMap) {
    while let Some(Some(held)) = with_sampler(gvl, |it| it.next_held()) {
        // While it is held it lives, and doesn't move.
        let is_put = map.set(gvl, held.number, object(held.object));
        let since = is_put.then(collections);
        with_sampler(gvl, |it| it.release(held, since));
    }
    HELD.store(0, Relaxed);
}

fn with_sampler<T>(gvl: &Gvl<'_>, act: impl FnOnce(&mut ObjectSampler) -> T) -> Option<T> {
    let session = sampling(gvl)?;
    let mut sampler = session.sampled_objects.as_ref()?.borrow(gvl)?;
    Some(act(&mut sampler))
}
