//! The VM's frames: backtraces, and what can be asked of a frame without making an object. At
//! safepoints, in hooks and in the signal handler, with the GVL.

use super::process;
use super::threads::{HeldGvl, RubyThread};
use rb_sys::VALUE;
use rperf_engine::threads::ThreadState;
use rperf_engine::trace::TraceVm;
use rperf_engine::{
    Backtrace, FiberWord, FrameLayout, FrameWord, Gvl, MethodWord, TickVm, VmFrames,
};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::ptr;

/// The beginning of an execution context of the VM.
#[repr(C)]
struct ExecutionContext {
    _stack: [usize; 2],
    frame: usize,
}

/// The beginning of a control frame.
#[repr(C)]
struct ControlFrame {
    program_counter: usize,
    _stack_pointer: usize,
    iseq: usize,
}

/// The beginning of the object of an instruction sequence, and of its body.
#[repr(C)]
struct Iseq {
    _flags: usize,
    _wrapper: usize,
    body: usize,
}

#[repr(C)]
struct IseqBody {
    _type: u32,
    size: u32,
    encoded: usize,
}

/// The kinds of internal objects that stand for frames: method entries and instruction
/// sequences. The same in Ruby 3.4 and 4.0; a session takes no stacks at ticks where they aren't.
const FRAME_KINDS: [VALUE; 2] = [6, CODE_KIND];
const CODE_KIND: VALUE = 7;

/// Where an object's flags have its kind, if it is an internal one.
const KIND_SHIFT: u32 = 12;

/// Frames at most among which one of Ruby code is looked for.
const NEAR: usize = 32;
const NEXT: usize = 3;

const NIL: VALUE = rb_sys::Qnil as VALUE;

const _: () = assert!(size_of::<VALUE>() == size_of::<FrameWord>());

