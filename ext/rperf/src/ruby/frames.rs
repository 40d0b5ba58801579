//! The VM's frames: backtraces, and what can be asked of a frame without making an object. At
//! safepoints, in hooks and in the signal handler, with the GVL.

use super::threads::{HeldGvl, RubyThread};
use super::version::{self, FRAME_KINDS, KIND_SHIFT};
use super::{blocks, process, ractor};
use rb_sys::VALUE;
use rperf_sampling::other_ractors;
use rperf_sampling::threads::ThreadState;
use rperf_tracing::TraceVm;
use rperf_vm::{
    Backtrace, FiberWord, FrameLayout, FrameWord, GC_WATCH, Gvl, MethodWord, Stack, StackDigest,
    TickVm, Unknown, VmFrames, object_of,
};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The VM's internal objects have the kinds that are expected: a session has looked.
static KINDS_ARE_KNOWN: AtomicBool = AtomicBool::new(false);

/// A stack with such kinds had code of its own on it, as that of the thread that loads the extension
/// has. There are stacks without, of methods and blocks in them only.
static CODE_WAS_SEEN: AtomicBool = AtomicBool::new(false);

/// Frames at most among which one of Ruby code is looked for.
const NEAR: usize = 32;
const NEXT: usize = 3;

const NIL: VALUE = rb_sys::Qnil as VALUE;

const _: () = assert!(size_of::<VALUE>() == size_of::<FrameWord>());

/// The VM as the calling thread sees it, which has the GVL of its Ractor.
pub struct RubyVm<'g, Proof = Gvl<'g>>(PhantomData<&'g Proof>);

impl<Proof> RubyVm<'_, Proof> {
    /// The backtrace as the VM has it, where a block is the method that has it.
    #[inline]
    pub(super) fn methods(&self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let (limit, frames, lines) = buffers(frames, lines);
        // SAFETY: the buffers are as long as they say. The call doesn't raise.
        let depth = unsafe { rb_sys::rb_profile_frames(0, limit, frames, lines) };
        usize::try_from(depth).unwrap_or(0)
    }
}

impl<'g, Proof: HeldGvl> RubyVm<'g, Proof> {
    /// For a thread that has proof of it.
    #[inline]
    pub fn new(_: &'g Proof) -> Self {
        RubyVm(PhantomData)
    }
}

impl RubyVm<'_> {
    /// A number for where `thread`, the calling one, is in the program; 0 if that isn't known.
    #[inline]
    pub fn place_of(&self, thread: RubyThread<'_>) -> usize {
        // SAFETY: it has the GVL.
        unsafe { blocks::place(ractor::context_of(thread)) }
    }

    /// The digest of the stack of `thread`, the calling one, in a hook: as long as it is the same, so is
    /// the backtrace. `None` if it may not be: while a collection is marking, if one wasn't told, and with
    /// other Ractors, whose collections may not count.
    #[inline]
    pub fn digest_of(&self, thread: RubyThread<'_>) -> Option<StackDigest> {
        let collections = process::collections();
        if other_ractors() || !GC_WATCH.is_between_marks(collections) {
            return None;
        }
        // SAFETY: it has the GVL, and its own hook runs.
        unsafe { blocks::digest(self, ractor::context_of(thread), collections) }
    }
}

/// Stands for the proof in the handler of a tick's signal, which has interrupted a thread with its
/// Ractor's GVL.
pub struct Interrupted(());

impl<Proof> Clone for RubyVm<'_, Proof> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Proof> Copy for RubyVm<'_, Proof> {}

