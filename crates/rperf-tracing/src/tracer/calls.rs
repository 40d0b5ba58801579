//! What calls and returns do to the stack of the fiber that runs. Our stack is compared with how
//! deep the VM's is: frames that have gone without a word are dropped, and those that have come so
//! are asked for. At events, under the GVL: the hot path of tracing.

use crate::event::{Call, TraceVm, TracedKind, marked_frames};
use crate::fiber::Open;
use crate::tracer::{LOOK, Tracer};
use crate::tree::{ROOT, TracedFrame};
use rperf_vm::{FrameWord, blocks_around, object_of, within_blocks};

impl Tracer {
    /// A call, at a level with times.
    #[inline]
    pub fn enter(&mut self, vm: &impl TraceVm, call: Call, now: u64) {
        self.looks.events += 1;
        self.charge(now);
        let own = usize::from(!matches!(call, Call::C { .. }));
        let depth = vm.depth() + u32::from(own == 0);
        self.enter_at(vm, call, own, depth);
    }

    /// A call at a level without times, where what has returned shows in the depth.
    #[inline]
    pub fn count(&mut self, vm: &impl TraceVm, call: Call) {
        self.looks.events += 1;
        let own = usize::from(!matches!(call, Call::C { .. }));
        let depth = vm.depth() + u32::from(own == 0);
        let (Some(fiber), Some(thread)) = (
            self.fibers.get_running_mut(),
            self.threads.get_running_mut(),
        ) else {
            return;
        };
        let (base, stack) = (fiber.base, &mut fiber.stack);
        if call == Call::Block
            && let Some(top) = stack.last()
            && top.depth == depth
            && self.tree.node(top.node).kind == TracedKind::Method
        {
            // It may be that method, told again.
            return self.enter_oddly(vm, call, own, depth);
        }
        while stack.len() > base && stack.last().is_some_and(|open| open.depth >= depth) {
            stack.pop();
        }
        if let Some(top) = stack.last().copied()
            && top.depth + 1 == depth
            && top.run == 0
        {
            let mut frames = [0; 2];
            vm.frames(&mut frames[..own + 1]);
            // Only blocks and what is in them need the marks.
            if call == Call::Block || frames[own] == object_of(top.word) && top.word != frames[own]
            {
                vm.mark_blocks(&mut frames[..own + 1]);
            }
            let caller = frames[own];
            if caller == top.word || top.word == 0 && vm.is_c_method(caller) {
                let word = frames[0] * own;
                let frame = frame_of(vm, call, word);
                let node = self.tree.child(top.node, frame, call.kind());
                thread.sums.counts.of(node).calls += 1;
                stack.push(Open::told(node, depth, word));
                return;
            }
        }
        self.enter_oddly(vm, call, own, depth);
    }

    #[cold]
    fn enter_oddly(&mut self, vm: &impl TraceVm, call: Call, own: usize, depth: u32) {
        self.enter_at(vm, call, own, depth);
    }

    /// A call of what begins at `depth`, and has a frame of its `own` or none yet.
    #[inline]
    fn enter_at(&mut self, vm: &impl TraceVm, call: Call, own: usize, depth: u32) {
        let Some(fiber) = self.fibers.get_running() else {
            return;
        };
        let mut is_sure = self.level.timed && !fiber.has_lost;
        if let Some(top) = fiber.top().copied()
            && top.depth >= depth
        {
            let is_candidate = match call {
                Call::Block => true,
                Call::Method => fiber.rescued_depth == depth,
                _ => false,
            };
            if is_candidate && top.depth == depth && self.is_told_again(vm, top, call) {
                return;
            }
            // Without returns this is the usual case. With them, some were lost: what is below may
            // have gone, too.
            is_sure &= !top.is_told();
            let fiber = self.fibers.running_mut();
            fiber.drop_while(|open| open.depth >= depth);
        }
        let word = self.find_caller(vm, call, depth, own, is_sure);
        self.fibers.running_mut().has_lost = false;
        self.push(vm, call, word, depth);
    }

    /// Makes our stack's top the caller of what begins at `depth`, whose word this returns; 0 if it
    /// has no frame of its `own` yet. `is_sure`: the VM has told of all returns.
    #[inline]
    fn find_caller(
        &mut self,
        vm: &impl TraceVm,
        call: Call,
        depth: u32,
        own: usize,
        is_sure: bool,
    ) -> FrameWord {
        let top = self.fibers.get_running().and_then(|fiber| fiber.top());
        let Some(&top) = top.filter(|top| top.depth + 1 == depth) else {
            self.follow(vm, depth, own, is_sure);
            return own_frame(vm, call, own);
        };
        if top.run > 0 {
            return self.look_below(vm, depth, own, top, is_sure);
        }
        if is_sure {
            return own_frame(vm, call, own);
        }
        let mut frames = [0; 2];
        marked_frames(vm, &mut frames[..own + 1]);
        let caller = frames[own];
        if caller != top.word && (top.word != 0 || !vm.is_c_method(caller)) {
            self.follow(vm, depth, own, false);
        }
        frames[0] * own
    }

