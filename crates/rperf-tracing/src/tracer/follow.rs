//! What [`Tracer`] does where its stack isn't the VM's: frames that have gone without a word are
//! dropped, those that have come so are put in, and what doesn't fit is taken anew. At events,
//! under the GVL.

use crate::event::{TraceVm, TracedKind, marked_frames};
use crate::fiber::{Known, Open};
use crate::tracer::{LOOK, Tracer};
use crate::tree::{ROOT, TracedFrame};
use rperf_vm::FrameWord;

/// Frames at most that are put in between two that were told; else the whole stack is taken.
const MAX_GAP: usize = 30;

impl Tracer {
    /// Our stack's top may not be the caller of what begins at `depth`: makes it so. Of the frames
    /// on the VM's stack, `own` are those of what begins. `is_sure`: the VM has told of all returns.
    #[cold]
    #[inline(never)]
    pub(crate) fn follow(&mut self, vm: &impl TraceVm, depth: u32, own: usize, is_sure: bool) {
        let fiber = self.fibers.running_mut();
        fiber.drop_while(|open| open.depth >= depth || !open.is_told());
        let mut room = std::mem::take(&mut self.room);
        loop {
            let fiber = self.fibers.running();
            let is_at_base = fiber.is_at_base();
            let top = fiber.top().copied();
            let Some(top) = top.filter(|_| !is_at_base || depth > fiber.base_depth) else {
                break self.retake_with(vm, &mut room, own, depth.saturating_sub(1));
            };
            let gap = depth.saturating_sub(top.depth + 1) as usize;
            if gap == 0 && !is_at_base && is_sure {
                break;
            }
            if let Some(shown) = self.shown_in_gap(vm, &mut room, own, gap) {
                break self.insert(vm, top, &room[own..=own + shown], gap, depth);
            }
            if is_at_base || is_sure || gap > MAX_GAP {
                break self.retake_with(vm, &mut room, own, depth.saturating_sub(1));
            }
            // This one may have returned without a word.
            self.fibers.running_mut().stack.pop();
        }
        self.room = room;
    }

    /// How many of the frames in a gap the VM shows: they follow the `own` ones in `room` then,
    /// and ours follow them. `None` if our stack isn't the VM's.
    fn shown_in_gap(
        &self,
        vm: &impl TraceVm,
        room: &mut [FrameWord],
        own: usize,
        gap: usize,
    ) -> Option<usize> {
        if gap > MAX_GAP {
            return None;
        }
        let fiber = self.fibers.running();
        let top = fiber.top()?;
        if top.is_told() && top.word != 0 {
            // It is where its word is, if that is in one place only.
            let found = marked_frames(vm, &mut room[..own + gap + 1]);
            let mut places = (own..found).filter(|&place| room[place] == top.word);
            match (places.next(), places.next()) {
                (Some(_), Some(_)) => {}
                (only, _) => return Some(only? - own),
            }
        }
        self.compared(vm, room, own, gap)
    }

    /// How many of the frames in a gap the VM shows, found by more of our frames than the top.
    fn compared(
        &self,
        vm: &impl TraceVm,
        room: &mut [FrameWord],
        own: usize,
        gap: usize,
    ) -> Option<usize> {
        let fiber = self.fibers.running();
        let found = marked_frames(vm, &mut room[..own + gap + LOOK]);
        let frames = &room[own.min(found)..found];
        let is_ours = |shown: &usize| {
            let below = frames.get(*shown..).unwrap_or_default();
            let mut ours = fiber.shown();
            below.iter().take(LOOK).all(|frame| match ours.next() {
                Some(0) => vm.is_c_method(*frame),
                Some(word) => word == *frame,
                None => false,
            }) && (below.len() >= LOOK || ours.next().is_none())
        };
        let mut possible = (0..=gap).filter(is_ours);
        match (possible.next(), possible.next()) {
            (Some(shown), Some(_)) => {
                // A recursion looks the same from everywhere: only the number of frames tells.
                let total = marked_frames(vm, room);
                let counted = total.checked_sub(own + fiber.shown().count())?;
                (shown..=gap).contains(&counted).then_some(counted)
            }
            (only, _) => only,
        }
    }

    /// Puts the frames of a gap, which no event told of, between `top` and what begins at `depth`:
    /// the VM shows these, leaf first, and then `top`'s. Where it hides others among them, ours are
    /// noted deeper than they are, never less deep.
    fn insert(
        &mut self,
        vm: &impl TraceVm,
        top: Open,
        frames: &[FrameWord],
        gap: usize,
        depth: u32,
    ) {
        let Some((&below, shown)) = frames.split_last() else {
            return;
        };
        if shown.is_empty() && gap > 0 {
            self.fibers.running_mut().stack.push(Open {
                depth: depth - 1,
                word: below,
                run: 1,
                may_be_higher: true,
                known: Known::Hidden,
                ..top
            });
        }
        let mut parent = top;
        let has_hidden = shown.len() < gap;
        for (place, &word) in shown.iter().enumerate().rev() {
            let (node, charge) = self.inserted_node(vm, parent, word);
            parent = Open {
                node,
                charge,
                depth: depth - 1 - place as u32,
                word,
                run: parent.run + 1,
                may_be_higher: parent.may_be_higher || has_hidden,
                known: Known::Shown,
                is_told_twice: false,
            };
            self.fibers.running_mut().stack.push(parent);
        }
    }

