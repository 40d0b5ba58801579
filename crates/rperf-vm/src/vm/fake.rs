//! A VM for tests: its stacks are what the test says.

use super::{BlockLayout, FrameLayout, MethodWord, TickVm, Unknown, VmFrames};
use crate::frame_blocks::blocks_around;
use crate::gvl::Gvl;
use crate::ids::{FiberWord, FrameWord, VmThread};
use crate::labels::LabelSet;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A frame's word is its number; that of a method of C is from here on.
pub const C_METHODS: FrameWord = 1000;

/// The name of a method is the number of its frame and this.
const NAME: MethodWord = 5000;

/// Where made-up frames have their fields.
pub const LAYOUT: FrameLayout = FrameLayout {
    stack: 0,
    stack_size: 8,
    frame_in_context: 16,
    frame_size: 56,
    program_counter: 0,
    iseq: 16,
    late: None,
    body: 16,
    size: 4,
    encoded: 8,
    blocks: BLOCKS,
};

/// How made-up environments tell blocks: flags of one bit each, for the kinds too.
pub(crate) const BLOCKS: BlockLayout = BlockLayout {
    environment: 32,
    method_before: 16,
    outer_before: 8,
    kinds: 0x300,
    block: 0x200,
    c_call: 0x300,
    is_c: 0x80,
    is_outermost: 2,
    object_kind: 12,
    special_variables: 2,
    definition: 16,
    definition_kinds: 15,
    c_method: 1,
};

/// The first word of made-up code.
pub(crate) const IS_CODE: usize = 0x701a;

/// The frames of one thread and their lines, leaf first.
pub type Frames = Vec<(FrameWord, u32)>;

/// A VM whose calling thread holds the GVL.
pub struct FakeVm {
    gvl: Gvl<'static>,
    /// The calling thread.
    pub thread: Cell<VmThread>,
    /// The stack of each thread.
    pub stacks: RefCell<HashMap<VmThread, Frames>>,
    /// Ruby frames on top that backtraces leave out.
    pub hidden: RefCell<Vec<FrameWord>>,
    /// The answer of [`VmFrames::layout`].
    pub layout: Cell<Result<&'static FrameLayout, Unknown>>,
    /// The answer of [`VmFrames::context`].
    pub context: Cell<usize>,
    /// The answer of [`VmFrames::fills_frames_late`].
    pub fills_frames_late: Cell<bool>,
    /// The present fiber of every thread.
    pub fiber: Cell<FiberWord>,
    /// The labels of that fiber.
    pub labels: RefCell<Option<LabelSet>>,
    /// What the garbage collector was told of.
    pub kept: RefCell<Vec<FrameWord>>,
}

impl FakeVm {
    /// With one thread, whose stack is `frames`.
    pub fn new(thread: VmThread, frames: &[(FrameWord, u32)]) -> Self {
        Self {
            // SAFETY: each test has objects of its own, on one thread.
            gvl: unsafe { Gvl::assume_held() },
            thread: Cell::new(thread),
            stacks: RefCell::new(HashMap::from([(thread, frames.to_vec())])),
            hidden: RefCell::default(),
            layout: Cell::new(Ok(&LAYOUT)),
            context: Cell::default(),
            fills_frames_late: Cell::default(),
            fiber: Cell::default(),
            labels: RefCell::default(),
            kept: RefCell::default(),
        }
    }

    /// The calling thread's stack becomes `frames`.
    pub fn set_stack(&self, frames: &[(FrameWord, u32)]) {
        let mut stacks = self.stacks.borrow_mut();
        stacks.insert(self.thread.get(), frames.to_vec());
    }

