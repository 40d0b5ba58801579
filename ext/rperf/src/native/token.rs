//! The token of the GVL for methods of `Rperf::Native`.

use magnus::Ruby;
use rperf_vm::Gvl;

/// The token of a method. Each asks for it once, at its head, as does the port's helper.
pub fn gvl(_: &Ruby) -> Gvl<'_> {
    // SAFETY: the VM lets only threads of the main Ractor call these methods, with its GVL, and
    // nothing else calls them.
    unsafe { Gvl::assume_held() }
}
