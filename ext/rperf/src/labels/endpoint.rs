//! Names of endpoints as methods of `Rperf::Native`, for the Rack middleware. They change nothing,
//! and call no method.

use crate::text;
use magnus::{RString, Ruby, Value, prelude::*};
use rperf_engine::endpoint_path;

/// `Native.endpoint_path(path)`: the path without the parts that differ between resources.
pub fn path(ruby: &Ruby, path: RString) -> RString {
    ruby.str_new(&text::with_bytes(path, endpoint_path))
}

/// `Native.endpoint(method, mount, path)`: the name of a request's endpoint, frozen: its method, and
/// its path without the parts that differ between resources. Each of the three may be nil; if one
/// is something else than that or a String, there is no name.
pub fn name(ruby: &Ruby, method: Value, mount: Value, path: Value) -> Option<RString> {
    let mut whole = bytes(mount)?;
    whole.append(&mut bytes(path)?);
    let path = endpoint_path(&whole);
    let path = if path.is_empty() { "/" } else { &path };
    let mut name = bytes(method)?;
    name.push(b' ');
    name.extend_from_slice(path.as_bytes());
    let name = ruby.str_new(&String::from_utf8_lossy(&name));
    name.freeze();
    Some(name)
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    if value.is_nil() {
        return Some(Vec::new());
    }
    RString::from_value(value).map(text::bytes)
}
