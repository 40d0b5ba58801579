//! New objects in a session that follows some of them for as long as they live: the hook on new objects
//! holds them, as no object can be made there, and the VM's next safepoint puts them into one of the
//! session's weak maps. On the threads of the main Ractor, with the GVL.

use super::countdown::COUNTDOWN;
use super::gc_cost;
use crate::ruby::frames::object;
use crate::ruby::gc_hook::is_marking;
use crate::ruby::object_hook::is_hidden;
use crate::ruby::process::collections;
use crate::ruby::safepoint::Job;
use crate::ruby::weak_map::WeakMap;
use crate::running::roots;
use crate::running::sampling::{self, SamplingSession, sampling};
use crate::running::weak_maps::WeakMaps;
use rb_sys::VALUE;
use rperf_sampling::HandlerOff;
use rperf_sampling::objects::{Moment, ObjectSampler, Put};
use rperf_vm::{Gvl, clock};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

static JOB: Job = Job::new();

/// Objects that are held are put away at once if so many ns have gone by since others were, or when they are
/// so many.
const SOON: u64 = 10_000_000;
const SOME: usize = 16;

/// When objects were put away last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many are held.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Whether this is a copy of the program, which only sends its objects.
static IN_COPY: AtomicBool = AtomicBool::new(false);

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

/// A session begins, in which none is held.
pub fn begin() {
    HELD.store(0, Relaxed);
}

/// A tick: what is held for long is put away. Async-signal-safe.
pub fn at_tick(now_ns: u64) {
    if HELD.load(Relaxed) > 0 && now_ns.saturating_sub(LAST.load(Relaxed)) >= SOON {
        JOB.trigger();
    }
}

/// Time no longer counts: neither ticks nor new objects tell of those that are held.
pub fn end_section() {
    if HELD.load(Relaxed) > 0 {
        JOB.trigger();
    }
}

/// A collection has ended, which has left those alone that are held. `is_marking`: only a step of it has, in the
/// middle of marking. In the hook on collections.
pub fn collected(session: &SamplingSession, is_marking: bool) {
    let is_to_share = || !is_marking && session.gc.unshared.marking_ns() > 0;
    if HELD.load(Relaxed) > 0 || session.sums.objects_in_use.is_some() && is_to_share() {
        JOB.trigger();
    }
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    if IN_COPY.load(Relaxed) {
        return;
    }
    // SAFETY: on a thread that runs Ruby code.
    unsafe {
        sampling::with_session_of_main_ractor(|gvl| {
            let _handler_off = HandlerOff::begin();
            put_away(gvl, false);
        });
    }
}

/// A look at which objects live, for a profile.
#[derive(Clone, Copy)]
pub struct Look {
    /// What ages are told by.
    pub at: Moment,
    /// Whether it is known which objects live. If not there was no memory, or none are followed.
    pub has_seen: bool,
}

/// Puts all objects that are held into a map, and forgets those that are gone. Outside of hooks. Runs no Ruby code,
/// and lets no other thread run.
pub fn look_now(gvl: &mut Gvl<'_>) -> Look {
    // Only collections have taken garbage that have marked what lives.
    let at = Moment {
        ns: clock::monotonic_ns(),
        collections: collections().saturating_sub(u64::from(is_marking())),
    };
    let has_seen = put_away(gvl, true);
    Look { at, has_seen }
}

/// Puts all objects that are held into a map, and forgets those that are gone if it is time for it, or if
/// this is a `look`. Returns whether it has. As [`look_now`].
fn put_away(gvl: &mut Gvl<'_>, is_look: bool) -> bool {
    if with_maps(gvl, |_| ()).is_none() {
        return false;
    }
    let left = COUNTDOWN.pause();
    put(gvl);
    // In the middle of marking nobody knows how many objects live.
    let shares_gc = with_sampler(gvl, |it| it.shares_gc()) == Some(true);
    let can_share = shares_gc && !is_marking();
    let has_looked = (is_look || wants_look(gvl, can_share)) && look(gvl);
    if has_looked && can_share {
        share_marking(gvl);
    }
    LAST.store(clock::monotonic_ns(), Relaxed);
    COUNTDOWN.go_on(left);
    has_looked
}

fn wants_look(gvl: &Gvl<'_>, can_share: bool) -> bool {
    let Some(session) = sampling(gvl) else {
        return false;
    };
    let marking_ns = session.gc.unshared.marking_ns();
    let wants_to_share = |it: &ObjectSampler| can_share && it.wants_look_after(marking_ns);
    let wants = |it: &mut ObjectSampler| it.wants_look() || wants_to_share(it);
    with_sampler(gvl, wants) == Some(true)
}

/// Major collections have marked what lives now.
fn share_marking(gvl: &Gvl<'_>) {
    if let Some(session) = sampling(gvl) {
        with_sampler(gvl, |it| gc_cost::share(gvl, session, it, true));
    }
}

fn put(gvl: &mut Gvl<'_>) {
    while let Some(Some(held)) = with_sampler(gvl, |it| it.next_held()) {
        // While it is held it lives, and doesn't move.
        let object = object(held.object);
        // SAFETY: it is an object, which lives.
        let put = match unsafe { is_hidden(object) } {
            true => Put::Hidden,
            false => match add(gvl, held.number, object) {
                true => Put::Since(collections()),
                false => Put::NoRoom,
            },
        };
        with_sampler(gvl, |it| it.release(held, put));
    }
    HELD.store(0, Relaxed);
}

