//! The interruption of the thread that holds the GVL. It gets SIGURG, whose default
//! action is to be ignored: one that comes late, even to a program started by exec,
//! does no harm (Go interrupts its threads with it for the same reason).
//!
//! The handler reads frames of the VM that may be in motion. They are meant to be
//! readable at any time, but there are moments when they aren't: while a block's
//! environment moves to the heap, the chain of environments from an inner block leads
//! nowhere (`vm_make_env_each` in Ruby's vm.c). A fault while reading is therefore
//! caught: its handler puts back the registers of the interrupted program, as if both
//! handlers had returned.

use super::at_work::other_ractors;
use rperf_vm::NativeId;
mod actions;
mod crash_handlers;
mod in_use;
mod saved_state;
mod stack_room;

use super::kernel_sleep::KernelSleep;
use super::{Registers, TakeStacks};
use crate::timer::interruption::Interruption;
use crate::timer::other_holders::{Found, Interrupter};
use crate::timer::ticks::Ticks;
use actions::{Handler, INTERRUPT, action_of, default_action, is, is_ours, put_action, set_action};
use in_use::{Lent, Users};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use rperf_vm::clock;
use stack_room::Room;
#[cfg(test)]
pub(crate) use stack_room::use_signal_stack;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::SeqCst, fence};
use std::sync::{Arc, OnceLock};

const FAULT: c_int = libc::SIGSEGV;
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// What the handler of the tick's signal and the timer serve; empty if nobody wants them.
static ACTIVE: Lent<Active> = Lent::empty();
/// What the handler of faults serves; empty once nobody reads a stack any more.
static FAULT_ACTIVE: Lent<Active> = Lent::empty();
/// Threads that use one of the two at the moment.
static AT_WORK: Users = Users::none();

/// What interrupts threads of other Ractors.
pub const INTERRUPTER: Interrupter = Interrupter {
    look: look_at_other,
    interrupt: interrupt_other,
};

/// The context that the handler interrupted, while it reads frames; else null. Only
/// the thread with the main Ractor's GVL reads for it, so there is one at a time.
static READING: AtomicPtr<ucontext_t> = AtomicPtr::new(ptr::null_mut());
static READER: AtomicU32 = AtomicU32::new(0);
static READER_ERRNO: AtomicI32 = AtomicI32::new(0);

/// Stacks whose reading has faulted, since [`take_unreadable`] was asked last.
static UNREADABLE: AtomicU64 = AtomicU64::new(0);

/// What took faults before our handler did. For the whole process: a handler that is
/// put in front of ours hands on to it for ever.
static PREVIOUS_FAULT: OnceLock<libc::sigaction> = OnceLock::new();

struct Active {
    ticks: Arc<Ticks>,
    stacks: Box<dyn TakeStacks>,
    process: libc::pid_t,
    kernel_sleep: KernelSleep,
}

impl Active {
    /// Sends the signal to thread `tid`, unless it calls it off.
    fn interrupt(&self, tid: NativeId, interruption: &Interruption) -> bool {
        // SAFETY: takes numbers only. The thread may be gone, then it fails.
        let send = || unsafe { libc::syscall(libc::SYS_tgkill, self.process, tid.0, INTERRUPT) };
        interruption.commit(tid) && send() == 0
    }
}

/// The installed handlers. Dropped, they are gone, and nothing runs in them.
#[derive(Debug)]
pub struct TickSignal(());

impl TickSignal {
    /// Installs the handlers. Fails if there are some already, if the program has an
    /// action of its own for SIGURG, or if one for SIGSEGV has come since our first time:
    /// it may hand on to ours, which must not hand back to it. Fails also if the system doesn't tell
    /// whether a thread waits, or if the calling thread's signal stack has no room for a signal.
    pub fn install(ticks: Arc<Ticks>, stacks: Box<dyn TakeStacks>) -> io::Result<TickSignal> {
        let (interrupt, fault) = (action_of(INTERRUPT)?, action_of(FAULT)?);
        let taken = |message| Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        if interrupt.sa_sigaction != libc::SIG_DFL || !ACTIVE.is_empty() {
            return taken("SIGURG is not at its default action in this program");
        }
        // Who began to take faults within a session that has ended since, and then went,
        // has put ours back.
        let has_fault_handler = is(&fault, on_fault);
        let previous = PREVIOUS_FAULT.get_or_init(|| fault);
        if !has_fault_handler && fault.sa_sigaction != previous.sa_sigaction {
            return taken("the program has got another handler of SIGSEGV meanwhile");
        }
        if !stack_room::is_enough_here() {
            let message = "the thread's signal stack is small";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, message));
        }
        let kernel_sleep = KernelSleep::new();
        kernel_sleep.probe()?;
        let active = Box::new(Active {
            ticks,
            stacks,
            process: std::process::id() as libc::pid_t,
            kernel_sleep,
        });
        let active = Box::into_raw(active);
        // SAFETY: `drop` frees it only when both are taken back. In a child it is never freed.
        unsafe {
            FAULT_ACTIVE.put(active);
            ACTIVE.put(active);
        }
        let installed = TickSignal(());
        if !has_fault_handler {
            set_action(FAULT, on_fault, fault.sa_mask, fault.sa_flags)?;
        }
        crash_handlers::hold(previous);
        set_action(INTERRUPT, on_interrupt, all_but_faults(), 0)?;
        Ok(installed)
    }
}

