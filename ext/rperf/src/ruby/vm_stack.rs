//! Where the VM has its stack of a thread, which it has from malloc, or on the native stack of a fiber.
//! With the GVL.

use super::ractor;
use super::threads::RubyThread;
use super::version;
use rperf_vm::{Checked, Gvl, Memory};

/// More than any stack has.
const MOST: usize = 1 << 32;

/// Its address and its bytes; `None` where the VM's data isn't known, and for a thread that hasn't begun
/// or has ended.
pub fn of(_: &Gvl<'_>, memory: &Checked, thread: RubyThread<'_>) -> Option<(usize, usize)> {
    let layout = version::frame_layout().ok()?;
    // A thread that is about to end may be without one.
    let context = Some(ractor::context_of(thread)).filter(|&it| it != 0)?;
    let start = memory.word(context.checked_add(layout.stack)?)?;
    let words = memory.word(context.checked_add(layout.stack_size)?)?;
    let bytes = words.checked_mul(size_of::<usize>())?;
    (start != 0 && (1..MOST).contains(&bytes)).then_some((start, bytes))
}
