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

/// Whether a signal, `exit` or the end of the thread has raised it.
pub fn is_of_signal(ruby: &Ruby, error: &Error) -> bool {
    // What is no exception is the end of the thread.
    let is_jump = matches!(error.error_type(), ErrorType::Jump(_));
    is_jump
        || error.is_kind_of(ruby.exception_signal())
        || error.is_kind_of(ruby.exception_system_exit())
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
