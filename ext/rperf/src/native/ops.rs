//! The begin and the end of ops: `Native.begin_op` and what goes with it. `Rperf.op` and the libraries'
//! hooks call them (lib/rperf/ops.rb), on threads of the main Ractor, with the GVL. In between, the label
//! set of the fiber has the op's number, and so do its samples; and an account of it is open.

use super::{accounts, gvl};
use crate::accounts::threads;
use crate::labels;
use crate::ruby::threads::RubyThread;
use crate::running::derived_labels;
use crate::running::label_set::{self, SetObject};
use crate::running::open_op::OpenOp;
use crate::running::sampling::{SamplingSession, measures_ops, sampling};
use crate::text;
use magnus::{Error, RArray, RModule, RString, Ruby, Value, function, prelude::*};
use rperf_accounts::{OpCall, RequestName, SessionOps};
use rperf_model::LatencyClass;
use rperf_vm::{Gvl, OpNumber, RequestNumber};
use std::hint::black_box;

/// Ops around one that are looked at, to tell whether it calls itself.
const MOST_AROUND: usize = 64;

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("ops?", function!(are_measured_for_ruby, 0))?;
    native.define_singleton_method("op_calls", function!(calls, 1))?;
    native.define_singleton_method("begin_op", function!(begin, 3))?;
    native.define_singleton_method("end_op", function!(end, 1))?;
    native.define_singleton_method("start_op", function!(start, 2))?;
    native.define_singleton_method("finish_op", function!(finish, 1))
}

/// `Native.ops?`: whether the running session measures ops.
fn are_measured_for_ruby(ruby: &Ruby) -> bool {
    measures_ops(&gvl(ruby))
}

/// `Native.op_calls(kind)`: the calls of ops of this kind, or of all, since the session began, as an Array
/// of names and numbers in turn; nil if it doesn't measure them.
fn calls(ruby: &Ruby, kind: Option<String>) -> Result<Option<RArray>, Error> {
    let gvl = gvl(ruby);
    let calls = with_ops(&gvl, |ops| {
        let calls = ops.calls(kind.as_deref());
        calls
            .map(|(name, calls)| (name.to_string(), calls))
            .collect::<Vec<_>>()
    });
    let Some(calls) = calls else {
        return Ok(None);
    };
    let told = ruby.ary_new_capa(2 * calls.len());
    for (name, calls) in calls {
        told.push(name)?;
        told.push(calls)?;
    }
    Ok(Some(told))
}

/// `Native.begin_op(undo, kind, text)`: an op begins, if they are measured, and is noted in `undo`. An
/// interrupt can come as this returns; then `end_op` finds it there.
fn begin(ruby: &Ruby, undo: RArray, kind: Value, text: RString) -> Result<(), Error> {
    let mut gvl = gvl(ruby);
    // A program's own Symbol#to_s could hide that it is a statement of SQL, whose values are left out.
    let kind = text::shown(ruby, kind)?;
    let Some(set) = made(ruby, &mut gvl, &kind, text)? else {
        return Ok(());
    };
    undo.push(set)?;
    open(&mut gvl, set);
    Ok(())
}

/// `Native.end_op(undo)`: ends the op that is noted in `undo`, if there is one.
fn end(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    let set: Value = undo.pop()?;
    close(&mut gvl(ruby), set);
    Ok(())
}

/// `Native.start_op(kind, text)`: an op begins, if they are measured, that `finish_op` ends.
fn start(ruby: &Ruby, kind: RString, text: RString) -> Result<(), Error> {
    let mut gvl = gvl(ruby);
    if let Some(set) = made(ruby, &mut gvl, &text::content(kind), text)? {
        open(&mut gvl, set);
    }
    Ok(())
}

/// `Native.finish_op(kind)`: ends the op that the present fiber is in, if it is of this kind.
fn finish(ruby: &Ruby, kind: RString) {
    let mut gvl = gvl(ruby);
    let Some(present) = label_set::object_of(&gvl, RubyThread::current(&gvl)) else {
        return;
    };
    let Some((set, _)) = derived_labels::op_around(&present) else {
        return;
    };
    let number = SetObject::get(&set).and_then(SetObject::op);
    let Some(number) = number.map(OpenOp::number) else {
        return;
    };
    let is_of_kind = with_ops(&gvl, |ops| {
        text::with_bytes(kind, |kind| ops.is_of_kind(number, kind))
    });
    if is_of_kind == Some(true) {
        close(&mut gvl, set);
    }
}