impl<Proof> VmFrames for RubyVm<'_, Proof> {
    fn layout(&self) -> Result<&'static FrameLayout, Unknown> {
        // Frames are found from the thread on.
        ractor::known_layout().and_then(|_| version::frame_layout())
    }

    fn fills_frames_late(&self) -> bool {
        version::are_frames_late()
    }

    fn context(&self) -> usize {
        // SAFETY: on a Ruby thread, which keeps its object as long as it runs.
        let thread: RubyThread<'_> = unsafe { RubyThread::from_raw(rb_sys::rb_thread_current()) };
        ractor::context_of(thread)
    }

    unsafe fn line_at(&self, iseq: FrameWord, place: usize) -> u32 {
        let iseq = ptr::with_exposed_provenance(iseq);
        // SAFETY: by this function's contract. The call only reads. A negative line wraps.
        version::line_of_instruction().map_or(0, |line| unsafe { line(iseq, place) })
    }

    unsafe fn is_code(&self, object: FrameWord) -> bool {
        // SAFETY: by this function's contract.
        are_kinds_known() && unsafe { kind(object_of(object)) } == Some(FRAME_KINDS.code)
    }

    #[inline]
    fn backtrace(&self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let depth = self.methods(frames, lines);
        // SAFETY: the VM has just read these frames.
        unsafe { blocks::mark(self, self.context(), &mut frames[..depth]) };
        depth
    }

    fn depth(&self) -> i64 {
        // SAFETY: on a Ruby thread; a subtraction, whose result is a small Integer.
        unsafe { rb_sys::rb_debug_inspector_current_depth() as i64 >> 1 }
    }

    fn blocks_around_top(&self) -> usize {
        // SAFETY: asked at a tick only, in the handler, which is ready for faults.
        unsafe { blocks::around_top(self.context()) }
    }

    fn line(&self) -> u32 {
        // SAFETY: on a Ruby thread; only reads. A negative line wraps; `shown_line` makes it none.
        unsafe { rb_sys::rb_sourceline() as u32 }
    }

    #[inline]
    fn fiber(&self) -> FiberWord {
        // SAFETY: on a Ruby thread, which keeps its state as long as it runs; one of another
        // Ractor has none in this slot.
        let (thread, state) = unsafe {
            let thread = RubyThread::from_raw(rb_sys::rb_thread_current());
            (thread, thread.known_state_without_gvl())
        };
        let is_known = state.is_some_and(ThreadState::knows_fiber);
        if is_known {
            thread.present_fiber()
        } else {
            FiberWord::default()
        }
    }

    fn file(&self) -> usize {
        // SAFETY: as for `line`.
        unsafe { rb_sys::rb_sourcefile().addr() }
    }

    fn method(&self) -> (MethodWord, FrameWord) {
        let (mut method, mut owner) = (0, 0);
        // SAFETY: on a Ruby thread; reads the topmost frame, and writes both if it belongs
        // to a method.
        unsafe { rb_sys::rb_frame_method_id_and_class(&raw mut method, &raw mut owner) };
        (method as MethodWord, owner as FrameWord)
    }

    unsafe fn are_frames(&self, words: &[FrameWord]) -> bool {
        // SAFETY: by this function's contract.
        let is_one = |&word: &usize| FRAME_KINDS.have(unsafe { kind(object_of(word)) });
        are_kinds_known() && words.iter().all(is_one)
    }

    unsafe fn file_of(&self, frame: FrameWord) -> usize {
        // SAFETY: a frame that is alive; the path is nil or a String.
        unsafe {
            let path = rb_sys::rb_profile_frame_path(object(frame));
            if path == NIL {
                0
            } else {
                rb_sys::RSTRING_PTR(path).addr()
            }
        }
    }

    unsafe fn first_line_of(&self, frame: FrameWord) -> Option<u32> {
        // SAFETY: by this function's contract. The line is nil or a small Integer.
        let line = unsafe { rb_sys::rb_profile_frame_first_lineno(object(frame)) };
        (line != NIL).then_some((line as isize >> 1) as u32)
    }

    unsafe fn has_name(&self, frame: FrameWord, method: MethodWord) -> bool {
        // SAFETY: a frame that is alive. The name of a method is a String that lives as long
        // as the VM.
        unsafe {
            rb_sys::rb_profile_frame_method_name(object(frame))
                == rb_sys::rb_id2str(method as rb_sys::ID)
        }
    }
}

impl TickVm for RubyVm<'static, Interrupted> {
    unsafe fn of_calling_thread() -> Self {
        RubyVm(PhantomData)
    }

    fn is_collecting(&self) -> bool {
        process::is_collecting()
    }

    fn collections(&self) -> u64 {
        process::collections()
    }
}