impl Drop for TickSignal {
    fn drop(&mut self) {
        restore_interrupt();
        crash_handlers::release();
        // A handler that saw it leaves soon; later ones see nothing. Threads of other Ractors may
        // be reading their stacks: until they have left, a fault is caught.
        let active = ACTIVE.take_back(&AT_WORK);
        restore_fault();
        FAULT_ACTIVE.take_back(&AT_WORK);
        // SAFETY: it came from `Box::into_raw`, `take_back` gave it to this caller
        // alone, and no handler uses it any more.
        drop(unsafe { Box::from_raw(active) });
    }
}

/// In a forked child: the handlers go. Async-signal-safe.
pub fn forget_in_child() {
    let active = ACTIVE.take_at_once();
    // SAFETY: the child has a copy of the parent's memory, in which nobody frees it.
    if let Some(active) = unsafe { active.as_ref() } {
        restore_interrupt();
        crash_handlers::release();
        restore_fault();
        active.kernel_sleep.close();
    }
    FAULT_ACTIVE.take_at_once();
    AT_WORK.forget();
    READING.store(ptr::null_mut(), SeqCst);
}

/// How many stacks could not be read since this was asked last: of those the sampling
/// callback was asked for.
pub fn take_unreadable() -> u64 {
    UNREADABLE.swap(0, SeqCst)
}

/// Interrupts thread `tid`, if our handlers are in place and it doesn't sleep in the
/// kernel, unless it calls it off meanwhile. Async-signal-safe; called by the timer.
pub(crate) fn interrupt(tid: NativeId, interruption: &Interruption) -> bool {
    with_active(|active| {
        // What it waits for in the kernel must not end early because of us.
        let is_sent = match active.kernel_sleep.look(tid) {
            Found::Awake => are_in_place() && active.interrupt(tid, interruption),
            // It may be stopped while another Ractor collects garbage, or wait for another thread
            // with the GVL: the callback tells, and the next tick tries again.
            Found::Stopped if other_ractors() => {
                interruption.withdraw(tid);
                active.ticks.trigger();
                true
            }
            Found::Stopped | Found::Asleep => false,
        };
        active.kernel_sleep.tidy();
        is_sent
    })
    .unwrap_or(false)
}

/// What thread `tid` of another Ractor is at. Called by the timer.
fn look_at_other(tid: NativeId) -> Found {
    with_active(|active| active.kernel_sleep.look(tid)).unwrap_or(Found::Asleep)
}

/// Interrupts thread `tid` of another Ractor, unless it calls it off. Called by the timer.
fn interrupt_other(tid: NativeId, interruption: &Interruption) {
    let is_sent = with_active(|active| {
        let is_sent = are_in_place() && active.interrupt(tid, interruption);
        active.kernel_sleep.tidy();
        is_sent
    });
    if is_sent == Some(true) {
        interruption.sent(tid);
    } else {
        interruption.withdraw(tid);
    }
}

/// Whether the handlers are ours still.
fn are_in_place() -> bool {
    is_ours(INTERRUPT, on_interrupt) && is_ours(FAULT, on_fault)
}

/// Waits until no handler on another thread reads a stack: the collector has told the VM before that
/// it is at work, so later ones read none. A handler waits for nobody. In a collection.
pub(super) fn wait_for_reader() {
    fence(SeqCst);
    while !READING.load(SeqCst).is_null() && READER.load(SeqCst) != clock::thread_id().0 {
        std::thread::yield_now();
    }
}

fn with_active<R>(use_it: impl FnOnce(&Active) -> R) -> Option<R> {
    ACTIVE.with(&AT_WORK, use_it)
}

