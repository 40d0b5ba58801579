//! The object that keeps alive the frames of the traced session and of chosen methods, the classes of
//! its objects, and what a session that has ended had until it has names. In collections, on any
//! Ractor's thread.

use super::chosen::TARGETS;
use super::tracing::TRACE;
use crate::ruby::data_type::DataType;
use crate::ruby::frames::object;
use crate::ruby::root_object::RootObject;
use rperf_tracing::{TargetedTracer, TracedFrame, Tracer};
use rperf_vm::{FrameNames, Gvl, GvlCell, JobId, NamingJobs};
use std::ffi::c_void;

/// Frames and classes that are being given names, apart from the session's. All have been its own:
/// the collector was told of them.
static NAMING: GvlCell<NamingJobs> = GvlCell::new(NamingJobs::new());

/// The VM's view of the session's frames, with barriers by [`keep_alive`].
static FRAMES: RootObject = RootObject::new(
    DataType::new(c"rperf trace roots", Some(mark)).with_barriers(None, memory_size),
);

/// Makes the object, which lives as long as the process. With the GVL.
pub fn init() {
    FRAMES.make();
}

/// Tells the collector of the frames that are new to the tracer.
#[inline]
pub fn keep_alive(tracer: &mut Tracer) {
    FRAMES.keep_alive(tracer.new_frames().iter().map(|frame| frame.word));
}

/// Tells the collector of the classes of objects that are new to the tracer.
#[inline]
pub fn keep_classes_alive(tracer: &mut Tracer) {
    FRAMES.keep_alive(tracer.new_classes().iter().copied());
}

/// Keeps `frames` and classes alive, which the session has, until they are let go of.
pub fn keep_until_named(gvl: &Gvl<'_>, frames: &[TracedFrame]) -> Option<JobId> {
    let words = frames.iter().map(|frame| frame.word).collect();
    Some(NAMING.borrow(gvl)?.add(FrameNames::new(words, Vec::new())))
}

/// Lets go of the frames and classes of `job`, which have names now.
pub fn let_go(gvl: &Gvl<'_>, job: JobId) {
    if let Some(mut jobs) = NAMING.borrow(gvl) {
        jobs.take(job);
    }
}

/// In a forked child: the threads that were naming frames are not there.
pub fn forget_unnamed(gvl: &Gvl<'_>) {
    if let Some(mut jobs) = NAMING.borrow(gvl) {
        jobs.forget();
    }
}

/// Tells the collector of what is new to the tracer of chosen methods: frames, and code.
#[inline]
pub fn keep_targets_alive(tracer: &mut TargetedTracer) {
    tracer.each_new_root(|word| FRAMES.keep_alive([word].into_iter()));
}

/// Marks, and so pins, every frame.
unsafe extern "C" fn mark(_: *mut c_void) {
    // SAFETY: freeing a session allocates no Ruby object, so no collection runs then. It runs
    // only at the VM's safepoints, and a borrower of the tracer reaches none: nothing writes to
    // its frames meanwhile, which are live objects only, as they were marked each time.
    unsafe {
        if let Some(session) = TRACE.get_unguarded() {
            let tracer = session.tracer.peek();
            let frames = tracer.frames().iter().map(|frame| frame.word);
            let words = frames.chain(tracer.classes().iter().copied());
            words.for_each(|word| rb_sys::rb_gc_mark(object(word)));
        }
        let unnamed = NAMING.peek().unnamed();
        unnamed.for_each(|frame| rb_sys::rb_gc_mark(object(frame)));
        if let Some(targets) = TARGETS.get_unguarded() {
            let roots = targets.tracer.peek().roots();
            roots.for_each(|word| rb_sys::rb_gc_mark(object(word)));
        }
    }
}

unsafe extern "C" fn memory_size(_: *const c_void) -> rb_sys::size_t {
    // SAFETY: with the GVL (ObjectSpace.memsize_of), or as in `mark`.
    unsafe {
        let memory = TRACE.get_unguarded().map(|it| it.tracer.peek().memory());
        let targets = TARGETS.get_unguarded().map(|it| it.tracer.peek().memory());
        (memory.unwrap_or(0) + targets.unwrap_or(0)) as rb_sys::size_t
    }
}