    /// The node of a frame that no event told of, and the one that its time goes to. Where
    /// methods of C have events, a block of C repeats such a frame.
    fn inserted_node(&mut self, vm: &impl TraceVm, parent: Open, word: FrameWord) -> (u32, u32) {
        let frame = TracedFrame { word, method: 0 };
        match vm.is_c_method(word) {
            false => {
                let node = self.tree.child(parent.node, frame, TracedKind::Inserted);
                (node, node)
            }
            true if self.level.c_methods => (parent.node, parent.charge),
            true => {
                let node = self.tree.child(parent.node, frame, TracedKind::InsertedC);
                (node, parent.charge)
            }
        }
    }

    /// Takes the present fiber's stack from the VM, but for the topmost `skipped` frames. What is
    /// left is of this `depth`.
    pub(crate) fn retake(&mut self, vm: &impl TraceVm, skipped: usize, depth: u32) {
        let mut room = std::mem::take(&mut self.room);
        self.retake_with(vm, &mut room, skipped, depth);
        self.room = room;
    }

    fn retake_with(
        &mut self,
        vm: &impl TraceVm,
        room: &mut [FrameWord],
        skipped: usize,
        depth: u32,
    ) {
        let found = marked_frames(vm, room);
        let fiber = self.fibers.running_number();
        self.rebase(vm, fiber, &room[skipped.min(found)..found], depth);
    }

    /// A fiber's stack consists of these frames, leaf first, in which blocks are marked.
    pub(crate) fn rebase(
        &mut self,
        vm: &impl TraceVm,
        fiber: usize,
        frames: &[FrameWord],
        depth: u32,
    ) {
        let base = &mut self.fibers[fiber];
        base.stack.truncate(base.base);
        let known = base.stack.iter().zip(frames.iter().rev());
        let known = known
            .take_while(|(open, frame)| open.word == **frame)
            .count();
        base.stack.truncate(known);
        for &word in frames[..frames.len() - known].iter().rev() {
            let top = self.fibers[fiber].top();
            let (parent, charge) = top.map_or((ROOT, ROOT), |top| (top.node, top.charge));
            let frame = TracedFrame { word, method: 0 };
            let is_c = vm.is_c_method(word);
            let kind = match is_c {
                true => TracedKind::InsertedC,
                false => TracedKind::Inserted,
            };
            let node = self.tree.child(parent, frame, kind);
            let charge = match is_c && !self.level.c_methods {
                true => charge,
                false => node,
            };
            self.fibers[fiber].stack.push(Open {
                node,
                charge,
                depth,
                word,
                run: 0,
                may_be_higher: false,
                known: Known::Shown,
                is_told_twice: false,
            });
        }
        let ends_untold = |frame: &&FrameWord| match vm.is_c_method(**frame) {
            true => !self.level.c_methods,
            false => !vm.is_called(**frame),
        };
        let run = frames.iter().take(LOOK).take_while(ends_untold).count();
        let base = &mut self.fibers[fiber];
        (base.base, base.base_depth) = (base.stack.len(), depth);
        if let Some(top) = base.stack.last_mut() {
            // A hidden frame may be above it, and give way to one that is shown.
            (top.depth, top.run) = (depth, run.max(1) as u32);
        }
    }

    /// Our stack's top isn't what returns from `depth`.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_oddly(
        &mut self,
        vm: &impl TraceVm,
        c_method: Option<TracedFrame>,
        depth: u32,
    ) {
        let fiber = self.fibers.running_mut();
        let is_shallower = fiber.top().is_some_and(|top| top.depth < depth);
        if is_shallower && c_method.is_none() && !fiber.is_at_base() {
            // A method that a block defines is told to end twice.
            return;
        }
        let is_lost = |top: &Open| top.depth > depth && top.is_told();
        fiber.has_lost |= fiber.top().is_some_and(is_lost);
        fiber.drop_while(|open| open.depth > depth || !open.is_told());
        if fiber.is_at_base() {
            if fiber.base == 0 || depth <= fiber.base_depth {
                let own = usize::from(c_method.is_none());
                self.retake(vm, own, depth.saturating_sub(1));
            }
            return;
        }
        let Some(top) = fiber.top().copied() else {
            return;
        };
        let Some(frame) = c_method else {
            if top.depth == depth {
                fiber.stack.pop();
            }
            return;
        };
        if top.depth == depth {
            fiber.stack.pop();
            if self.tree.node(top.node).frame == frame {
                return;
            }
        }
        let is_unwound = |open: &Open| {
            open.depth + 1 == depth && open.is_told() && self.tree.node(open.node).frame == frame
        };
        if !fiber.is_at_base() && fiber.top().is_some_and(is_unwound) {
            fiber.stack.pop();
        }
    }
}