    /// Finds the caller, as `find_caller` does, where our stack ends with a run of frames that no
    /// event tells the ends of, and this one is its `top`.
    fn look_below(
        &mut self,
        vm: &impl TraceVm,
        depth: u32,
        own: usize,
        top: Open,
        is_sure: bool,
    ) -> FrameWord {
        let mut frames = [0; LOOK];
        let run = top.run as usize;
        let asked = (own + run + 1 + usize::from(top.may_be_higher)).min(LOOK);
        let found = marked_frames(vm, &mut frames[..asked]);
        let below = &frames[own.min(found)..found];
        if !self.fibers.running().still_has(vm, below, run) {
            self.follow(vm, depth, own, is_sure);
        }
        frames[0] * own
    }

    #[inline]
    fn push(&mut self, vm: &impl TraceVm, call: Call, word: FrameWord, depth: u32) {
        let Some(fiber) = self.fibers.get_running_mut() else {
            return;
        };
        let Some(thread) = self.threads.get_running_mut() else {
            return;
        };
        let parent = fiber.top().map_or(ROOT, |top| top.node);
        let node = self
            .tree
            .child(parent, frame_of(vm, call, word), call.kind());
        thread.sums.counts.of(node).calls += 1;
        if depth <= fiber.rescued_depth {
            fiber.rescued_depth = 0;
        }
        fiber.stack.push(Open::told(node, depth, word));
    }

    /// Whether a call is told of the frame that we have at its depth already: of a method that a
    /// block defines, as a block, which happens once; or of one that `retry` begins anew. Without
    /// rescue clauses, the latter can't be told from a second call.
    #[cold]
    fn is_told_again(&mut self, vm: &impl TraceVm, top: Open, call: Call) -> bool {
        let fiber = self.fibers.running_mut();
        let has_rescued = fiber.rescued_depth == top.depth;
        if has_rescued {
            fiber.rescued_depth = 0;
        }
        if !top.is_told() || top.word != own_frame(vm, call, 1) {
            return false;
        }
        let is_defined_by_block = !has_rescued
            && !top.is_told_twice
            && call == Call::Block
            && self.tree.node(top.node).kind == TracedKind::Method
            && vm.is_bare_code(top.word);
        if is_defined_by_block && let Some(top) = fiber.stack.last_mut() {
            top.is_told_twice = true;
        }
        has_rescued || is_defined_by_block
    }

    /// A return; of a method of C with its owner and name.
    #[inline]
    pub fn leave(&mut self, vm: &impl TraceVm, c_method: Option<TracedFrame>, now: u64) {
        self.looks.events += 1;
        self.charge(now);
        // The frame of a method of C is gone already, unless an exception unwinds it.
        let depth = vm.depth() + u32::from(c_method.is_some());
        let Some(fiber) = self.fibers.get_running_mut() else {
            return;
        };
        let is_usual = fiber.top().is_some_and(|top| {
            top.depth == depth
                && top.is_told()
                && c_method.is_none_or(|frame| self.tree.node(top.node).frame == frame)
        });
        if is_usual {
            fiber.stack.pop();
        } else {
            self.leave_oddly(vm, c_method, depth);
        }
    }

    /// A rescue clause begins, in a frame of its own, which no event tells of. After a stack
    /// overflow no return was told, and this finds what depth alone can't: whatever we have at the
    /// clause's depth is gone.
    pub fn rescued(&mut self, vm: &impl TraceVm, now: u64) {
        self.looks.events += 1;
        self.charge(now);
        let depth = vm.depth();
        let Some(fiber) = self.fibers.get_running_mut() else {
            return;
        };
        fiber.drop_while(|open| open.depth >= depth);
        fiber.rescued_depth = depth.saturating_sub(1);
        if fiber.is_at_base() && (fiber.base == 0 || depth <= fiber.base_depth) {
            self.retake(vm, 1, depth.saturating_sub(1));
        }
    }
}

/// What begins, as the tree knows it. Where the VM's data doesn't tell how many blocks are around a
/// block, there is one.
#[inline]
fn frame_of(vm: &impl TraceVm, call: Call, word: FrameWord) -> TracedFrame {
    match call {
        Call::Block if blocks_around(word) == 0 && !vm.is_named_block(word) => TracedFrame {
            word: within_blocks(word, 1),
            method: 0,
        },
        Call::C { owner, method } => TracedFrame {
            word: owner,
            method,
        },
        _ => TracedFrame { word, method: 0 },
    }
}

/// The topmost frame of the VM's stack; 0 if what begins has no frame of its `own` yet.
#[inline]
fn own_frame(vm: &impl TraceVm, call: Call, own: usize) -> FrameWord {
    let mut frame = [0; 1];
    if own > 0 {
        vm.frames(&mut frame);
    }
    // A method has no blocks around it.
    if call == Call::Block {
        vm.mark_blocks(&mut frame);
    }
    frame[0]
}
