//! Reading the VM's stack: backtraces as arrays of frames and lines, and what can be
//! asked of a frame without making an object.

use rb_sys::VALUE;
use rperf_engine::{FrameWord, Stack};
use std::ffi::c_char;
use std::ptr;

/// Frames of a backtrace at most. The default VM stack of a thread (1 MB) holds
/// some 11,000; of deeper ones the frames nearest to the leaf are kept.
pub const MAX_DEPTH: usize = 16_384;

/// Where the VM writes a backtrace; allocated once per session. Before the leaf there
/// is room for one frame more.
pub struct Scratch {
    frames: Vec<VALUE>,
    /// Empty if lines are not wanted.
    lines: Vec<i32>,
}

impl Scratch {
    pub fn new(with_lines: bool) -> Self {
        // Zeroed memory comes from the system untouched: only what the deepest
        // stack needs is ever resident.
        let lines = if with_lines { MAX_DEPTH + 1 } else { 0 };
        Self {
            frames: vec![0; MAX_DEPTH + 1],
            lines: vec![0; lines],
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(self.frames.as_slice()) + size_of_val(self.lines.as_slice())
    }

    /// Takes the backtrace of the calling Ruby thread, which has the GVL; returns its
    /// depth. Async-signal-safe.
    pub fn take_current(&mut self) -> Option<usize> {
        // SAFETY: the buffers hold as many frames and lines as said, or lines are
        // null. The call allocates nothing and doesn't raise.
        self.take(|limit, frames, lines| unsafe {
            rb_sys::rb_profile_frames(0, limit, frames, lines)
        })
    }

    /// Takes the backtrace of `thread`, which must be alive; returns its depth. With the
    /// GVL.
    pub fn take_other(&mut self, thread: VALUE) -> Option<usize> {
        // SAFETY: as in `take_current`, and the thread is alive.
        self.take(|limit, frames, lines| unsafe {
            rb_sys::rb_profile_thread_frames(thread, 0, limit, frames, lines)
        })
    }

    fn take(&mut self, ask: impl FnOnce(i32, *mut VALUE, *mut i32) -> i32) -> Option<usize> {
        let lines = match self.lines.get_mut(1..) {
            Some(lines) => lines.as_mut_ptr(),
            None => ptr::null_mut(),
        };
        let depth = ask(MAX_DEPTH as i32, self.frames[1..].as_mut_ptr(), lines);
        usize::try_from(depth)
            .ok()
            .map(|depth| depth.min(MAX_DEPTH))
    }

    /// The backtrace, which has `depth` frames.
    pub fn stack(&self, depth: usize) -> Stack<'_> {
        self.rows(1, depth)
    }

