//! Labels as the methods of `Rperf::Native` (scope.rs) change them: made from a Hash, put into
//! the present fiber, asked for. On threads of the main Ractor, with the GVL.

mod cache;
pub mod endpoint;
pub mod scope;

pub use cache::{clear as clear_cache, init};

use crate::probes::sampling::fiber;
use crate::probes::tracing::labels as traced;
use crate::profile::errors;
use crate::recording::sample;
use crate::ruby::threads::RubyThread;
use crate::running::derived_labels::{self, Begins};
use crate::running::label_set::{self, LabelPair, Origin, SetObject};
use crate::running::sampling::{catching, counting_session, sampling};
use crate::running::session;
use crate::text;
use cache::Changes;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Symbol, Value, prelude::*};
use rperf_sampling::AtWork;
use rperf_vm::{Gvl, LabelSet};
use std::hint::black_box;

/// `Native.labels`: a Hash of the present fiber's labels in this session; nil if it has none.
pub fn labels(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Option<RHash>, Error> {
    let present = present(ruby, gvl)?;
    if let Some(session) = counting_session(gvl).filter(|_| label_set::are_used(gvl)) {
        catching(session, || fiber::note_present(gvl, session));
    }
    traced::note_present(gvl);
    let hash = SetObject::get(&present).map(|set| set.to_hash(ruby));
    let hash = hash.transpose()?.filter(|hash| !hash.is_empty());
    Ok(hash.inspect(|hash| hash.freeze()))
}

/// Merges the Hash `changes` into the labels of the present fiber; nil takes a label away.
/// Notes the set to be put back in `undo`. Runs Ruby code.
pub fn add(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    changes: RHash,
    begins: Begins,
) -> Result<(), Error> {
    if let Some(constant) = Changes::of(changes)? {
        return add_constant(ruby, gvl, undo, constant, begins);
    }
    let outer = present(ruby, gvl)?;
    let inner = merged(ruby, gvl, outer, changes)?;
    let mut begun = None;
    changes.foreach(|key: Value, _: Value| {
        let key = Symbol::from_value(key).map(Symbol::as_value);
        begun = begins.request().zip(key);
        Ok(ForEach::Stop)
    })?;
    let inner = derived_labels::inside(&outer, inner, begun, begins);
    undo.push(outer)?;
    put(gvl, inner)
}

/// Merges `changes`, which are put on without running Ruby code that could fail, into the labels
/// of the present fiber. Notes the set to be put back in `undo`.
pub fn add_constant(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    changes: Changes,
    begins: Begins,
) -> Result<(), Error> {
    let key = changes.iter().next().map(|(key, _)| key.as_value());
    let outer = present(ruby, gvl)?;
    let inner = with_constant(ruby, gvl, outer, changes)?;
    let begun = begins.request().zip(key);
    let inner = derived_labels::inside(&outer, inner, begun, begins);
    undo.push(outer)?;
    put(gvl, inner)
}

/// Makes `set`, or nil for no labels, the label set of the present fiber and those that it
/// will make. Runs Ruby code.
pub fn put(gvl: &mut Gvl<'_>, set: Value) -> Result<(), Error> {
    put_here(gvl, set);
    traced::note_present(gvl);
    // Last, as this is where an interrupt can come.
    label_set::set_inherited(gvl, set)
}

/// Makes `set`, or nil for no labels, the label set of the present fiber alone. In a session that traces
/// calls they aren't noted.
pub fn put_here(gvl: &mut Gvl<'_>, set: Value) {
    let thread = RubyThread::current(gvl);
    // What ran at the last ticks ran with the labels that there were. The handler is kept
    // off until the new ones are there.
    let guard = AtWork::begin(gvl);
    if let Some(session) = counting_session(gvl) {
        catching(session, || sample::drain_ticks(gvl, session, &guard));
    }
    label_set::set_local(thread, set);
    if let Some(session) = session(gvl).filter(|_| !set.is_nil()) {
        session.use_labels();
    }
    if let Some(session) = sampling(gvl)
        && let Some(state) = thread.known_state(gvl)
    {
        session.note_labels(gvl, state, label_set::noted(gvl, thread));
    }
    drop(guard);
    if let Some(session) = sampling(gvl) {
        fiber::add_if_needed(gvl, session);
    }
}

/// The label set of the present fiber in this session, or nil. Runs Ruby code.
pub fn present(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Value, Error> {
    let nothing = ruby.qnil().as_value();
    if !label_set::are_used(gvl) {
        return Ok(nothing);
    }
    derived_labels::adopt(gvl)?;
    let present = label_set::object_of(gvl, RubyThread::current(gvl));
    Ok(present.unwrap_or(nothing))
}

/// The label set that is `outer`, or nothing if that is nil, with `changes`: the one that there is,
/// or a new one.
fn with_constant(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    outer: Value,
    mut changes: Changes,
) -> Result<Value, Error> {
    let base = label_set::base_of(gvl, RubyThread::current(gvl), &outer);
    if let Some(set) = changes.find(ruby, gvl, base) {
        return Ok(set);
    }
    changes.freeze();
    let mut texts = Vec::new();
    for (key, value) in changes.iter() {
        let value = text::shown(ruby, value)?;
        texts.push((text::shown(ruby, key.as_value())?, Some(value)));
    }
    // From here on the VM is asked for the object only, and what it refers to is on the stack.
    let of_pair = |(key, value): (Symbol, Value)| LabelPair::new(key.as_value(), value);
    let mut pairs = SetObject::get(&outer).map_or_else(Vec::new, |set| set.pairs().to_vec());
    // A set with other texts too holds on to the program's objects.
    let is_constant = SetObject::get(&outer).is_none_or(SetObject::is_constant);
    let origin = is_constant.then(|| Origin {
        base,
        changes: if pairs.is_empty() {
            Box::default()
        } else {
            changes.iter().map(of_pair).collect()
        },
    });
    for pair in changes.iter().map(of_pair) {
        match pairs.iter_mut().find(|it| it.key() == pair.key()) {
            Some(same) => *same = pair,
            None => pairs.push(pair),
        }
    }
    let set = new_set(ruby, gvl, outer, texts, pairs, origin)?;
    if is_constant {
        changes.keep(ruby, gvl, base, set)?;
    }
    Ok(set)
}

/// A new label set: the same with changes of any kind. Runs Ruby code.
fn merged(ruby: &Ruby, gvl: &mut Gvl<'_>, outer: Value, changes: RHash) -> Result<Value, Error> {
    let (hash, texts) = merged_hash(ruby, gvl, outer, changes)?;
    let mut pairs = Vec::with_capacity(hash.len());
    hash.foreach(|key: Value, value: Value| {
        pairs.push(LabelPair::new(key, value));
        Ok(ForEach::Continue)
    })?;
    let set = new_set(ruby, gvl, outer, texts, pairs, None);
    // Keeps the pairs alive until here.
    black_box(hash.as_raw());
    set
}

/// A new label set: `outer`, or nothing if it is nil, with these texts, which the program sees as
/// `pairs`.
fn new_set(
    ruby: &Ruby,
    gvl: &Gvl<'_>,
    outer: Value,
    texts: Vec<LabelText>,
    pairs: Vec<LabelPair>,
    origin: Option<Origin>,
) -> Result<Value, Error> {
    let set = match SetObject::get(&outer) {
        Some(outer) => outer.set.with(texts),
        None => LabelSet::empty().with(texts),
    };
    let thread = RubyThread::current(gvl);
    let object = label_set::new_object(gvl, thread, set, pairs.into(), origin);
    // Keeps its pairs alive until here.
    black_box(outer.as_raw());
    object.ok_or_else(|| errors::rperf(ruby, "rperf is not set up"))
}

/// A label's key, and its value or nothing.
type LabelText = (String, Option<String>);

/// The labels of `outer` with `changes` merged in, and the texts of these.
fn merged_hash(
    ruby: &Ruby,
    _: &mut Gvl<'_>,
    outer: Value,
    changes: RHash,
) -> Result<(RHash, Vec<LabelText>), Error> {
    let hash = match SetObject::get(&outer) {
        Some(outer) => outer.to_hash(ruby)?,
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
    Ok((hash, texts))
}
