//! Hidden frames. Compiled code doesn't store a method's program counter as it calls
//! it. If the frame's memory last held the frame of a C method, the program counter is
//! null there, and the VM leaves the method out of backtraces until it makes a call of
//! its own: all its time would be its caller's.
//!
//! The VM tells the name, the class, the file and the first line of the method all the
//! same. With these the frame is learned, once, at a safepoint; from then on the signal
//! handler puts it on top of the stack itself. Used by [`TickCapture`](super::TickCapture):
//! in the handler, and at safepoints.

use rperf_vm::{Backtrace, FrameWord, MethodWord, VmFrames, blocks_around};
use rustc_hash::FxHashMap;

/// How often a frame is looked for in vain until it is taken for none: it may have
/// returned before the safepoint.
const TRIES: u8 = 30;

/// How often a frame is looked for in vain where there may be no such frame.
const TRIES_IF_UNSURE: u8 = 3;

/// Frames that are known at most.
const CAP: usize = 1 << 14;

/// What tells one hidden frame from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// 0 for a block outside of methods.
    method: MethodWord,
    /// The class that has the method.
    owner: FrameWord,
    /// Where the VM holds the name of the file.
    file: usize,
    /// Blocks around it.
    blocks: usize,
    /// What the frame is known by besides.
    by: KnownBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum KnownBy {
    /// The line where its method or block begins.
    FirstLine(u32),
    /// Its caller, which is on the same line: there may be no such frame.
    Caller(FrameWord),
}

impl KnownBy {
    fn tries(self) -> u8 {
        match self {
            KnownBy::FirstLine(_) => TRIES,
            KnownBy::Caller(_) => TRIES_IF_UNSURE,
        }
    }
}

/// What is known of a key.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// The frame, which is a GC root.
    Frame(FrameWord),
    /// There is none, or it hasn't been found so many times.
    None(u8),
}

/// A stack that may lack its leaf.
#[derive(Debug, Clone, Copy)]
pub struct Suspect {
    key: Key,
    /// The thread.
    seq: u32,
    /// Frames that the VM has reported, and the topmost of them.
    depth: usize,
    caller: FrameWord,
}

/// What the handler is to do with the stack it has read.
#[derive(Debug)]
pub enum Leaf {
    /// The stack is whole.
    Reported,
    /// The stack lacks this frame, which comes on top.
    Hidden(FrameWord),
    /// The stack may lack its leaf, which must be found out.
    Unknown(Suspect),
}

/// The frames that have been learned.
#[derive(Debug)]
pub struct HiddenFrames {
    known: FxHashMap<Key, Known>,
    /// The stack to learn from, at the next safepoint.
    suspect: Option<Suspect>,
    /// Frames of the VM's stack that no backtrace has: the least there were.
    unreported: i64,
}

impl HiddenFrames {
    /// None is known. On a Ruby thread with the GVL, outside of hooks.
    pub fn new(vm: &impl VmFrames) -> Self {
        let mut frames = Self {
            known: FxHashMap::default(),
            suspect: None,
            unreported: i64::MAX,
        };
        let depth = Backtrace::new(false).take(vm);
        frames.lacks_frames(vm, depth);
        frames
    }

    /// Looks whether the stack that was just taken, of the calling thread `seq`, lacks its
    /// leaf. In the handler: makes no object, takes no lock, and may fault as reading
    /// the stack may.
    pub fn look(
        &mut self,
        vm: &impl VmFrames,
        backtrace: &Backtrace,
        depth: usize,
        seq: u32,
    ) -> Leaf {
        let (leaf, line) = backtrace.leaf();
        // A C method, or a compiled one that the VM has reported, has no line.
        if line == 0 || !self.lacks_frames(vm, depth) {
            return Leaf::Reported;
        }
        let (top_line, file) = (vm.line(), vm.file());
        let (method, owner) = vm.method();
        // SAFETY: the leaf is on the stack.
        let is_same_line = top_line == line && file == unsafe { vm.file_of(leaf) };
        let by = if is_same_line {
            KnownBy::Caller(leaf)
        } else {
            KnownBy::FirstLine(top_line)
        };
        let key = Key {
            method,
            owner,
            file,
            blocks: vm.blocks_around_top(),
            by,
        };
        match self.known.get(&key) {
            Some(&Known::Frame(frame)) => Leaf::Hidden(frame),
            Some(&Known::None(tries)) if tries >= by.tries() => Leaf::Reported,
            _ => Leaf::Unknown(Suspect {
                key,
                seq,
                depth,
                caller: leaf,
            }),
        }
    }

    /// Whether the VM's stack has more frames that backtraces leave out than the least
    /// that was seen. Some block functions of C are among them.
    fn lacks_frames(&mut self, vm: &impl VmFrames, depth: usize) -> bool {
        let unreported = vm.depth() - depth as i64;
        self.unreported = self.unreported.min(unreported);
        unreported > self.unreported
    }

    /// Remembers to learn from this stack.
    pub fn ask(&mut self, suspect: Suspect) {
        self.suspect = Some(suspect);
    }

    /// Whether there is a suspect.
    pub fn has_suspect(&self) -> bool {
        self.suspect.is_some()
    }

