//! Texts of Ruby objects. Used by `settings` and `vm`; on a Ruby thread, with the GVL.

use magnus::encoding::EncodingCapable;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, Symbol, TryConvert, Value, kwargs, prelude::*};

/// What `value` is shown as: by its to_s, as UTF-8. Runs Ruby code.
pub fn shown(ruby: &Ruby, value: Value) -> Result<String, Error> {
    let is_symbol = Symbol::from_value(value).is_some();
    // SAFETY: a Symbol has a name, and any object may be asked for its text; `protect` catches
    // what its to_s raises, and returns a valid VALUE.
    let string = unsafe {
        Value::from_raw(if is_symbol {
            rb_sys::rb_sym2str(value.as_raw())
        } else {
            protect(|| rb_sys::rb_obj_as_string(value.as_raw()))?
        })
    };
    in_utf8(ruby, RString::try_convert(string)?)
}

/// The text of a String of any encoding. Runs Ruby code.
pub fn in_utf8(ruby: &Ruby, string: RString) -> Result<String, Error> {
    let converted: Result<RString, Error> = if is_readable(string) {
        Ok(string)
    } else {
        let replace = ruby.to_symbol("replace");
        string.funcall(
            "encode",
            ("UTF-8", kwargs!("invalid" => replace, "undef" => replace)),
        )
    };
    let string = match converted {
        // Ruby knows no way to convert it.
        Err(error) if error.is_kind_of(ruby.exception_encoding_error()) => string,
        converted => converted?,
    };
    Ok(content(string))
}

/// Whether the bytes of a String are its text: in UTF-8, but for what isn't valid.
pub fn is_readable(string: RString) -> bool {
    let ruby = Ruby::get_with(string);
    string.is_utf8_compatible_encoding() || string.enc_get() == ruby.ascii8bit_encindex()
}

/// The text of a String, with invalid UTF-8 replaced. Calls no method.
pub fn content(string: RString) -> String {
    String::from_utf8(bytes(string))
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The text of `value`, with invalid UTF-8 replaced; `None` if it is no String. Calls no method.
pub fn of_string(value: Value) -> Option<String> {
    RString::from_value(value).map(content)
}

/// `name` without the addresses of objects that have no name of their own, as in
/// `#<Class:0x00007f3c>#total`: they differ from process to process, and say nothing.
pub fn without_addresses(name: &str) -> String {
    let mut rest = name;
    let mut text = String::new();
    while let Some((front, behind)) = rest.split_once(":0x") {
        let digits = behind.bytes().take_while(u8::is_ascii_hexdigit).count();
        text += front;
        if digits == 0 || !front.contains("#<") && !text.contains("#<") {
            text += ":0x";
            rest = behind;
        } else {
            rest = &behind[digits..];
        }
    }
    text + rest
}

/// The bytes of a String. Calls no method.
pub fn bytes(string: RString) -> Vec<u8> {
    with_bytes(string, <[u8]>::to_vec)
}

/// What `read`, which calls nothing of the VM that changes Strings, makes of a String's bytes.
pub fn with_bytes<T>(string: RString, read: impl FnOnce(&[u8]) -> T) -> T {
    // SAFETY: by this function's contract nobody changes the bytes meanwhile.
    let result = read(unsafe { string.as_slice() });
    // Keeps the object on the stack until then.
    std::hint::black_box(string.as_raw());
    result
}
