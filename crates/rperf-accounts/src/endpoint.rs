//! Names of the endpoints of a web application: paths without the parts that differ between
//! resources. Called by the bridge for the Rack middleware, once for each request.

use std::borrow::Cow;

/// A path from the client, of whatever bytes, with `:id`, `:uuid`, `:hex` and `:token` in place of
/// parts that identify a resource, or are secrets. Escapes are taken out first.
pub fn endpoint_path(path: &[u8]) -> String {
    let path = unescaped(path);
    let mut name = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        if let Some((length, kind)) = variable(&path, at) {
            name.extend_from_slice(kind.as_bytes());
            at += length;
        } else {
            name.push(byte);
            at += 1;
        }
    }
    String::from_utf8(name)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn unescaped(path: &[u8]) -> Cow<'_, [u8]> {
    if !path.contains(&b'%') {
        return path.into();
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, others @ ..] = rest {
        let (byte, after) = escape(rest).unwrap_or((*first, others));
        bytes.push(byte);
        rest = after;
    }
    bytes.into()
}

/// The byte that an escape at the beginning stands for, and what follows.
fn escape(rest: &[u8]) -> Option<(u8, &[u8])> {
    let [b'%', high, low, after @ ..] = rest else {
        return None;
    };
    let digit = |hex: u8| (hex as char).to_digit(16);
    let byte = digit(*high)? << 4 | digit(*low)?;
    Some((byte as u8, after))
}

/// The variable part that begins at `at`, if one does: its length, and what stands for it.
fn variable(path: &[u8], at: usize) -> Option<(usize, &'static str)> {
    let before = at.checked_sub(1).map(|before| path[before]);
    let rest = &path[at..];
    let begins_word = !before.is_some_and(|it| it.is_ascii_alphanumeric());
    let begins_token = !before.is_some_and(is_of_token);
    let whole = begins_word.then(|| whole_part(rest)).flatten();
    let secret = || begins_token.then(|| token(rest)).flatten();
    whole.or_else(secret).or_else(|| {
        // So many digits are no word, whatever is next to them.
        let digits = run(rest, |byte| byte.is_ascii_digit());
        (digits >= 5).then_some((digits, ":id"))
    })
}

/// A number, a UUID or a hash with no letter or digit behind it.
fn whole_part(rest: &[u8]) -> Option<(usize, &'static str)> {
    let ends_at = |length| !rest.get(length).is_some_and(u8::is_ascii_alphanumeric);
    if is_uuid(rest) && ends_at(36) {
        return Some((36, ":uuid"));
    }
    let digits = run(rest, |byte| byte.is_ascii_digit());
    if digits > 0 && ends_at(digits) {
        return Some((digits, ":id"));
    }
    let hex = run(rest, |byte| byte.is_ascii_hexdigit());
    let is_hash = hex >= 16 && rest[..hex].iter().any(u8::is_ascii_digit);
    (is_hash && ends_at(hex)).then_some((hex, ":hex"))
}

fn is_uuid(rest: &[u8]) -> bool {
    rest.get(..36).is_some_and(|part| {
        part.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    })
}

/// Something long with a digit and a capital letter in it.
fn token(rest: &[u8]) -> Option<(usize, &'static str)> {
    let length = run(rest, is_of_token);
    let part = &rest[..length];
    let is_token = length >= 20
        && part.iter().any(u8::is_ascii_digit)
        && part.iter().any(u8::is_ascii_uppercase);
    is_token.then_some((length, ":token"))
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// How many bytes at the beginning are of this kind.
fn run(bytes: &[u8], is_of_kind: impl Fn(u8) -> bool) -> usize {
    let end = bytes.iter().position(|&byte| !is_of_kind(byte));
    end.unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_identifies_a_resource_is_left_out() {
        for (path, name) in [
            ("/users/42", "/users/:id"),
            ("/a1b2/v2", "/a1b2/v2"),
            ("/a12345b", "/a:idb"),
            ("/550e8400-e29b-41d4-a716-446655440000/x", "/:uuid/x"),
            (
                "/550e8400-e29b-41d4-a716-4466554400001",
                "/550e8400-e29b-41d4-a716-:id",
            ),
            ("/507f1f77bcf86cd799439011", "/:hex"),
            ("/deadbeefdeadbeef", "/deadbeefdeadbeef"),
            ("/V1StGXR8_Z5jdHi6B-myT", "/:token"),
            ("/%34%32", "/:id"),
            ("/%2534%", "/%:id%"),
            ("", ""),
        ] {
            assert_eq!(endpoint_path(path.as_bytes()), name, "{path}");
        }
        assert_eq!(endpoint_path(b"/\xFF/3"), "/\u{FFFD}/:id");
    }

    #[test]
    fn a_long_path_takes_no_more_time_than_its_length() {
        for part in ["a1-", "0f", "f", "aB3", "aB", "12a", "%41"] {
            let path = part.repeat(300_000);
            assert!(endpoint_path(path.as_bytes()).len() <= path.len());
        }
    }
}
