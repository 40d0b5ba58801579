//! Label sets that are made of others or inherited, and what they keep of them: the request and the op that
//! go on. With the GVL, outside of hooks.

use super::label_set::{
    HANDLES, NIL, NO_SESSION, Origin, SetObject, base_of, is_present, object_of, value,
};
use super::open_op::OpenOp;
use super::running;
use crate::ruby::threads::RubyThread;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Value};
use rperf_accounts::OpFrame;
use rperf_vm::{Gvl, LabelSet, OpNumber, RequestNumber};
use std::hint::black_box;

/// What begins with labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// A block alone.
    Block,
    /// A request or a job, with its number where they are judged.
    Work(Option<RequestNumber>),
}

impl Begins {
    /// The number of the request that begins, if one does.
    pub fn request(self) -> Option<RequestNumber> {
        match self {
            Self::Block => None,
            Self::Work(request) => request,
        }
    }
}

/// `inner`, which was made of `outer`: in the same op, and of the same request, or else of the one that
/// has `begun`, with the key of the label that names it. The op is no leaf of the samples of a request or a job
/// that begins in it, as of one that runs where it is enqueued: it would hide its methods. Outside of hooks.
pub fn inside(
    outer: &Value,
    inner: Value,
    begun: Option<(RequestNumber, Value)>,
    begins: Begins,
) -> Value {
    let of_request = SetObject::get(outer).filter(|outer| outer.is_of_request());
    let request = match of_request {
        Some(outer) => Some((outer.set.request(), outer.request_key)),
        None => begun.map(|(number, key)| (number, key.as_raw())),
    };
    let op = op_around(outer);
    if request.is_none() && op.is_none() {
        return inner;
    }
    let new = SetObject::get(&inner).and_then(|inner| {
        let (number, key) = request.unwrap_or((RequestNumber::NONE, NIL));
        let mut new = inner.in_request(number, key);
        if let Some((op_set, op)) = op {
            new.set = new.set.in_op(match begins {
                Begins::Block => op,
                Begins::Work(_) => OpNumber::NONE,
            });
            new.op_set = op_set.as_raw();
        }
        Some(value(new.wrap(HANDLES.get()?.set_class)))
    });
    // Until here it keeps the labels alive that the new one has.
    black_box(inner.as_raw());
    new.unwrap_or(inner)
}

/// The set with which the op began that `set` is in, and the number that samples have in it: that of the
/// op that is their leaf.
pub fn op_around(set: &Value) -> Option<(Value, OpNumber)> {
    let object = SetObject::get(set)?;
    let op_set = match object.op {
        Some(_) => *set,
        None => value(object.op_set),
    };
    (op_set.as_raw() != NIL).then_some((op_set, object.set.op()))
}

/// A set as `outer`, or without labels if that is nil, with which an op begins on `thread`, the calling
/// one. `frame` says which op is the leaf of its samples. Outside of hooks.
pub fn begin_op(
    gvl: &Gvl<'_>,
    thread: RubyThread<'_>,
    outer: Value,
    number: OpNumber,
    frame: OpFrame,
) -> Option<Value> {
    let handles = HANDLES.get()?;
    let around = op_around(&outer);
    let within = around.map_or(NIL, |(op_set, _)| op_set.as_raw());
    let sampled = match (frame, around) {
        (OpFrame::Own, _) => number,
        (OpFrame::OfOuter, Some((_, around))) => around,
        (OpFrame::OfOuter, None) | (OpFrame::Nothing, _) => OpNumber::NONE,
    };
    let mut new = match SetObject::get(&outer) {
        Some(set) => set.in_request(set.set.request(), set.request_key),
        None => without_labels(gvl, thread, &outer),
    };
    new.set = new.set.in_op(sampled);
    new.op_set = NIL;
    new.op = Some(Box::new(OpenOp::new(number, outer.as_raw(), within)));
    let new = value(new.wrap(handles.set_class));
    black_box(outer.as_raw());
    Some(new)
}

/// The present labels of `thread`, the calling one, without the op that began with `set`: in the one, if
/// any, that this is inside of; nil for none. `None` if the present fiber isn't in that op.
pub fn outside_of(gvl: &Gvl<'_>, thread: RubyThread<'_>, set: Value) -> Option<Value> {
    let present = object_of(gvl, thread)?;
    let (around, _) = op_around(&present)?;
    if around.as_raw() != set.as_raw() {
        return None;
    }
    let op = SetObject::get(&set)?.op()?;
    let outer = op.outer();
    let left = if present.as_raw() == set.as_raw() {
        outer
    } else {
        // Labels were put on in the op that stay.
        in_op(present, op.within(), number_outside(op))?
    };
    // The one around it may have ended before.
    Some(without_ended_ops(gvl, left))
}