    /// The part of a backtrace of `depth` frames that is nearest to the root: so many
    /// frames of it.
    pub fn stack_up_to(&self, frames: usize, depth: usize) -> Stack<'_> {
        let frames = frames.min(depth);
        self.rows(1 + depth - frames, frames)
    }

    /// The backtrace with `leaf` on top; its line is 0 if it isn't known.
    pub fn stack_with_leaf(&mut self, leaf: VALUE, line: i32, depth: usize) -> Stack<'_> {
        self.frames[0] = leaf;
        if let Some(slot) = self.lines.first_mut() {
            *slot = line;
        }
        self.rows(0, depth + 1)
    }

    /// Whether the VM gave no line for the topmost frame, though it is one of Ruby: it is
    /// compiled.
    pub fn lacks_line_of_leaf(&self) -> bool {
        let (leaf, line) = self.leaf();
        // SAFETY: the frame is on the stack, and so alive.
        line == 0 && !unsafe { is_c_method(leaf) }
    }

    /// Corrects the line of the topmost frame that was taken.
    pub fn set_line_of_leaf(&mut self, line: i32) {
        if let Some(slot) = self.lines.get_mut(1) {
            *slot = line;
        }
    }

    fn rows(&self, first: usize, depth: usize) -> Stack<'_> {
        let frames = &self.frames[first..first + depth];
        let lines = self.lines.get(first..first + depth).unwrap_or_default();
        // SAFETY: VALUE and FrameWord are both pointer-sized unsigned integers.
        let frames = unsafe { std::slice::from_raw_parts(frames.as_ptr().cast(), depth) };
        // SAFETY: i32 and u32 have the same size; a line is never negative.
        let lines = unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len()) };
        Stack {
            frames,
            lines,
            cut: depth >= MAX_DEPTH,
        }
    }

    /// The topmost frame that was taken, and its line or 0.
    pub fn leaf(&self) -> (VALUE, i32) {
        (self.frames[1], self.lines.get(1).copied().unwrap_or(0))
    }

    /// The frame `row` rows below the topmost one.
    pub fn frame(&self, row: usize) -> Option<VALUE> {
        self.frames.get(1 + row).copied()
    }

    /// The VM gives no line for a topmost frame that is compiled, as it may be
    /// anywhere. At a safepoint and in hooks it has one all the same: errors are
    /// raised and objects allocated there, which needs the line.
    pub fn complete_line_of_leaf(&mut self) {
        if let (Some(line @ 0), Some(&frame)) = (self.lines.get_mut(1), self.frames.get(1)) {
            // SAFETY: the frame is on the stack, and so alive.
            if !unsafe { is_c_method(frame) } {
                // SAFETY: on a Ruby thread with the GVL; only reads.
                *line = unsafe { rb_sys::rb_sourceline() };
            }
        }
    }
}

/// The kinds of internal objects that stand for frames: method entries and instruction
/// sequences. The same in Ruby 3.4 and 4.0; [`are_frames`] tells of others.
const FRAME_KINDS: [VALUE; 2] = [6, 7];

/// Where an object's flags have its kind, if it is an internal one.
const KIND_SHIFT: u32 = 12;

/// Whether all of `words` are frames, by the objects that they point to. Reading those
/// faults if they are no objects at all. Async-signal-safe but for that.
pub fn are_frames(words: &[FrameWord]) -> bool {
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

/// Whether `frame` is a method of C. Makes no object.
///
/// # Safety
/// It is a frame, and alive; the caller has the GVL.
pub unsafe fn is_c_method(frame: VALUE) -> bool {
    // SAFETY: by this function's contract. The result is nil for a C method, else a
    // small Integer.
    unsafe { rb_sys::rb_profile_frame_first_lineno(frame) == rb_sys::Qnil as VALUE }
}

/// The file of `frame`, as the VM holds its name; null for a method of C. The frame is
/// alive. Makes no object.
pub fn file_of(frame: VALUE) -> *const c_char {
    // SAFETY: a frame that is alive; the result is nil or a String.
    unsafe {
        let path = rb_sys::rb_profile_frame_path(frame);
        if path == rb_sys::Qnil as VALUE {
            ptr::null()
        } else {
            rb_sys::RSTRING_PTR(path)
        }
    }
}

/// The line where the method or block of `frame` begins, if it is one of Ruby. The frame
/// is alive. Makes no object.
pub fn first_line_of(frame: VALUE) -> Option<i32> {
    // SAFETY: a frame that is alive; the result is nil or a small Integer.
    let line = unsafe { rb_sys::rb_profile_frame_first_lineno(frame) };
    (line != rb_sys::Qnil as VALUE).then_some((line as isize >> 1) as i32)
}

/// Whether `thread`, whose object is alive, has begun to run and not ended. With
/// the GVL.
pub fn has_frames(thread: VALUE) -> bool {
    let mut frame = 0;
    // SAFETY: a thread's object is alive; one frame fits. A thread without a stack
    // has no frames.
    unsafe { rb_sys::rb_profile_thread_frames(thread, 0, 1, &raw mut frame, ptr::null_mut()) > 0 }
}
