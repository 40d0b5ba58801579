//! When the handler of ticks may take a stack. One test in a process of its own, as the flags are
//! the process's.

use rperf_sampling::{AtWork, may_take_stack, reset_at_work};
use rperf_vm::Gvl;

#[test]
fn the_handler_is_kept_off_until_the_outermost_guard_goes() {
    // SAFETY: the only thread that uses the flags.
    let gvl = unsafe { Gvl::assume_held() };
    assert!(may_take_stack());
    let outer = AtWork::begin(&gvl);
    drop(AtWork::begin(&gvl));
    assert!(!may_take_stack());
    drop(outer);
    assert!(may_take_stack());
    std::mem::forget(AtWork::begin(&gvl));
    assert!(!may_take_stack(), "as in a forked child");
    reset_at_work();
    assert!(may_take_stack());
}