extern "C" fn on_interrupt(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let errno = errno();
    let interrupted: *mut ucontext_t = context.cast();
    with_active(|active| {
        let tid = clock::thread_id();
        active.ticks.answered(tid);
        // SAFETY: the system passes the interrupted context.
        let (in_crash, room, can_leave) = unsafe {
            let in_crash = blocks_faults(&raw const (*interrupted).uc_sigmask);
            let can_leave = saved_state::can_be_copied(interrupted);
            (in_crash, stack_room::room(interrupted), can_leave)
        };
        if in_crash {
            // It has little stack left for signals.
            active.ticks.hold_interrupts();
        } else if room != Room::Enough || !can_leave {
            if room == Room::Never {
                // Its thread may come again at any tick: from now on safepoints have to do.
                active.ticks.set_captures(false);
            }
            UNREADABLE.fetch_add(1, SeqCst);
            active.ticks.hold_interrupts();
            active.ticks.trigger();
        } else if let Some(seq) = active.ticks.holder_on(tid) {
            READER.store(tid.0, SeqCst);
            READER_ERRNO.store(errno, SeqCst);
            READING.store(interrupted, SeqCst);
            let tick_ns = active.ticks.last_tick();
            // SAFETY: as above; the holder's thread has the GVL.
            unsafe { active.stacks.take(seq, tick_ns, &registers(interrupted)) };
            READING.store(ptr::null_mut(), SeqCst);
        } else {
            let tick_ns = active.ticks.last_tick();
            let others = &active.ticks.others;
            others.read(tid, tick_ns, context, errno, |owner| {
                // SAFETY: as above; `owner` is the one of the place that is read.
                unsafe {
                    let registers = registers(interrupted);
                    active.stacks.take_other(owner, tid, tick_ns, &registers);
                }
            });
        }
    });
    set_errno(errno);
}

/// The registers of the calling thread as it was interrupted. May fault.
///
/// # Safety
/// `context` is one that the kernel wrote.
unsafe fn registers(context: *const ucontext_t) -> Registers {
    // SAFETY: by this function's contract.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return Registers {
        instruction: machine.gregs[libc::REG_RIP as usize] as usize,
        stack: machine.gregs[libc::REG_RSP as usize] as usize,
        link: 0,
        context: machine.gregs[libc::REG_R12 as usize] as usize,
        frame: machine.gregs[libc::REG_R13 as usize] as usize,
        // SAFETY: by this function's contract. A call that begins anew has its number there,
        // one that has ended its result.
        was_waiting: unsafe {
            let number = machine.gregs[libc::REG_RAX as usize] as usize;
            was_waiting(
                machine.gregs[libc::REG_RIP as usize] as usize,
                number,
                number,
            )
        },
    };
    #[cfg(target_arch = "aarch64")]
    return Registers {
        instruction: machine.pc as usize,
        stack: machine.sp as usize,
        link: machine.regs[30] as usize,
        context: machine.regs[20] as usize,
        frame: machine.regs[19] as usize,
        // SAFETY: by this function's contract.
        was_waiting: unsafe {
            let (number, result) = (machine.regs[8] as usize, machine.regs[0] as usize);
            was_waiting(machine.pc as usize, number, result)
        },
    };
}

/// Whether the thread was waiting for another one in the kernel, by `futex`, as it was interrupted.
///
/// # Safety
/// The registers are those of the calling thread as our handler has interrupted it. May fault.
unsafe fn was_waiting(at: usize, call: usize, result: usize) -> bool {
    // Either the kernel lets the call begin anew after the handler, or it has ended early.
    let begins_anew = call == libc::SYS_futex as usize;
    let has_ended = result as isize == -(libc::EINTR as isize);
    // SAFETY: code of the thread.
    unsafe { (begins_anew && is_system_call(at)) || (has_ended && is_system_call(at - CALL_SIZE)) }
}

#[cfg(target_arch = "x86_64")]
const CALL_SIZE: usize = 2;
#[cfg(target_arch = "aarch64")]
const CALL_SIZE: usize = 4;

/// Whether the machine instruction at this address is a system call.
///
/// # Safety
/// Code can be read there, or a fault is expected.
unsafe fn is_system_call(at: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by this function's contract.
    return unsafe { (at as *const u16).read_unaligned() } == 0x050F;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: by this function's contract.
    return unsafe { (at as *const u32).read_unaligned() } == 0xD400_0001;
}

/// Whether faults are blocked, as in the handlers of those that Ruby reports as a
/// crash: there one more would be the end.
///
/// # Safety
/// `mask` can be read. Of the kernel's ones only the first word can.
unsafe fn blocks_faults(mask: *const libc::sigset_t) -> bool {
    // SAFETY: by this function's contract; all of these are in the first word.
    FAULTS
        .iter()
        .any(|&signal| unsafe { libc::sigismember(mask, signal) } != 0)
}

extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let interrupted = READING.load(SeqCst);
    if is_fault(info) && !interrupted.is_null() && READER.load(SeqCst) == clock::thread_id().0 {
        READING.store(ptr::null_mut(), SeqCst);
        // SAFETY: `on_interrupt` is at work further up this stack: its session lives.
        if let Some(active) = unsafe { FAULT_ACTIVE.get() } {
            UNREADABLE.fetch_add(1, SeqCst);
            active.ticks.trigger();
        }
        AT_WORK.leave();
        set_errno(READER_ERRNO.load(SeqCst));
        // SAFETY: both are contexts that the kernel wrote, on this stack.
        unsafe { go_on_as(context.cast(), interrupted) };
        return;
    }
    if is_fault(info) && end_other_reading(context.cast()) {
        return;
    }
    // What reports a crash has little stack left for signals. Who goes on comes to a safepoint, where
    // interruptions begin again.
    with_active(|active| active.ticks.hold_interrupts());
    // It is there before this handler is.
    if let Some(previous) = PREVIOUS_FAULT.get() {
        hand_on(previous, signal, info, context);
    }
}

/// If the calling thread was reading a stack of another Ractor's in our handler, it goes on as
/// before. Returns whether it was.
fn end_other_reading(context: *mut ucontext_t) -> bool {
    let interrupted = FAULT_ACTIVE.with(&AT_WORK, |active| {
        let others = &active.ticks.others;
        others.take_interrupted(clock::thread_id(), |owner| {
            // SAFETY: what the handler was reading for.
            unsafe { active.stacks.give_up(owner) };
        })
    });
    let Some(interrupted) = interrupted.flatten() else {
        return false;
    };
    UNREADABLE.fetch_add(1, SeqCst);
    // What `on_interrupt` has added, which doesn't return.
    AT_WORK.leave();
    set_errno(interrupted.errno);
    // SAFETY: both are contexts that the kernel wrote, on this stack.
    unsafe { go_on_as(context, interrupted.context.cast()) };
    true
}

/// Does what would be done without our handler.
fn hand_on(previous: &libc::sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // A fault happens again as the handler returns, and then takes its default
            // course; what somebody has sent comes once.
            let _ = put_action(signal, previous);
            if !is_fault(info) {
                // SAFETY: takes a number; async-signal-safe.
                unsafe { libc::raise(signal) };
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO it is a function of this type.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO it is a function of this type.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Whether the kernel has sent it.
fn is_fault(info: *const siginfo_t) -> bool {
    // SAFETY: the system passes a valid siginfo. Positive codes are the kernel's.
    unsafe { (*info).si_code > 0 }
}

/// Makes the return from the handler that got `context` lead to where the handler
/// that got `interrupted` would return to.
///
/// # Safety
/// Both are contexts of handlers at work on this thread.
unsafe fn go_on_as(context: *mut ucontext_t, interrupted: *const ucontext_t) {
    // SAFETY: by this function's contract. `on_interrupt` reads no stack unless `saved_state` can be
    // copied: on x86-64 the floating-point state is behind a pointer into the older handler's frame,
    // which stays where it is. Of the signal mask the kernel has, and reads, the first word only.
    unsafe {
        (*context).uc_mcontext = (*interrupted).uc_mcontext;
        let mask = (&raw const (*interrupted).uc_sigmask).cast::<u64>();
        *(&raw mut (*context).uc_sigmask).cast::<u64>() = *mask;
    }
}

/// Nothing else may come while frames are read: a fault there would be taken for ours.
fn all_but_faults() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: fills in the set, and takes some signals out of it.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        for signal in FAULTS {
            libc::sigdelset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Puts the default action back, if ours is still there. Async-signal-safe.
fn restore_interrupt() {
    if is_ours(INTERRUPT, on_interrupt) {
        let _ = put_action(INTERRUPT, &default_action());
    }
}

/// Puts back what took faults before, if ours is still there. Async-signal-safe.
fn restore_fault() {
    if let (true, Some(previous)) = (is_ours(FAULT, on_fault), PREVIOUS_FAULT.get()) {
        let _ = put_action(FAULT, previous);
    }
}

fn errno() -> c_int {
    // SAFETY: errno's address is valid on every thread.
    unsafe { *libc::__errno_location() }
}

fn set_errno(errno: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Held by tests with handlers: a process has one set of them.
#[cfg(test)]
pub(crate) static HANDLERS: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests;
