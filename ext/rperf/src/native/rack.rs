//! Requests that the Rack middleware wraps: all that is to be done before the app, and after it, in one call
//! each. A server that answers now and then has nothing of rperf's in its caches, and then a method costs a
//! microsecond or two: so there are three calls in place of twenty. One asks whether a request is wanted, one
//! begins it, one ends it. On threads of the main Ractor, with the GVL.
//!
//! What is unusual is left to Ruby code: see lib/rperf/rack.rb. As with `Native.enter`, all that is to be
//! undone is noted in Arrays of the caller's.

use super::accounts;
use super::requests::{enter_at_once, leave_at_once};
use crate::accounts::object::AccountObject;
use crate::labels::endpoint;
use crate::running::facts;
use crate::text;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::value::{InnerValue, LazyId, Opaque};
use magnus::{
    Error, Object, RArray, RClass, RHash, RModule, RObject, RString, RTypedData, Ruby, Symbol,
    TryConvert, TypedData, Value, function, prelude::*,
};
use rperf_accounts::{OTHER, queue_ns};
use rperf_vm::clock;
use std::sync::OnceLock;

/// Paths that get a name of their own: clients can make up any number of them.
const NAMES: usize = 1000;

/// Objects that live as long as the process.
struct Objects {
    /// `Rperf::RackMiddleware::Request`.
    request: Opaque<RClass>,
    /// Keys of Rack environments.
    keys: Keys,
    /// [`OTHER`]: what all other paths are called.
    other: Opaque<RString>,
}

/// Keys of Rack environments.
struct Keys {
    account: Opaque<RString>,
    request: Opaque<RString>,
    /// A proxy has told when it took the request.
    queued: Opaque<RString>,
    method: Opaque<RString>,
    mount: Opaque<RString>,
    path: Opaque<RString>,
}

static OBJECTS: OnceLock<Objects> = OnceLock::new();

static NAMES_OF: LazyId = LazyId::new("@names");
static ENDPOINTS: LazyId = LazyId::new("@endpoints");
static PATH_NAME: LazyId = LazyId::new("@path_name");
static NAME: LazyId = LazyId::new("@name");
static LABEL_KEY: LazyId = LazyId::new("@label_key");
static FIBER: LazyId = LazyId::new("@fiber");
static QUEUE_NS: LazyId = LazyId::new("@queue_ns");
static ROUTED: LazyId = LazyId::new("@routed");

/// Defines the methods. On the main thread, once.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("rack_requests", function!(note_requests, 4))?;
    native.define_singleton_method("endpoint_name", function!(name_of, 2))?;
    native.define_singleton_method("queue_ns", function!(waited_by, 1))?;
    native.define_singleton_method("begin_request", function!(begin, 5))?;
    native.define_singleton_method("end_request", function!(end, 3))
}

/// `Native.rack_requests(class, request_key, account_key, queued_key)`: requests are objects of this class, and
/// environments have these keys.
fn note_requests(
    ruby: &Ruby,
    request: RClass,
    request_key: RString,
    account_key: RString,
    queued_key: RString,
) {
    let kept = |string: RString| {
        ruby.gc_register_mark_object(string);
        string.into()
    };
    let text = |text: &str| {
        let string = ruby.str_new(text);
        string.freeze();
        kept(string)
    };
    OBJECTS.get_or_init(|| {
        ruby.gc_register_mark_object(request);
        Objects {
            request: request.into(),
            keys: Keys {
                account: kept(account_key),
                request: kept(request_key),
                queued: kept(queued_key),
                method: text("REQUEST_METHOD"),
                mount: text("SCRIPT_NAME"),
                path: text("PATH_INFO"),
            },
            other: text(OTHER),
        }
    });
}

/// `Native.endpoint_name(names, path_name)`: what the last request of this path turned out to be, or the
/// path's own name, which `names` gets if it has room.
fn name_of(ruby: &Ruby, names: RHash, path_name: RString) -> Result<Value, Error> {
    if let Some(known) = names.get(path_name) {
        return Ok(known);
    }
    match OBJECTS.get() {
        Some(objects) if names.len() >= NAMES => Ok(objects.other.get_inner_with(ruby).as_value()),
        _ => {
            names.aset(path_name, path_name)?;
            Ok(path_name.as_value())
        }
    }
}

/// `Native.queue_ns(header)`: how long the request with this header has waited, in ns; nil if that isn't known.
fn waited_by(header: Value) -> Option<u64> {
    let header = RString::from_value(header)?;
    text::with_bytes(header, |header| queue_ns(header, clock::realtime_ns()))
}

