//! The methods of `Rperf::Native` that belong to sampling. Defined on the main thread, when the
//! extension is loaded; called on threads of the main Ractor, with the GVL: others than that
//! may not call methods of this extension.

use super::{endpoint, labels, measure, scope, snapshot, start};
use crate::vm::hooks::{fork, thread};
use crate::vm::state::roots;
use crate::vm::state::session::SESSION;
use crate::vm::state::trace::{TRACE, check_stacks};
use magnus::{Error, Object, RModule, function};
use rperf_engine::Gvl;

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("start", function!(start::start, 1))?;
    native.define_singleton_method("stop", function!(snapshot::stop, 0))?;
    native.define_singleton_method("stop_into", function!(snapshot::stop_into, 1))?;
    native.define_singleton_method("snapshot", function!(snapshot::snapshot, 1))?;
    native.define_singleton_method("running?", function!(is_running, 0))?;
    native.define_singleton_method("enter", function!(scope::enter, 3))?;
    native.define_singleton_method("leave", function!(scope::leave, 1))?;
    native.define_singleton_method("enter_at_once", function!(scope::enter_at_once, 2))?;
    native.define_singleton_method("leave_at_once", function!(scope::leave_at_once, 1))?;
    native.define_singleton_method("labels", function!(labels::labels, 0))?;
    native.define_singleton_method("endpoint", function!(endpoint::name, 3))?;
    native.define_singleton_method("endpoint_path", function!(endpoint::path, 1))?;
    native.define_singleton_method("forking", function!(fork::announce, 1))?;
    native.define_singleton_method("forget_in_child", function!(forget_in_child, 0))?;
    // For benchmarks and specs.
    native.define_singleton_method("add_empty_hooks", function!(measure::add_empty_hooks, 1))?;
    native.define_singleton_method("add_empty_trace", function!(measure::add_empty_trace, 1))?;
    native.define_singleton_method("check_traces", function!(check_stacks, 0))?;
    native.define_singleton_method(
        "remove_empty_hooks",
        function!(measure::remove_empty_hooks, 0),
    )?;
    native.define_singleton_method("sample_cost", function!(measure::sample_cost, 3))?;
    native.define_singleton_method("hooks?", function!(thread::is_registered, 0))
}

fn is_running() -> bool {
    !SESSION.is_empty() || !TRACE.is_empty()
}

fn forget_in_child() {
    // SAFETY: a method, on a thread of the main Ractor.
    roots::forget_unnamed(&unsafe { Gvl::assume_held() });
    if !is_running() {
        fork::remove_inherited_hooks();
    }
}