    /// At the safepoint after a suspect, with the stack of the calling thread `seq` there.
    /// Returns how many frames of it were there at the tick, and whether a frame was
    /// learned.
    pub fn learn(
        &mut self,
        vm: &impl VmFrames,
        backtrace: &Backtrace,
        depth: usize,
        seq: u32,
    ) -> Option<(usize, bool)> {
        let suspect = self.suspect.take().filter(|suspect| suspect.seq == seq)?;
        let frame_at = |frames: usize| backtrace.frame(depth.checked_sub(frames)?);
        if frame_at(suspect.depth) != Some(suspect.caller) {
            return None;
        }
        let above = frame_at(suspect.depth + 1);
        let Some(frame) = above.filter(|&frame| suspect.is(vm, frame)) else {
            self.not_found(suspect.key);
            return Some((suspect.depth, false));
        };
        if self.known.len() >= CAP {
            self.known.clear();
        }
        self.known.insert(suspect.key, Known::Frame(frame));
        Some((suspect.depth + 1, true))
    }

    fn not_found(&mut self, key: Key) {
        let tries = match self.known.get(&key) {
            Some(&Known::None(tries)) => tries,
            _ => 0,
        };
        self.known.insert(key, Known::None(tries.saturating_add(1)));
    }

    /// Lets go of all frames.
    pub fn forget(&mut self) {
        self.known = FxHashMap::default();
        self.suspect = None;
    }

    /// The objects that must stay alive, where they are.
    pub fn roots(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let keys = self.known.iter().flat_map(|(key, known)| {
            let caller = match key.by {
                KnownBy::Caller(caller) => Some(caller),
                KnownBy::FirstLine(_) => None,
            };
            let frame = match *known {
                Known::Frame(frame) => Some(frame),
                Known::None(_) => None,
            };
            [Some(key.owner), caller, frame]
        });
        keys.flatten()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.known.capacity() * (size_of::<(Key, Known)>() + 1)
    }
}

impl Suspect {
    /// Whether `frame`, which is on the stack, is the one that it lacked. Methods and their blocks
    /// differ by the blocks around them only, where they begin on one line.
    fn is(&self, vm: &impl VmFrames, frame: FrameWord) -> bool {
        let (method, file) = (self.key.method, self.key.file);
        // SAFETY: the frame is on the stack, and the name from the VM.
        let has_name = method != 0 && unsafe { vm.has_name(frame, method) };
        // SAFETY: as above.
        let is_deep = blocks_around(frame) == self.key.blocks || unsafe { vm.is_code(frame) };
        if !is_deep {
            return false;
        }
        match self.key.by {
            // SAFETY: as above.
            KnownBy::FirstLine(line) => unsafe {
                has_name || (vm.first_line_of(frame) == Some(line) && vm.file_of(frame) == file)
            },
            // A method that has called itself since would look the same.
            KnownBy::Caller(caller) => has_name && frame != caller,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_vm::VmThread;
    use rperf_vm::fake::{C_METHODS, FakeVm};

    const THREAD: u32 = 1;

    /// A VM at line 25 of frame 2, and what is known of its hidden frames.
    fn vm() -> (FakeVm, HiddenFrames) {
        let vm = FakeVm::new(VmThread(8), &[(2, 25), (1, 14)]);
        let frames = HiddenFrames::new(&vm);
        (vm, frames)
    }

    fn look(frames: &mut HiddenFrames, vm: &FakeVm) -> Leaf {
        let mut backtrace = Backtrace::new(true);
        let depth = backtrace.take(vm);
        frames.look(vm, &backtrace, depth, THREAD)
    }

    /// The stack at the safepoint is `stack`.
    fn learn(frames: &mut HiddenFrames, vm: &FakeVm, thread: u32) -> Option<(usize, bool)> {
        let mut backtrace = Backtrace::new(true);
        let depth = backtrace.take(vm);
        frames.learn(vm, &backtrace, depth, thread)
    }

    fn ask(frames: &mut HiddenFrames, vm: &FakeVm) {
        match look(frames, vm) {
            Leaf::Unknown(suspect) => frames.ask(suspect),
            leaf => panic!("{leaf:?}"),
        }
    }

    #[test]
    fn a_hidden_frame_is_learned_at_a_safepoint_and_known_from_then_on() {
        let (vm, mut frames) = vm();
        assert!(
            matches!(look(&mut frames, &vm), Leaf::Reported),
            "a whole stack"
        );
        vm.hidden.replace(vec![3]);
        ask(&mut frames, &vm);
        vm.hidden.replace(vec![]);
        vm.set_stack(&[(C_METHODS, 0), (3, 31), (2, 25), (1, 14)]);
        assert_eq!(learn(&mut frames, &vm, THREAD), Some((3, true)));
        assert!(!frames.has_suspect());
        vm.set_stack(&[(2, 25), (1, 14)]);
        vm.hidden.replace(vec![3]);
        assert!(matches!(look(&mut frames, &vm), Leaf::Hidden(3)));
        let roots: Vec<_> = frames.roots().collect();
        assert!(roots.contains(&3), "{roots:?}");
        frames.forget();
        assert!(matches!(look(&mut frames, &vm), Leaf::Unknown(_)));
    }

    #[test]
    fn it_learns_from_the_suspects_own_stack_only() {
        let (vm, mut frames) = vm();
        vm.hidden.replace(vec![3]);
        ask(&mut frames, &vm);
        assert_eq!(learn(&mut frames, &vm, THREAD + 1), None, "another thread");
        ask(&mut frames, &vm);
        vm.set_stack(&[(3, 31), (4, 41), (1, 14)]);
        assert_eq!(
            learn(&mut frames, &vm, THREAD),
            None,
            "the caller has returned"
        );
    }

    #[test]
    fn a_frame_that_is_never_found_is_taken_for_none() {
        let (vm, mut frames) = vm();
        vm.hidden.replace(vec![3]);
        for _ in 0..TRIES {
            ask(&mut frames, &vm);
            assert_eq!(learn(&mut frames, &vm, THREAD), Some((2, false)));
        }
        assert!(matches!(look(&mut frames, &vm), Leaf::Reported));
    }
}
