//! Texts of Ruby objects. Used by `settings` and `vm`; on a Ruby thread, with the GVL.

use magnus::encoding::EncodingCapable;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, TryConvert, Value, kwargs, prelude::*};

/// What `value` is shown as: by its to_s, as UTF-8. Runs Ruby code.
pub fn shown(ruby: &Ruby, value: Value) -> Result<String, Error> {
    // SAFETY: any object may be asked; `protect` catches what its to_s raises, and returns a
    // valid VALUE.
    let string = unsafe {
        protect(|| rb_sys::rb_obj_as_string(value.as_raw()))
            .map(|string| Value::from_raw(string))?
    };
    let string = RString::try_convert(string)?;
    let is_bytes = || string.enc_get() == ruby.ascii8bit_encindex();
    let converted: Result<RString, Error> = if string.is_utf8_compatible_encoding() || is_bytes() {
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

/// The text of a String, with invalid UTF-8 replaced. Calls no method.
pub fn content(string: RString) -> String {
    String::from_utf8(bytes(string))
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The same for what may be no String.
pub fn of_string(value: Value) -> Option<String> {
    RString::from_value(value).map(content)
}

/// The bytes of a String. Calls no method.
pub fn bytes(string: RString) -> Vec<u8> {
    // SAFETY: the bytes are copied before anything of the VM is called again.
    let bytes = unsafe { string.as_slice() }.to_vec();
    // Keeps the object on the stack until the copy is made.
    std::hint::black_box(string.as_raw());
    bytes
}
