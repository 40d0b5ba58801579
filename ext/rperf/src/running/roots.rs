//! The objects that keep frames alive, and classes of objects, for as long as a session has them, or a
//! profile that gives them names: one for what is in tables, and one for the stacks taken at ticks. In
//! collections, on any Ractor's thread.

use super::{Kind, unguarded};
use crate::ruby::data_type::DataType;
use crate::ruby::frames::object;
use crate::ruby::root_object::RootObject;
use crate::ruby::weak_map::WeakMap;
use rperf_sampling::NewFrames;
use rperf_sampling::objects::ObjectSampler;
use rperf_tracing::{TargetedTracer, TracedFrame, Tracer};
use rperf_vm::{Allocations, FrameNames, FrameWord, Gvl, GvlCell, JobId, NamingJobs};
use std::ffi::c_void;

/// Frames and classes that are being given names, apart from the session's. All have been its own: the
/// collector was told of them.
static NAMING: GvlCell<NamingJobs> = GvlCell::new(NamingJobs::new());

/// The VM's view of the tables, with barriers by [`keep_alive`] and its like.
static TABLES: RootObject = RootObject::new(
    DataType::new(c"rperf frame roots", Some(mark_tables))
        .with_barriers(Some(end_with_vm), memory_size),
);

/// The VM's view of what the signal handler has written, which can't run write barriers.
static TICK_STACKS: DataType = DataType::new(c"rperf tick roots", Some(mark_tick_stacks));

/// The VM's view of new objects that are held for a moment: marked in each collection, so that the hook on
/// new objects needs no barrier.
static HELD_OBJECTS: DataType = DataType::new(c"rperf new objects", Some(mark_held));

/// Makes the objects, which live as long as the process. With the GVL.
pub fn init() {
    TABLES.make();
    TICK_STACKS.permanent_object();
    HELD_OBJECTS.permanent_object();
}

/// Tells the collector of frames that have just entered the frame table.
pub fn keep_alive(new_frames: &NewFrames<'_>) {
    TABLES.keep_alive(new_frames.iter().copied());
}

/// Tells the collector of frames and classes of objects that are new.
#[inline]
pub fn keep_objects_alive(objects: &mut Allocations) {
    TABLES.keep_alive(objects.new_words().iter().copied());
}

/// Tells the collector of frames and classes of sampled objects that are new.
pub fn keep_sampled_alive(objects: &mut ObjectSampler) {
    TABLES.keep_alive(objects.new_words());
}

/// Tells the collector of a map that the session has just got.
pub fn keep_map_alive(map: WeakMap) {
    TABLES.keep_alive([map.object() as FrameWord].into_iter());
}

/// Tells the collector of the frames that are new to the tracer.
#[inline]
pub fn keep_traced_alive(tracer: &mut Tracer) {
    TABLES.keep_alive(tracer.new_frames().iter().map(|frame| frame.word));
}

/// Tells the collector of the classes of objects that are new to the tracer.
#[inline]
pub fn keep_classes_alive(tracer: &mut Tracer) {
    TABLES.keep_alive(tracer.new_classes().iter().copied());
}

/// Tells the collector of what is new to the tracer of chosen methods: frames, and code.
#[inline]
pub fn keep_chosen_alive(tracer: &mut TargetedTracer) {
    tracer.each_new_root(|word| TABLES.keep_alive([word].into_iter()));
}

/// Keeps `frames` alive, which the session has, or had until just now, until they have names.
pub fn keep_until_named(gvl: &Gvl<'_>, frames: FrameNames) -> Option<JobId> {
    Some(NAMING.borrow(gvl)?.add(frames))
}

/// Keeps the `frames` and classes of a tracer alive until they have names.
pub fn keep_traced_until_named(gvl: &Gvl<'_>, frames: &[TracedFrame]) -> Option<JobId> {
    let words = frames.iter().map(|frame| frame.word).collect();
    keep_until_named(gvl, FrameNames::new(words, Vec::new()))
}