/// Adds a number for an object that somebody keeps alive meanwhile. Returns whether there was memory for it.
fn add(gvl: &mut Gvl<'_>, number: u64, object: VALUE) -> bool {
    let map = with_maps(gvl, |maps| maps.open());
    let is_added = map.is_some_and(|map| map.set(gvl, number, object));
    if is_added && with_maps(gvl, WeakMaps::added) == Some(true) {
        fill(gvl);
    }
    is_added
}

/// The map for new numbers is full, if not too many have gone.
fn fill(gvl: &mut Gvl<'_>) {
    let map = with_maps(gvl, |maps| maps.open());
    let size = map
        .and_then(|map| map.numbers(gvl))
        .map_or(0, |it| it.len());
    if with_maps(gvl, |maps| maps.counted(size)) == Some(true)
        && let Some(next) = WeakMap::new(gvl)
    {
        with_maps(gvl, |maps| maps.fill(next));
        roots::keep_map_alive(next);
    }
}

/// Looks which numbers are there still. A full map in which little is left that anybody asks for is let go of,
/// and the rest of it goes to the open one. Returns false if there is no memory for it.
fn look(gvl: &mut Gvl<'_>) -> bool {
    let Some((open, full)) = with_maps(gvl, |maps| (maps.open(), maps.full())) else {
        return false;
    };
    let all: Vec<_> = full.into_iter().chain([open]).collect();
    let numbers: Vec<_> = all.iter().map(|map| map.numbers(gvl)).collect();
    if numbers.iter().any(Option::is_none) {
        return false;
    }
    let alive = numbers.iter().flatten().flatten().copied().collect();
    let has_looked = with_sampler(gvl, |it| it.looked(alive)).is_some();
    for (map, numbers) in all.into_iter().zip(numbers) {
        let followed: Option<Vec<u64>> = with_sampler(gvl, |it| {
            let numbers = numbers.into_iter().flatten();
            numbers.filter(|number| it.follows(*number)).collect()
        });
        if let Some(followed) = followed
            && map.object() != open.object()
            && WeakMaps::is_sparse(followed.len())
        {
            move_all(gvl, map, followed);
        }
    }
    has_looked
}

/// Which numbers are in which map. Makes objects; others may change the maps from here on.
pub fn listed(gvl: &mut Gvl<'_>) -> Vec<(WeakMap, Vec<u64>)> {
    let left = COUNTDOWN.pause();
    let maps = all(gvl).into_iter();
    let listed = maps.filter_map(|map| Some((map, map.numbers(gvl)?)));
    let listed = listed.collect();
    COUNTDOWN.go_on(left);
    listed
}

/// Finds the objects of those numbers that were listed and are `wanted`, as far as they live; a number may be found
/// twice. Makes no objects, and lets no other thread run.
pub fn each_listed(
    gvl: &mut Gvl<'_>,
    listed: &[(WeakMap, Vec<u64>)],
    wanted: impl Fn(u64) -> bool,
    mut found: impl FnMut(u64, VALUE),
) {
    let maps = all(gvl);
    for (map, numbers) in listed {
        let is_there = maps.iter().any(|it| it.object() == map.object());
        for number in numbers.iter().copied().filter(|it| wanted(*it)) {
            let mut object = is_there.then(|| map.get(gvl, number)).flatten();
            // What is left of a map may have come to another one since, mostly to the newest.
            let mut others = maps.iter().rev();
            while object.is_none()
                && let Some(other) = others.next()
            {
                object = other.get(gvl, number);
            }
            if let Some(object) = object {
                found(number, object);
            }
        }
    }
}

/// In a copy of the program: no sample is drawn there, and nothing is put away.
pub fn end_in_copy() {
    COUNTDOWN.pause();
    HELD.store(0, Relaxed);
    IN_COPY.store(true, Relaxed);
}

/// All maps; the open one is the last.
fn all(gvl: &Gvl<'_>) -> Vec<WeakMap> {
    let maps = with_maps(gvl, |maps| (maps.open(), maps.full()));
    maps.map_or_else(Vec::new, |(open, full)| {
        full.into_iter().chain([open]).collect()
    })
}

fn move_all(gvl: &mut Gvl<'_>, map: WeakMap, numbers: Vec<u64>) {
    for number in numbers {
        let moved = map.get(gvl, number).map(|object| add(gvl, number, object));
        if moved == Some(false) {
            return;
        }
    }
    with_maps(gvl, |maps| maps.let_go(map));
}

fn with_maps<T>(gvl: &Gvl<'_>, act: impl FnOnce(&mut WeakMaps) -> T) -> Option<T> {
    let mut maps = sampling(gvl)?.sums.objects_in_use.as_ref()?.borrow(gvl)?;
    Some(act(&mut maps))
}

fn with_sampler<T>(gvl: &Gvl<'_>, act: impl FnOnce(&mut ObjectSampler) -> T) -> Option<T> {
    let session = sampling(gvl)?;
    let mut sampler = session.sums.sampled_objects.as_ref()?.borrow(gvl)?;
    Some(act(&mut sampler))
}