/// At events, where all frames of the stack are objects.
impl TraceVm for RubyVm<'_> {
    #[inline]
    fn depth(&self) -> u32 {
        VmFrames::depth(self) as u32
    }

    #[inline]
    fn frames(&self, frames: &mut [FrameWord]) -> usize {
        self.methods(frames, &mut [])
    }

    #[inline]
    fn mark_blocks(&self, frames: &mut [FrameWord]) {
        // SAFETY: the VM has just read these frames.
        unsafe { blocks::mark(self, self.context(), frames) };
    }

    fn is_c_method(&self, frame: FrameWord) -> bool {
        // SAFETY: it is on the stack.
        unsafe { VmFrames::is_c_method(self, frame) }
    }

    fn is_called(&self, frame: FrameWord) -> bool {
        let frame = object(frame);
        // SAFETY: it is on the stack; the answers are nil or Strings that it holds.
        unsafe {
            // The body of a file or class has a label that is nobody's method, nor inside one.
            rb_sys::rb_profile_frame_method_name(frame) != NIL
                || rb_sys::rb_profile_frame_label(frame)
                    != rb_sys::rb_profile_frame_base_label(frame)
        }
    }

    fn is_named_block(&self, frame: FrameWord) -> bool {
        let frame = object(frame);
        // SAFETY: it is on the stack; the labels are Strings that it holds. Methods have one label.
        unsafe {
            rb_sys::rb_profile_frame_label(frame) != rb_sys::rb_profile_frame_base_label(frame)
        }
    }

    fn is_bare_code(&self, frame: FrameWord) -> bool {
        // SAFETY: it is on the stack.
        unsafe { VmFrames::is_code(self, frame) }
    }

    fn method_of_code(&self) -> Option<(usize, FrameWord)> {
        let (method, owner) = self.method();
        (method != 0 && owner != 0).then_some((method, owner))
    }
}

/// The kind of an internal object of the VM; `None` for what the program sees.
///
/// # Safety
/// If it is no object, reading it may fault: the caller is ready for that.
pub unsafe fn kind(word: FrameWord) -> Option<usize> {
    if word == 0 || !word.is_multiple_of(align_of::<VALUE>()) {
        return None;
    }
    // SAFETY: an object begins with its flags; the rest by this function's contract.
    let flags = unsafe { (word as *const VALUE).read_volatile() };
    let object_type = flags & rb_sys::ruby_value_type::RUBY_T_MASK as VALUE;
    let is_internal = object_type == rb_sys::ruby_value_type::RUBY_T_IMEMO as VALUE;
    is_internal.then_some((flags as usize >> KIND_SHIFT) & 15)
}

/// Whether internal objects of the VM have the kinds that are expected.
pub fn are_kinds_known() -> bool {
    KINDS_ARE_KNOWN.load(Relaxed)
}

/// Why they aren't, if they aren't.
pub fn unknown_kinds() -> Option<Unknown> {
    let reason = || version::has_frame_kinds().err().unwrap_or(Unknown::Form);
    (!are_kinds_known()).then(reason)
}

/// Looks at the calling thread's stack, which has a method of C on top, whether the VM's data is as
/// expected: kinds of frames, and what tells blocks. As the extension is loaded, and as a session
/// begins. Outside of hooks.
pub fn learn(gvl: &Gvl<'_>) {
    let vm = RubyVm::new(gvl);
    blocks::learn(&vm, |frames| vm.methods(frames, &mut []));
    let mut frames = [0; NEAR];
    let depth = vm.methods(&mut frames, &mut []);
    // SAFETY: they are on the stack, so all are objects.
    let kinds = frames.map(|frame| unsafe { kind(frame) });
    let fit = version::has_frame_kinds().is_ok() && FRAME_KINDS.fit(&kinds[..depth]);
    if fit && FRAME_KINDS.show_code(&kinds[..depth]) {
        CODE_WAS_SEEN.store(true, Relaxed);
    }
    KINDS_ARE_KNOWN.store(fit && CODE_WAS_SEEN.load(Relaxed), Relaxed);
}