/// Keeps `words`, which are frames and classes of objects, alive until they have names.
pub fn keep_words_until_named(gvl: &Gvl<'_>, words: &[FrameWord]) -> Option<JobId> {
    TABLES.keep_alive(words.iter().copied());
    keep_until_named(gvl, FrameNames::new(words.to_vec(), Vec::new()))
}

/// What `job` keeps alive.
pub fn with_unnamed<T>(
    gvl: &Gvl<'_>,
    job: JobId,
    act: impl FnOnce(&mut FrameNames) -> T,
) -> Option<T> {
    NAMING.borrow(gvl)?.get(job).map(act)
}

/// What `job` has kept alive.
pub fn take_named(gvl: &Gvl<'_>, job: JobId) -> FrameNames {
    let jobs = NAMING.borrow(gvl);
    jobs.map_or_else(FrameNames::default, |mut jobs| jobs.take(job))
}

/// In a forked child: the threads that were naming frames are not there.
pub fn forget_unnamed(gvl: &Gvl<'_>) {
    if let Some(mut jobs) = NAMING.borrow(gvl) {
        jobs.forget();
    }
}

/// Marks, and so pins, every frame and class.
unsafe extern "C" fn mark_tables(_: *mut c_void) {
    // SAFETY: freeing a session allocates no Ruby object, so no collection runs then. It runs
    // only at the VM's safepoints, and a borrower of a cell reaches none: nothing writes to
    // the tables meanwhile, which hold live objects only, as they were marked each time.
    unsafe {
        let mark = |word: FrameWord| rb_sys::rb_gc_mark(object(word));
        if let Some(running) = unguarded() {
            match &running.kind {
                Kind::Sampling(session) => {
                    session.each_frame(mark);
                    session.sums.words().for_each(mark);
                }
                Kind::Tracing(session) | Kind::Calibration(session) => {
                    let tracer = session.tracer.peek();
                    tracer.frames().iter().for_each(|it| mark(it.word));
                    tracer.classes().iter().copied().for_each(mark);
                }
                Kind::Chosen => {}
            }
            let chosen = running.chosen.iter();
            chosen
                .flat_map(|it| it.tracer.peek().roots())
                .for_each(mark);
        }
        NAMING.peek().unnamed().for_each(mark);
    }
}

/// Marks, and pins, what is an object; a word that is none, because a stack was misread, is
/// left alone. Objects are also asked for what they refer to outside of collections
/// (ObjectSpace.reachable_objects_from).
unsafe extern "C" fn mark_tick_stacks(_: *mut c_void) {
    // SAFETY: as in `mark_tables`: no reader of the log is at work.
    unsafe {
        if let Some(Kind::Sampling(session)) = unguarded().map(|it| &it.kind) {
            session.each_tick_root(|word| rb_sys::rb_gc_mark_maybe(object(word)));
        }
    }
}

/// Marks, and pins, new objects that are held.
unsafe extern "C" fn mark_held(_: *mut c_void) {
    // SAFETY: as in `mark_tables`.
    unsafe {
        if let Some(Kind::Sampling(session)) = unguarded().map(|it| &it.kind) {
            let held = session.sums.held();
            held.for_each(|word| rb_sys::rb_gc_mark(object(word)));
        }
    }
}

/// The VM frees its last objects: all at_exit blocks and finalizers are done, and
/// the VM itself is there still. The worker, which calls into it, must end now.
unsafe extern "C" fn end_with_vm(_: *mut c_void) {
    // SAFETY: the object is kept for as long as the VM runs Ruby code.
    unsafe { super::end_with_vm() };
}

unsafe extern "C" fn memory_size(_: *const c_void) -> rb_sys::size_t {
    // SAFETY: with the GVL (ObjectSpace.memsize_of), or as in `mark_tables`.
    unsafe {
        let Some(running) = unguarded() else {
            return 0;
        };
        let of_kind = match &running.kind {
            Kind::Sampling(session) => session.memory() + session.sums.memory(),
            Kind::Tracing(session) | Kind::Calibration(session) => session.tracer.peek().memory(),
            Kind::Chosen => 0,
        };
        let chosen = running.chosen.as_ref();
        (of_kind + chosen.map_or(0, |it| it.tracer.peek().memory())) as rb_sys::size_t
    }
}