/// The VM as the calling thread sees it, which has the GVL of its Ractor.
pub struct RubyVm<'g, Proof = Gvl<'g>>(PhantomData<&'g Proof>);

impl<'g, Proof: HeldGvl> RubyVm<'g, Proof> {
    /// For a thread that has proof of it.
    #[inline]
    pub fn new(_: &'g Proof) -> Self {
        RubyVm(PhantomData)
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
    const LAYOUT: FrameLayout = FrameLayout {
        frame_in_context: offset_of!(ExecutionContext, frame),
        program_counter: offset_of!(ControlFrame, program_counter),
        iseq: offset_of!(ControlFrame, iseq),
        body: offset_of!(Iseq, body),
        size: offset_of!(IseqBody, size),
        encoded: offset_of!(IseqBody, encoded),
    };

    #[inline]
    fn backtrace(&self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let (limit, frames, lines) = buffers(frames, lines);
        // SAFETY: the buffers are as long as they say. The call doesn't raise.
        let depth = unsafe { rb_sys::rb_profile_frames(0, limit, frames, lines) };
        usize::try_from(depth).unwrap_or(0)
    }

    fn depth(&self) -> i64 {
        // SAFETY: on a Ruby thread; a subtraction, whose result is a small Integer.
        unsafe { rb_sys::rb_debug_inspector_current_depth() as i64 >> 1 }
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
        words.iter().all(|&word| {
            if word == 0 || !word.is_multiple_of(align_of::<VALUE>()) {
                return false;
            }
            // SAFETY: an object begins with its flags. What is no object can fault: the
            // callers are ready for that.
            let flags = unsafe { (word as *const VALUE).read_volatile() };
            let object_type = flags & rb_sys::ruby_value_type::RUBY_T_MASK as VALUE;
            object_type == rb_sys::ruby_value_type::RUBY_T_IMEMO as VALUE
                && FRAME_KINDS.contains(&((flags >> KIND_SHIFT) & 15))
        })
    }

    unsafe fn file_of(&self, frame: FrameWord) -> usize {
        // SAFETY: a frame that is alive; the path is nil or a String.
        unsafe {
            let path = rb_sys::rb_profile_frame_path(frame as VALUE);
            if path == NIL {
                0
            } else {
                rb_sys::RSTRING_PTR(path).addr()
            }
        }
    }

    unsafe fn first_line_of(&self, frame: FrameWord) -> Option<u32> {
        // SAFETY: by this function's contract. The line is nil or a small Integer.
        let line = unsafe { rb_sys::rb_profile_frame_first_lineno(frame as VALUE) };
        (line != NIL).then_some((line as isize >> 1) as u32)
    }

    unsafe fn has_name(&self, frame: FrameWord, method: MethodWord) -> bool {
        // SAFETY: a frame that is alive. The name of a method is a String that lives as long
        // as the VM.
        unsafe {
            rb_sys::rb_profile_frame_method_name(frame as VALUE)
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
        self.backtrace(frames, &mut [])
    }

    fn is_c_method(&self, frame: FrameWord) -> bool {
        // SAFETY: it is on the stack.
        unsafe { VmFrames::is_c_method(self, frame) }
    }

    fn is_called(&self, frame: FrameWord) -> bool {
        let frame = frame as VALUE;
        // SAFETY: it is on the stack; the answers are nil or Strings that it holds.
        unsafe {
            // The body of a file or class has a label that is nobody's method, nor inside one.
            rb_sys::rb_profile_frame_method_name(frame) != NIL
                || rb_sys::rb_profile_frame_label(frame)
                    != rb_sys::rb_profile_frame_base_label(frame)
        }
    }

    fn is_bare_code(&self, frame: FrameWord) -> bool {
        // SAFETY: it is on the stack, and an object begins with its flags.
        let flags = unsafe { (frame as *const VALUE).read() };
        (flags >> KIND_SHIFT) & 15 == CODE_KIND
    }

    fn method_of_code(&self) -> Option<(usize, FrameWord)> {
        let (method, owner) = self.method();
        (method != 0 && owner != 0).then_some((method, owner))
    }
}

/// Takes the calling thread's backtrace, and returns its depth. The VM gives no line for a topmost
/// frame that is compiled, as it may be anywhere. At safepoints and in hooks it has one all the
/// same: errors are raised and objects allocated there, which needs the line.
pub fn take_complete(vm: RubyVm<'_>, backtrace: &mut Backtrace) -> usize {
    let (frames, lines) = backtrace.room();
    let depth = vm.backtrace(frames, lines);
    if depth > 0 && lines.first() == Some(&0) && !TraceVm::is_c_method(&vm, frames[0]) {
        lines[0] = vm.line();
    }
    depth
}

/// The innermost frame of Ruby code, and the line in execution there: where an object is made. 0 for
/// both if there is none among the topmost ones.
pub fn innermost_ruby_frame(vm: RubyVm<'_>) -> (FrameWord, u32) {
    let mut frames = [0; NEAR];
    // Nearly always one of the first is it.
    for room in [NEXT, NEAR] {
        let found = vm.backtrace(&mut frames[..room], &mut []);
        let mut shown = frames[..found].iter();
        if let Some(&frame) = shown.find(|frame| !TraceVm::is_c_method(&vm, **frame)) {
            // To ask for its line alone costs less than to have those of all frames.
            return (frame, vm.line());
        }
    }
    (0, 0)
}

impl RubyThread<'_> {
    /// Writes the thread's backtrace as [`VmFrames::backtrace`] does.
    pub fn backtrace(self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        let (limit, frames, lines) = buffers(frames, lines);
        // SAFETY: as there, and the thread is alive.
        let depth =
            unsafe { rb_sys::rb_profile_thread_frames(self.object(), 0, limit, frames, lines) };
        usize::try_from(depth).unwrap_or(0)
    }

    /// Whether the thread has begun to run and not ended: then it has frames.
    pub fn has_frames(self) -> bool {
        self.backtrace(&mut [0], &mut []) > 0
    }
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