/// The labels of `set`, or nil, as they are put back: in the innermost op of its that goes on.
pub fn without_ended_ops(gvl: &Gvl<'_>, mut set: Value) -> Value {
    while let Some((op_set, _)) = op_around(&set) {
        let object = SetObject::get(&op_set);
        let Some(op) = object.and_then(SetObject::op).filter(|op| op.is_over(gvl)) else {
            break;
        };
        let within = op.within();
        let number = number_outside(op);
        let Some(new) = in_op(set, within, number) else {
            break;
        };
        set = new;
    }
    set
}

/// The labels of `set`, or nil, as a block that has put others on puts them back: in the innermost op that
/// goes on, which may have begun in the block, and ends later.
pub fn with_open_op(gvl: &Gvl<'_>, thread: RubyThread<'_>, set: Value) -> Value {
    let set = without_ended_ops(gvl, set);
    let Some((op_set, number)) = open_op(gvl, thread) else {
        return set;
    };
    let same = op_around(&set).is_some_and(|(around, _)| around.as_raw() == op_set.as_raw());
    if same {
        return set;
    }
    let new = match SetObject::get(&set) {
        Some(_) => in_op(set, op_set, number),
        None => HANDLES.get().map(|handles| {
            let mut new = without_labels(gvl, thread, &set);
            new.set = new.set.in_op(number);
            new.op_set = op_set.as_raw();
            value(new.wrap(handles.set_class))
        }),
    };
    black_box(op_set.as_raw());
    new.unwrap_or(set)
}

/// The set with which the innermost op began that goes on in the present fiber, and the number that samples have
/// in it.
fn open_op(gvl: &Gvl<'_>, thread: RubyThread<'_>) -> Option<(Value, OpNumber)> {
    let (mut op_set, mut number) = op_around(&object_of(gvl, thread)?)?;
    loop {
        let op = SetObject::get(&op_set)?.op()?;
        if !op.is_over(gvl) {
            return Some((op_set, number));
        }
        number = number_outside(op);
        op_set = op.within();
    }
}

/// The number that samples had where the op began: none, in a request or job that began in the op around it.
fn number_outside(op: &OpenOp) -> OpNumber {
    let outer = op.outer();
    SetObject::get(&outer).map_or(OpNumber::NONE, |outer| outer.set.op())
}

/// A set without labels, in place of `none`, which is nil. What is made of it is made as of none.
fn without_labels(gvl: &Gvl<'_>, thread: RubyThread<'_>, none: &Value) -> SetObject {
    let base = base_of(gvl, thread, none);
    let changes = Box::default();
    SetObject {
        set: LabelSet::empty(),
        pairs: Box::default(),
        origin: Some(Origin { base, changes }),
        number: base,
        session: running(gvl).map_or(NO_SESSION, |it| it.id),
        thread: thread.serial(gvl),
        request_key: NIL,
        op_set: NIL,
        op: None,
    }
}

/// Gives the present fiber of the calling thread the labels that it has inherited, if it is a
/// new one. Runs Ruby code, outside of hooks but the fiber hook. Fails if an
/// interrupt, such as a Timeout's, comes meanwhile.
pub fn adopt(gvl: &mut Gvl<'_>) -> Result<(), Error> {
    let Some(handles) = HANDLES.get() else {
        return Ok(());
    };
    // Whether the fiber has labels, or is known to have none.
    if handles.local(RubyThread::current(gvl)) != NIL {
        return Ok(());
    }
    let inherited = handles.inherited(gvl)?;
    let thread = RubyThread::current(gvl);
    let is_used = is_used(gvl, &inherited, thread);
    handles.set_local(
        thread,
        if is_used {
            in_no_op(inherited)
        } else {
            value(handles.none)
        },
    );
    Ok(())
}

/// Whether a label set from the Fiber storage is of this session and `thread`.
fn is_used(gvl: &Gvl<'_>, set: &Value, thread: RubyThread<'_>) -> bool {
    let set = SetObject::get(set);
    set.is_some_and(|set| is_present(gvl, set) && set.thread == thread.serial(gvl))
}

/// The labels of `set` in no op: it is the op of the fiber that made this one.
fn in_no_op(set: Value) -> Value {
    let is_in_one = op_around(&set).is_some();
    let new = is_in_one.then(|| in_op(set, value(NIL), OpNumber::NONE));
    new.flatten().unwrap_or(set)
}

/// The labels of `set` in another op, or in none.
fn in_op(set: Value, op_set: Value, number: OpNumber) -> Option<Value> {
    let object = SetObject::get(&set)?;
    let mut new = object.in_request(object.set.request(), object.request_key);
    new.set = new.set.in_op(number);
    new.op_set = op_set.as_raw();
    let new = new.wrap(HANDLES.get()?.set_class);
    black_box((set.as_raw(), op_set.as_raw()));
    Some(value(new))
}
