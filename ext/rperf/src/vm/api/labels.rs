//! Labels as the methods of `Rperf::Native` (scope.rs) change them: made from a Hash, put into
//! the present fiber, asked for. On threads of the main Ractor, with the GVL.

use crate::profile::errors;
use crate::text;
use crate::vm::hooks::fiber;
use crate::vm::recording::sample;
use crate::vm::state::label_set::{self, SetObject};
use crate::vm::state::session::{catching, counting_session, session};
use crate::vm::state::threads::RubyThread;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Symbol, Value, prelude::*};
use rperf_engine::{AtWork, Gvl, LabelSet};
use std::hint::black_box;

/// `Native.labels`: the Hash of the present fiber's labels in this session; nil if it has
/// none.
pub fn labels(ruby: &Ruby) -> Result<Value, Error> {
    // SAFETY: a method, on a thread of the main Ractor.
    let mut gvl = unsafe { Gvl::assume_held() };
    Ok(hash_of(ruby, present(ruby, &mut gvl)?))
}

/// Merges the Hash `changes` into the labels of the present fiber; nil takes a label away.
/// Notes the set to be put back in `undo`, and returns the Hash of all labels. Runs Ruby code.
pub fn add(ruby: &Ruby, gvl: &mut Gvl<'_>, undo: RArray, changes: RHash) -> Result<Value, Error> {
    let outer = present(ruby, gvl)?;
    let inner = merged(ruby, gvl, outer, changes)?;
    undo.push(outer)?;
    put(gvl, inner)?;
    Ok(hash_of(ruby, inner))
}

/// Makes `set`, or nil for no labels, the label set of the present fiber and those that it
/// will make. Runs Ruby code.
pub fn put(gvl: &mut Gvl<'_>, set: Value) -> Result<(), Error> {
    let thread = RubyThread::current(gvl);
    // What ran at the last ticks ran with the labels that there were. The handler is kept
    // off until the new ones are there.
    let guard = AtWork::begin(gvl);
    if let Some(session) = counting_session(gvl) {
        catching(session, || sample::drain_ticks(gvl, session, &guard));
    }
    label_set::set_local(thread, set);
    drop(guard);
    if let Some(session) = session(gvl) {
        if !set.is_nil() {
            session.use_labels();
            fiber::add_if_needed(session);
        }
        fiber::note_labels(gvl, session);
    }
    // Last, as this is where an interrupt can come.
    label_set::set_inherited(gvl, set)
}

/// The label set of the present fiber in this session, or nil. Runs Ruby code.
fn present(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Value, Error> {
    let nothing = ruby.qnil().as_value();
    if !label_set::are_used(gvl) {
        return Ok(nothing);
    }
    label_set::adopt(gvl)?;
    let Some(session) = session(gvl) else {
        return Ok(nothing);
    };
    let thread = RubyThread::current(gvl);
    fiber::note_labels(gvl, session);
    Ok(label_set::object_of(session, thread).unwrap_or(nothing))
}

/// A new label set: `outer`, or nothing if it is nil, with `changes` merged in. Runs Ruby code.
fn merged(ruby: &Ruby, gvl: &mut Gvl<'_>, outer: Value, changes: RHash) -> Result<Value, Error> {
    let (hash, texts) = merged_hash(ruby, gvl, outer, changes)?;
    let set = match SetObject::get(&outer) {
        Some(outer) => outer.set.with(texts),
        None => LabelSet::empty().with(texts),
    };
    let object = label_set::new_object(gvl, RubyThread::current(gvl), set, hash.as_value());
    // Keeps both on the stack until here.
    black_box((outer.as_raw(), hash.as_raw()));
    object.ok_or_else(|| errors::rperf(ruby, "rperf is not set up"))
}

/// A label's key, and its value or nothing.
type LabelText = (String, Option<String>);

/// The Hash of `outer` with `changes` merged in, frozen, and the texts of these.
fn merged_hash(
    ruby: &Ruby,
    _: &mut Gvl<'_>,
    outer: Value,
    changes: RHash,
) -> Result<(RHash, Vec<LabelText>), Error> {
    let hash: RHash = match SetObject::get(&outer) {
        Some(_) => hash_of(ruby, outer).funcall("dup", ())?,
        None => ruby.hash_new(),
    };
    let mut texts = Vec::with_capacity(changes.len());
    changes.foreach(|key: Value, value: Value| {
        let key = match Symbol::from_value(key) {
            Some(key) => key,
            None => ruby.to_symbol(text::shown(ruby, key)?),
        };
        if value.is_nil() {
            let _: Value = hash.delete(key)?;
        } else {
            hash.aset(key, value)?;
        }
        let value = Some(value).filter(|value| !value.is_nil());
        let value = value.map(|value| text::shown(ruby, value)).transpose()?;
        texts.push((text::shown(ruby, key.as_value())?, value));
        Ok(ForEach::Continue)
    })?;
    hash.freeze();
    Ok((hash, texts))
}

/// The Hash of a label set; nil for nil.
fn hash_of(ruby: &Ruby, set: Value) -> Value {
    SetObject::get(&set).map_or(ruby.qnil().as_value(), SetObject::hash)
}