/// The label set of an op that is about to begin.
fn made(ruby: &Ruby, gvl: &mut Gvl<'_>, kind: &str, text: RString) -> Result<Option<Value>, Error> {
    if !measures_ops(gvl) {
        return Ok(None);
    }
    accounts::look_for_ractors(ruby, gvl)?;
    // In some encodings a part of a character looks like a quote: then the values of SQL could stay.
    let converted = (!text::is_readable(text))
        .then(|| text::in_utf8(ruby, text))
        .transpose()?;
    let outer = labels::present(ruby, gvl)?;
    let number = with_ops(gvl, |ops| {
        let number = match &converted {
            Some(text) => ops.number(kind, text.as_bytes()),
            None => text::with_bytes(text, |text| ops.number(kind, text)),
        };
        (number, ops.frame(number))
    });
    let number = number.filter(|it| it.0 != OpNumber::NONE);
    Ok(number.and_then(|(number, frame)| {
        derived_labels::begin_op(gvl, RubyThread::current(gvl), outer, number, frame)
    }))
}

fn open(gvl: &mut Gvl<'_>, set: Value) {
    labels::put_here(gvl, set);
    if let Some(op) = SetObject::get(&set).and_then(SetObject::op) {
        op.open(gvl, set);
    }
}

/// Ends the op that began with `set`, if it is such a set.
fn close(gvl: &mut Gvl<'_>, set: Value) {
    let Some((object, op)) = SetObject::get(&set).and_then(|it| Some((it, it.op()?))) else {
        return;
    };
    let closed = op.close(gvl).filter(|_| label_set::is_present(gvl, object));
    if let Some((figures, nested)) = closed {
        let (number, request) = (op.number(), object.set.request());
        let within = op.within();
        if let Some(within) = SetObject::get(&within).and_then(SetObject::op) {
            within.add_nested(gvl, &figures);
        }
        let call = OpCall {
            figures,
            nested: nested.sums,
            nested_suspended_ns: nested.suspended_ns,
            is_within_itself: is_within(op, number),
        };
        let name = with_ops(gvl, |ops| {
            ops.add(number, request, &call);
            ops.name(number)
        });
        if let Some(name) = name.flatten() {
            threads::add_op(gvl, RubyThread::current(gvl), &name, call.time());
        }
    }
    if let Some(outer) = derived_labels::outside_of(gvl, RubyThread::current(gvl), set) {
        labels::put_here(gvl, outer);
    }
    black_box(set);
}

/// Whether the op is inside of one with this number, as far as that is looked for.
fn is_within(op: &OpenOp, number: OpNumber) -> bool {
    let mut around = op.within();
    for _ in 0..MOST_AROUND {
        let Some(set) = SetObject::get(&around) else {
            return false;
        };
        let Some(op) = set.op() else {
            return false;
        };
        if op.number() == number {
            return true;
        }
        around = op.within();
    }
    false
}

/// A request begins with this number.
pub fn begin_request(gvl: &Gvl<'_>, request: RequestNumber) {
    with_ops(gvl, |ops| ops.begin_request(request));
}

/// A request has ended. Its class is `None` if it isn't known how long it took.
pub fn end_request(
    session: &SamplingSession,
    gvl: &Gvl<'_>,
    request: RequestNumber,
    of: RequestName<'_>,
    class: Option<LatencyClass>,
) {
    let ops = session.sums.ops.as_ref().and_then(|ops| ops.borrow(gvl));
    if let Some(mut ops) = ops {
        ops.end_request(request, of, class);
    }
}

fn with_ops<T>(gvl: &Gvl<'_>, work: impl FnOnce(&mut SessionOps) -> T) -> Option<T> {
    let mut ops = sampling(gvl)?.sums.ops.as_ref()?.borrow(gvl)?;
    Some(work(&mut ops))
}
