//! Names of endpoints as methods of `Rperf::Native`, for the Rack middleware. They change nothing,
//! and call no method.

use crate::text;
use magnus::{RString, Ruby, Value, prelude::*};
use rperf_accounts::endpoint_path;

/// `Native.endpoint_path(path)`: the path without the parts that differ between resources.
pub fn path(ruby: &Ruby, path: RString) -> RString {
    ruby.str_new(&text::with_bytes(path, endpoint_path))
}

/// `Native.endpoint(method, mount, path)`: the name of a request's endpoint, frozen: its method, and
/// its path without the parts that differ between resources. Each of the three may be nil; if one
/// is something else than that or a String, there is no name.
pub fn name(ruby: &Ruby, method: Value, mount: Value, path: Value) -> Option<RString> {
    let (method, mount, path) = (part(method)?, part(mount)?, part(path)?);
    let path = if length(mount) == 0 {
        read(path, endpoint_path)
    } else {
        endpoint_path(&[read(mount, <[u8]>::to_vec), read(path, <[u8]>::to_vec)].concat())
    };
    let path = if path.is_empty() { "/" } else { &path };
    let mut name = Vec::with_capacity(length(method) + 1 + path.len());
    read(method, |method| name.extend_from_slice(method));
    name.push(b' ');
    name.extend_from_slice(path.as_bytes());
    let name = ruby.str_new(&String::from_utf8_lossy(&name));
    name.freeze();
    Some(name)
}

/// A String, or nothing in place of nil; `None` if it is neither.
fn part(value: Value) -> Option<Option<RString>> {
    let string = RString::from_value(value);
    (string.is_some() || value.is_nil()).then_some(string)
}

fn length(part: Option<RString>) -> usize {
    part.map_or(0, RString::len)
}

/// What `read`, which calls nothing of the VM, makes of the bytes.
fn read<T>(part: Option<RString>, read: impl FnOnce(&[u8]) -> T) -> T {
    match part {
        Some(string) => text::with_bytes(string, read),
        None => read(&[]),
    }
}
