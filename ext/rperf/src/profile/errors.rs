//! Rust errors as Ruby exceptions. On a Ruby thread, with the GVL.

use magnus::error::ErrorType;
use magnus::{Error, Exception, ExceptionClass, RModule, Ruby, prelude::*};
use std::io;
use std::path::Path;

/// An `ArgumentError`.
pub fn argument(ruby: &Ruby, message: impl Into<String>) -> Error {
    Error::new(ruby.exception_arg_error(), message.into())
}

/// An `Rperf::Error`, which lib/rperf/errors.rb defines.
pub fn rperf(ruby: &Ruby, message: impl Into<String>) -> Error {
    let class = ruby
        .class_object()
        .const_get::<_, RModule>("Rperf")
        .and_then(|rperf| rperf.const_get::<_, ExceptionClass>("Error"))
        .unwrap_or_else(|_| ruby.exception_runtime_error());
    Error::new(class, message.into())
}

/// Whether it is an `Rperf::Error`.
pub fn is_rperf(ruby: &Ruby, error: &Error) -> bool {
    let rperf: Result<RModule, Error> = ruby.class_object().const_get("Rperf");
    let class = rperf.and_then(|rperf| rperf.const_get::<_, ExceptionClass>("Error"));
    class.is_ok_and(|class| error.is_kind_of(class))
}

/// A line on an error: its message, and what class it is of.
pub fn line(error: &Error) -> String {
    let text = match error.error_type() {
        ErrorType::Error(class, message) => {
            // SAFETY: the name of a class is read at once.
            let name = unsafe { class.name() };
            format!("{message} ({name})")
        }
        ErrorType::Exception(exception) => {
            let message: Result<String, Error> = exception.funcall("message", ());
            // SAFETY: the name of the object's class is read at once.
            let name = unsafe { exception.classname() };
            format!("{} ({name})", message.unwrap_or_default())
        }
        ErrorType::Jump(_) => "the thread has ended".to_string(),
    };
    text.lines().collect::<Vec<_>>().join(" ")
}

/// For a start while a session is running.
pub fn running_already(ruby: &Ruby) -> Error {
    rperf(ruby, "profiling is running already; call Rperf.stop first")
}

/// For a start in a process whose inherited hooks can't be removed.
pub fn forked_elsewhere(ruby: &Ruby) -> Error {
    let message = "can't profile in this process: it was forked outside of the main Ractor, or \
                   without the GVL";
    rperf(ruby, message)
}

/// The `Errno` exception for an error with `path`.
pub fn system(ruby: &Ruby, path: &Path, error: &io::Error) -> Error {
    let Some(number) = error.raw_os_error() else {
        return rperf(ruby, format!("{}: {error}", path.display()));
    };
    let exception = ruby
        .class_object()
        .const_get::<_, ExceptionClass>("SystemCallError")
        .and_then(|class| class.new_instance((path.to_path_buf(), number)));
    match exception {
        Ok(exception) => Exception::into(exception),
        Err(error) => error,
    }
}