/// Takes the calling thread's backtrace, and returns its depth. The VM gives no line for a topmost
/// frame that is compiled, as it may be anywhere. At safepoints and in hooks it has one nearly
/// always: errors are raised and objects allocated there, which needs the line. It has none where a
/// compiler collects garbage before it compiles a method that has been called.
pub fn take_complete(vm: RubyVm<'_>, backtrace: &mut Backtrace) -> usize {
    let (frames, lines) = backtrace.room();
    let depth = vm.backtrace(frames, lines);
    let lacks_line = depth > 0 && lines.first() == Some(&0);
    if lacks_line && !TraceVm::is_c_method(&vm, frames[0]) {
        // SAFETY: at a safepoint or in a hook, by what `RubyVm` stands for.
        if unsafe { blocks::is_top_placed(&vm, vm.context()) } {
            lines[0] = vm.line();
        }
    }
    depth
}

/// The innermost frame of Ruby code, and the line in execution there: where an object is made. 0 for
/// both if there is none among the topmost ones. The frame has a program counter of its own: Ruby's
/// hooks on new objects ask for the line too (`newobj_i` of objspace), so compilers store it before they
/// make one (`gen_prepare_call_with_gc` of ZJIT), and of a method that is called before they compile it
/// (`function_stub_hit`).
pub fn innermost_ruby_frame(vm: RubyVm<'_>) -> (FrameWord, u32) {
    let mut frames = [0; NEAR];
    // Nearly always one of the first is it.
    for room in [NEXT, NEAR] {
        let found = vm.methods(&mut frames[..room], &mut []);
        let mut shown = frames[..found].iter();
        if let Some(place) = shown.position(|frame| !TraceVm::is_c_method(&vm, *frame)) {
            TraceVm::mark_blocks(&vm, &mut frames[..=place]);
            // To ask for its line alone costs less than to have those of all frames.
            return (frames[place], vm.line());
        }
    }
    (0, 0)
}

/// Takes the calling thread's backtrace from the innermost frame of Ruby code on, if there is one: where
/// an object is made. As for [`take_complete`].
pub fn take_ruby_stack<'a>(vm: RubyVm<'_>, backtrace: &'a mut Backtrace) -> Stack<'a> {
    let depth = take_complete(vm, backtrace);
    let frames = backtrace.stack(depth).frames.iter();
    let of_c = frames.take_while(|frame| TraceVm::is_c_method(&vm, **frame));
    let of_c = Some(of_c.count()).filter(|it| *it < depth);
    backtrace.stack_up_to(depth - of_c.unwrap_or(0), depth)
}

impl RubyThread<'_> {
    /// Writes the thread's backtrace as [`VmFrames::backtrace`] does.
    pub fn backtrace(self, vm: RubyVm<'_>, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let depth = self.methods(frames, lines);
        // SAFETY: the VM has just read these frames.
        unsafe { blocks::mark(&vm, ractor::context_of(self), &mut frames[..depth]) };
        depth
    }

    fn methods(self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let (limit, frames, lines) = buffers(frames, lines);
        // SAFETY: the buffers are as long as they say, and the thread is alive.
        let depth =
            unsafe { rb_sys::rb_profile_thread_frames(self.object(), 0, limit, frames, lines) };
        usize::try_from(depth).unwrap_or(0)
    }

    /// Whether the thread has begun to run and not ended: then it has frames.
    pub fn has_frames(self) -> bool {
        self.methods(&mut [0], &mut []) > 0
    }
}

/// The object that a frame's word stands for.
pub fn object(frame: FrameWord) -> VALUE {
    object_of(frame) as VALUE
}

/// The buffers as the VM wants them: how many frames fit, where they go, and their lines, which
/// go nowhere if there is no buffer for them.
#[inline]
fn buffers(frames: &mut [FrameWord], lines: &mut [u32]) -> (i32, *mut VALUE, *mut i32) {
    let limit = i32::try_from(frames.len()).unwrap_or(i32::MAX);
    let has_lines = lines.len() >= frames.len();
    let lines = if has_lines {
        lines.as_mut_ptr()
    } else {
        ptr::null_mut()
    };
    (limit, frames.as_mut_ptr().cast(), lines.cast())
}