/// `Native.begin_request(opened, undo, env, endpoints, label_key)`: gives the request its name, opens an account
/// of it, if requests get some, and puts its label on, if there is a session. Pushes to `opened` the request and
/// the account, and to `undo` as `Native.enter` does. Returns true; false if the label is still to be put on; nil
/// if the request is unusual, and neither was done.
fn begin(
    ruby: &Ruby,
    opened: RArray,
    undo: RArray,
    env: Value,
    endpoints: RObject,
    label_key: Symbol,
) -> Result<Option<bool>, Error> {
    let Some(objects) = OBJECTS.get() else {
        return Ok(None);
    };
    let Some(env) = usual(ruby, env) else {
        return Ok(None);
    };
    let get = |key: &Opaque<RString>| env.get(key.get_inner_with(ruby));
    let has_account = accounts::are_on();
    let queued = get(&objects.keys.queued).filter(|_| has_account);
    let is_odd = queued.is_some_and(|it| RString::from_value(it).is_none());
    if is_odd || has_account && get(&objects.keys.account).is_some() {
        return Ok(None);
    }
    // Whatever fails here doesn't concern the app. No interrupt is among it.
    let Some(request) = request_of(ruby, objects, env, endpoints, label_key).unwrap_or(None) else {
        return Ok(None);
    };
    opened.push(request)?;
    if has_account {
        accounts::open(ruby, opened)?;
        let account: Value = opened.entry(-1)?;
        // The app doesn't see it in an environment to which nothing can be added.
        let _: Result<(), Error> = env.aset(objects.keys.account.get_inner_with(ruby), account);
        let waited = queued.and_then(waited_by);
        if let (Some(waited), Some(account)) = (waited, RTypedData::from_value(account)) {
            account.ivar_set(*QUEUE_NS, waited)?;
        }
    }
    if !facts::is_running() {
        return Ok(Some(true));
    }
    let labels = ruby.hash_new();
    labels.aset(label_key, request.ivar_get::<_, Value>(*NAME)?)?;
    enter_at_once(ruby, undo, Some(labels)).map(Some)
}

/// The request, which its environment has then; `None` if its endpoint has no name.
fn request_of(
    ruby: &Ruby,
    objects: &Objects,
    env: RHash,
    endpoints: RObject,
    label_key: Symbol,
) -> Result<Option<RObject>, Error> {
    let keys = &objects.keys;
    let get = |key: &Opaque<RString>| env.get(key.get_inner_with(ruby));
    let (Some(method), Some(mount), Some(path)) =
        (get(&keys.method), get(&keys.mount), get(&keys.path))
    else {
        return Ok(None);
    };
    let Some(path_name) = endpoint::name(ruby, method, mount, path) else {
        return Ok(None);
    };
    let names: RHash = endpoints.ivar_get(*NAMES_OF)?;
    let name = name_of(ruby, names, path_name)?;
    let request = new_object(objects.request.get_inner_with(ruby))?;
    // In the order of Request#initialize, so that all have the same layout.
    request.ivar_set(*ENDPOINTS, endpoints)?;
    request.ivar_set(*PATH_NAME, path_name)?;
    request.ivar_set(*NAME, name)?;
    request.ivar_set(*LABEL_KEY, label_key)?;
    request.ivar_set(*FIBER, ruby.fiber_current())?;
    request.ivar_set(*ROUTED, false)?;
    env.aset(keys.request.get_inner_with(ruby), request)?;
    Ok(Some(request))
}

/// `Native.end_request(opened, undo, env)`: undoes what `begin_request` has done, and keeps the account, under the
/// name of the environment's request unless the app has named it. Returns whether all is done: else `undo` has
/// what must be undone with care, `opened` the account that the program is to be told of, or both.
fn end(ruby: &Ruby, opened: RArray, undo: RArray, env: Value) -> Result<bool, Error> {
    let left = match undo.is_empty() {
        true => Ok(true),
        false => leave_at_once(ruby, undo),
    };
    // Whatever has failed.
    let told = end_opened(ruby, opened, env)?;
    if let Some(account) = told {
        opened.push(account)?;
    }
    left.map(|is_left| is_left && told.is_none())
}

/// Ends the request and its account, which it takes out of `opened`. Returns the account, if the program is to be
/// told of it.
fn end_opened(ruby: &Ruby, opened: RArray, env: Value) -> Result<Option<Value>, Error> {
    let mut told = None;
    while !opened.is_empty() {
        let object: Value = opened.pop()?;
        if object.is_kind_of(AccountObject::class(ruby)) {
            let account: &AccountObject = TryConvert::try_convert(object)?;
            let of_opened = || opened.entry::<Value>(-1).ok();
            let name = name_in(ruby, env).or_else(|| of_opened().and_then(name_of_request));
            if let (None, Some(name)) = (account.name(), name) {
                account.set_name(Some(name));
            }
            let is_known = accounts::close_and_keep(ruby, account);
            told = (is_known && accounts::are_told()).then_some(object);
        } else if let Some(request) = RObject::from_value(object) {
            // The app may have frozen it: then it stays as it is.
            let _: Result<(), Error> = request.ivar_set(*FIBER, ruby.qnil());
        }
    }
    Ok(told)
}

/// The name of the request that the environment has: that of the innermost middleware, which learns the route.
fn name_in(ruby: &Ruby, env: Value) -> Option<RString> {
    let objects = OBJECTS.get()?;
    let env = RHash::from_value(env)?;
    let request: Value = env.get(objects.keys.request.get_inner_with(ruby))?;
    let is_one = request.is_kind_of(objects.request.get_inner_with(ruby));
    name_of_request(request).filter(|_| is_one)
}

fn name_of_request(request: Value) -> Option<RString> {
    let name: Value = RObject::from_value(request)?.ivar_get(*NAME).ok()?;
    RString::from_value(name)
}

/// The environment, if it is as servers make it.
fn usual(ruby: &Ruby, env: Value) -> Option<RHash> {
    let hash = RHash::from_value(env)?;
    let is_plain = hash.class().as_raw() == ruby.class_hash().as_raw();
    (is_plain && !hash.is_frozen()).then_some(hash)
}

/// A new object of the class, which isn't initialized.
fn new_object(class: RClass) -> Result<RObject, Error> {
    // SAFETY: `class` is a class, and `protect` catches what its allocator raises, and returns a valid VALUE.
    let object = unsafe { Value::from_raw(protect(|| rb_sys::rb_obj_alloc(class.as_raw()))?) };
    TryConvert::try_convert(object)
}