    /// The token.
    pub fn gvl(&self) -> &Gvl<'_> {
        &self.gvl
    }

    /// [`VmFrames::backtrace`] of any thread.
    pub fn backtrace_of(
        &self,
        thread: VmThread,
        frames: &mut [FrameWord],
        lines: &mut [u32],
    ) -> usize {
        let stacks = self.stacks.borrow();
        let Some(stack) = stacks.get(&thread) else {
            return 0;
        };
        for (to, from) in frames.iter_mut().zip(stack) {
            *to = from.0;
        }
        for (to, from) in lines.iter_mut().zip(stack) {
            *to = from.1;
        }
        stack.len().min(frames.len())
    }

    /// The labels that every thread's present fiber has.
    pub fn labels(&self) -> Option<LabelSet> {
        self.labels.borrow().clone()
    }

    fn frames(&self) -> Frames {
        self.stacks.borrow()[&self.thread.get()].clone()
    }

    /// The topmost Ruby frame and its line; that of a hidden one is where it begins.
    fn top(&self) -> (FrameWord, u32) {
        if let Some(&hidden) = self.hidden.borrow().first() {
            return (hidden, first_line(hidden));
        }
        let frames = self.frames();
        let top = frames.iter().find(|frame| frame.0 < C_METHODS);
        top.copied().unwrap_or_default()
    }
}

thread_local! {
    /// The answer of [`TickVm::is_collecting`] on a test's thread.
    pub static IS_COLLECTING: Cell<bool> = const { Cell::new(false) };
    /// The answer of [`TickVm::collections`] on a test's thread.
    static COLLECTIONS: Cell<u64> = const { Cell::new(0) };
}

/// On a thread that calls at `[3, 2, 1]`.
impl TickVm for FakeVm {
    unsafe fn of_calling_thread() -> Self {
        FakeVm::new(VmThread(40), &[(3, 31), (2, 21), (1, 11)])
    }

    fn is_collecting(&self) -> bool {
        IS_COLLECTING.get()
    }

    fn collections(&self) -> u64 {
        COLLECTIONS.get()
    }
}

fn first_line(frame: FrameWord) -> u32 {
    frame as u32 * 10
}

impl VmFrames for FakeVm {
    fn layout(&self) -> Result<&'static FrameLayout, Unknown> {
        self.layout.get()
    }

    fn fills_frames_late(&self) -> bool {
        self.fills_frames_late.get()
    }

    fn context(&self) -> usize {
        self.context.get()
    }

    /// The low half of the instruction's address.
    unsafe fn line_at(&self, iseq: FrameWord, place: usize) -> u32 {
        // SAFETY: tests keep the code alive that they hand out.
        let encoded = unsafe { *(*((iseq + LAYOUT.body) as *const usize) as *const [usize; 2]) }[1];
        (encoded + place * size_of::<usize>()) as u32
    }

    unsafe fn is_code(&self, object: FrameWord) -> bool {
        // SAFETY: by this function's contract. The first word of made-up code says so.
        unsafe { *(object as *const usize) == IS_CODE }
    }

    fn backtrace(&self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        self.backtrace_of(self.thread.get(), frames, lines)
    }

    fn depth(&self) -> i64 {
        // One frame that no backtrace has.
        1 + (self.frames().len() + self.hidden.borrow().len()) as i64
    }

    fn blocks_around_top(&self) -> usize {
        blocks_around(self.top().0)
    }

    fn line(&self) -> u32 {
        self.top().1
    }

    fn fiber(&self) -> FiberWord {
        self.fiber.get()
    }

    fn file(&self) -> usize {
        // SAFETY: this VM reads its own tables only.
        unsafe { self.file_of(self.top().0) }
    }

    fn method(&self) -> (MethodWord, FrameWord) {
        (self.top().0 + NAME, 1)
    }

    unsafe fn are_frames(&self, words: &[FrameWord]) -> bool {
        words.iter().all(|&word| word != 0)
    }

    unsafe fn file_of(&self, frame: FrameWord) -> usize {
        if frame >= C_METHODS { 0 } else { 77 }
    }

    unsafe fn first_line_of(&self, frame: FrameWord) -> Option<u32> {
        (frame < C_METHODS).then(|| first_line(frame))
    }

    unsafe fn has_name(&self, frame: FrameWord, method: MethodWord) -> bool {
        frame + NAME == method
    }
}
