//! Label sets that were made of late, by what they were made of: most programs put the same labels
//! on again and again, and get the same object again. With the GVL, outside of hooks.

use crate::running::label_set::{self, LabelPair, SetObject};
use crate::text;
use magnus::encoding::EncodingCapable;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::value::Opaque;
use magnus::{Error, RArray, RHash, RString, Ruby, Symbol, Value, prelude::*};
use rperf_vm::{Gvl, GvlCell};
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::OnceLock;

/// Sets that there is room for. A new one takes the place of one that it collides with.
const SLOTS: usize = 512;

/// Changes that are looked up, of those that are made at once.
const MOST: usize = 4;

/// Bytes of a String that is looked up: longer ones are hardly the same again.
const LONGEST: usize = 256;

/// The sets.
struct LabelCache {
    /// The objects, or nil.
    objects: Opaque<RArray>,
    /// For each place, a hash of what its set was made of; or of what another set was made of,
    /// which isn't kept yet.
    hashes: GvlCell<[u64; SLOTS]>,
}

static CACHE: OnceLock<LabelCache> = OnceLock::new();

/// Makes the cache, which lives as long as the process. On the main thread, once.
pub fn init(ruby: &Ruby) {
    let objects = ruby.ary_new();
    ruby.gc_register_mark_object(objects);
    CACHE.get_or_init(|| LabelCache {
        objects: objects.into(),
        hashes: GvlCell::new([0; SLOTS]),
    });
}

/// Lets go of all sets: they are of a session that is over.
pub fn clear(ruby: &Ruby) -> Result<(), Error> {
    CACHE
        .get()
        .map_or(Ok(()), |cache| ruby.get_inner(cache.objects).clear())
}

/// Labels that a set gets, and whose texts are always the same: by Symbols, and with Strings, which
/// stay as they are now, Symbols, and values that are no objects, such as small Integers.
pub struct Changes {
    /// Kept alive by being on the stack.
    pairs: [Option<(Symbol, Value)>; MOST],
}

impl Changes {
    /// The changes in `hash`; `None` if they are too many, or some are of another kind, or take a
    /// label away.
    pub fn of(hash: RHash) -> Result<Option<Changes>, Error> {
        let mut pairs = [None; MOST];
        let mut free = pairs.iter_mut();
        let mut fits = true;
        hash.foreach(|key: Value, value: Value| {
            let key = Symbol::from_value(key).filter(|_| is_constant(value));
            match (key, free.next()) {
                (Some(key), Some(pair)) => *pair = Some((key, value)),
                _ => fits = false,
            }
            Ok(if fits {
                ForEach::Continue
            } else {
                ForEach::Stop
            })
        })?;
        Ok(fits.then_some(Changes { pairs }))
    }

    /// Keeps the Strings as they are now.
    pub fn freeze(&mut self) {
        for (_, value) in self.pairs.iter_mut().flatten() {
            if let Some(string) = RString::from_value(*value) {
                *value = RString::new_frozen(string).as_value();
            }
        }
    }

    /// Key and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (Symbol, Value)> + '_ {
        self.pairs.iter().map_while(|pair| *pair)
    }

    /// The label set that they have made of `base`, if it is there still.
    pub fn find(&self, ruby: &Ruby, gvl: &Gvl<'_>, base: u64) -> Option<Value> {
        let cache = CACHE.get()?;
        let hash = self.hash(base);
        let slot = slot_of(hash);
        if cache.hashes.borrow(gvl)?[slot] != hash {
            return None;
        }
        let object: Value = ruby.get_inner(cache.objects).entry(slot as isize).ok()?;
        // That of a thread's labels is the same in each session.
        let set = SetObject::get(&object).filter(|set| label_set::is_present(gvl, set))?;
        self.are(set.changes_of(base)?).then_some(object)
    }

    /// Notes that they have made `object`, a label set, of `base`. Keeps it if they have done so
    /// before: sets that are made once, as for the number of a request, stay young and short-lived.
    pub fn keep(&self, ruby: &Ruby, gvl: &Gvl<'_>, base: u64, object: Value) -> Result<(), Error> {
        let hash = self.hash(base);
        if let Some(cache) = CACHE.get()
            && let Some(mut hashes) = cache.hashes.borrow(gvl)
        {
            let seen = &mut hashes[slot_of(hash)];
            if *seen == hash {
                let objects = ruby.get_inner(cache.objects);
                return objects.store(slot_of(hash) as isize, object);
            }
            *seen = hash;
        }
        Ok(())
    }

    fn hash(&self, base: u64) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_u64(base);
        for (key, value) in self.iter() {
            hasher.write_u64(key.as_raw());
            match RString::from_value(value) {
                Some(string) => text::with_bytes(string, |bytes| hasher.write(bytes)),
                None => hasher.write_u64(value.as_raw()),
            }
        }
        hasher.finish()
    }

    /// Whether they are the ones of `kept`.
    fn are(&self, kept: &[LabelPair]) -> bool {
        let mut kept = kept.iter();
        let all = self.iter().all(|(key, value)| {
            let pair = kept.next();
            pair.is_some_and(|pair| pair.key() == key.as_raw() && is_same(value, pair.value()))
        });
        all && kept.next().is_none()
    }
}

fn slot_of(hash: u64) -> usize {
    // The low bits of such a hash are the worst.
    (hash >> 32) as usize % SLOTS
}

/// Whether a value is shown as the same text for ever, but for Strings that change, and no Ruby
/// code could fail to show it.
fn is_constant(value: Value) -> bool {
    if value.is_nil() {
        return false;
    }
    match RString::from_value(value) {
        Some(string) => string.len() <= LONGEST && text::is_readable(string),
        None => rb_sys::SPECIAL_CONST_P(value.as_raw()) || Symbol::from_value(value).is_some(),
    }
}

/// Whether both values are the same, or Strings with the same content.
fn is_same(value: Value, kept: Value) -> bool {
    if value.as_raw() == kept.as_raw() {
        return true;
    }
    let (Some(value), Some(kept)) = (RString::from_value(value), RString::from_value(kept)) else {
        return false;
    };
    let is_equal = |bytes: &[u8]| text::with_bytes(kept, |kept| bytes == kept);
    value.enc_get() == kept.enc_get() && text::with_bytes(value, is_equal)
}
