//! What the handler of a tick's signal does on the thread that it has interrupted: it asks the VM
//! for the stack, and writes it down. Async-signal-safe.

use crate::ractors;
use crate::tick_capture::at_work::{may_take_stack, other_ractors};
use crate::tick_capture::{Registers, TakeStacks, TickCapture};
use crate::timer::ticks::Ticks;
use rperf_vm::{GC_WATCH, NativeId, TickVm};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

/// Takes stacks of the VM `V`.
pub struct StackTaker<V> {
    capture: Arc<TickCapture>,
    ticks: Arc<Ticks>,
    vm: PhantomData<fn() -> V>,
}

impl<V: TickVm> StackTaker<V> {
    /// Into `capture`.
    pub fn new(capture: Arc<TickCapture>, ticks: Arc<Ticks>) -> Self {
        Self {
            capture,
            ticks,
            vm: PhantomData,
        }
    }
}

impl<V: TickVm> TakeStacks for StackTaker<V> {
    unsafe fn take(&self, seq: u32, tick_ns: u64, registers: &Registers) {
        // SAFETY: the calling thread has the GVL, by this function's contract.
        let vm = unsafe { V::of_calling_thread() };
        if self.capture.is_over() || (other_ractors() && is_stopped(&vm, registers)) {
            return;
        }
        let needs_callback = if self.ticks.is_collecting() {
            // The VM may have lost the event of its end.
            !vm.is_collecting()
        } else if may_take_stack() {
            // SAFETY: on the thread with the GVL, and nobody is at work.
            let needs = unsafe { self.capture.take(&vm, seq, tick_ns, registers) };
            needs || GC_WATCH.is_silent(|| vm.collections(), || tick_ns)
        } else {
            false
        };
        if needs_callback {
            self.ticks.trigger();
        }
    }

    unsafe fn take_other(
        &self,
        owner: *mut c_void,
        native_id: NativeId,
        tick_ns: u64,
        registers: &Registers,
    ) {
        // SAFETY: a thread with a place holds its Ractor's GVL.
        let vm = unsafe { V::of_calling_thread() };
        let is_stopped = || is_stopped(&vm, registers);
        // SAFETY: for the thread in this place. Who moves objects has first waited until this thread
        // has stopped, which it does in the kernel or where the VM says that somebody collects; and
        // has marked what is recorded, which waits for the handler.
        unsafe { ractors::take_stack(owner, &vm, native_id, tick_ns, is_stopped) };
    }

    unsafe fn give_up(&self, owner: *mut c_void) {
        // SAFETY: by this function's contract.
        unsafe { ractors::give_up(owner) };
    }
}

/// Whether somebody collects garbage, or the calling thread may have been stopped for that: then
/// objects may move.
fn is_stopped(vm: &impl TickVm, registers: &Registers) -> bool {
    registers.was_waiting || vm.is_collecting()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick_capture::at_work::{HandlerOff, set_other_ractors};
    use rperf_vm::fake::{FakeVm, IS_COLLECTING};
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    const REGISTERS: Registers = Registers {
        instruction: 0,
        stack: 0,
        link: 0,
        context: 0,
        frame: 0,
        was_waiting: false,
    };

    static TRIGGERED: AtomicU64 = AtomicU64::new(0);

    fn trigger() {
        TRIGGERED.fetch_add(1, SeqCst);
    }

    /// A tick that finds the thread with these registers. Returns whether its stack is in the log,
    /// and whether the sampling callback was asked for.
    fn tick(taker: &StackTaker<FakeVm>, tick_ns: u64, registers: &Registers) -> (bool, bool) {
        let triggered = TRIGGERED.load(SeqCst);
        // SAFETY: the test's VM is this thread's alone.
        unsafe { taker.take(1, tick_ns, registers) };
        let mut has_stack = false;
        // SAFETY: nobody is at work on the log.
        unsafe { taker.capture.each_root(|_| has_stack = true) };
        (has_stack, TRIGGERED.load(SeqCst) > triggered)
    }

    fn taker() -> StackTaker<FakeVm> {
        // SAFETY: as above.
        let vm = unsafe { FakeVm::of_calling_thread() };
        let ticks = Ticks::new(trigger, |_, _| true);
        let capture = TickCapture::new(&vm, true, true, None, None);
        StackTaker::new(Arc::new(capture), Arc::new(ticks))
    }

    // One test: what is asked besides is the process's.
    #[test]
    fn a_stack_is_taken_where_nobody_can_be_at_work_on_what_it_leads_to() {
        const NEITHER: (bool, bool) = (false, false);
        let waiting = Registers {
            was_waiting: true,
            ..REGISTERS
        };
        assert_eq!(tick(&taker(), 5, &REGISTERS), (true, false));

        // Somebody reads the log.
        let guard = HandlerOff::begin();
        assert_eq!(tick(&taker(), 5, &REGISTERS), NEITHER);
        drop(guard);

        // The thread collects garbage; or did, and the event of the end was lost.
        let collecting = taker();
        collecting.ticks.begin_collecting(1);
        IS_COLLECTING.set(true);
        assert_eq!(tick(&collecting, 5, &REGISTERS), NEITHER);
        IS_COLLECTING.set(false);
        assert_eq!(tick(&collecting, 5, &REGISTERS), (false, true));

        // Another Ractor collects, or may have stopped this one for it.
        assert_eq!(tick(&taker(), 5, &waiting), (true, false), "there is none");
        set_other_ractors(true);
        assert_eq!(tick(&taker(), 5, &waiting), NEITHER);
        IS_COLLECTING.set(true);
        assert_eq!(tick(&taker(), 5, &REGISTERS), NEITHER);
        IS_COLLECTING.set(false);
        assert_eq!(tick(&taker(), 5, &REGISTERS), (true, false));
        set_other_ractors(false);

        let over = taker();
        over.capture.end();
        assert_eq!(tick(&over, 5, &REGISTERS), NEITHER);
    }
}
