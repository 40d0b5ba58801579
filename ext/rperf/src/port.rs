//! The methods of `Rperf::Native` for the port at which a running program can be asked. All of the
//! port is in the crate rperf-port, but for what the VM knows. Called with the GVL, on the main
//! Ractor.

mod failure;
mod fibers;
mod giving_way;
#[cfg(target_os = "linux")]
mod heap;
mod helper;
mod memory;
mod session;
mod stacks;
mod steps;

use crate::native;
use crate::profile::{description, errors, own_files};
use crate::running::facts;
use crate::settings;
use crate::without_gvl::without_gvl;
use magnus::{Error, RModule, RString, Ruby, Value, function, prelude::*};
use rperf_port::{OpenError, Program, bell, wake};
use rperf_session::settings::{self as table, Given, LISTEN, LISTEN_HELPER, LISTEN_WAKE, Source};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    helper::init();
    native.define_singleton_method("listen", function!(listen, 4))?;
    native.define_singleton_method("loopback_port", function!(loopback_port, 1))?;
    native.define_singleton_method("listen_setting", function!(listen_setting, 2))?;
    native.define_singleton_method("hang_bell", function!(helper::hang_bell, 0))?;
    native.define_singleton_method("hear_bell", function!(bell::hear, 0))?;
    native.define_singleton_method("make_helper", function!(helper::make_to_stay, 0))?;
    native.define_singleton_method("unused_signal", function!(wake::unused_signal, 0))?;
    native.define_singleton_method("learn_handler", function!(wake::learn, 1))?;
    native.define_singleton_method("listen_in_child", function!(listen_in_child, 1))?;
    native.define_singleton_method(
        "begin_for_clients",
        function!(session::begin_for_clients, 0),
    )?;
    native.define_singleton_method("clients_want_ops?", function!(session::wants_ops, 0))?;
    native.define_singleton_method("unlisten", function!(unlisten, 0))
}

/// `listen(directory, tcp, ruby, inherited)`: opens the port, in `directory` or the user's, and at the
/// loopback port `tcp` unless that is nil; its path, or its URL there, and a line for the user or nil.
/// `ruby` is the version. If this is `inherited`, and another process has the loopback port, there is
/// only the path.
fn listen(
    ruby: &Ruby,
    directory: Option<PathBuf>,
    tcp: Option<u16>,
    version: String,
    inherited: bool,
) -> Result<Value, Error> {
    let program = Program {
        ruby: version,
        roots: description::roots(&description::program()),
        rperf_directories: own_files::directory()
            .map(String::from)
            .into_iter()
            .collect(),
        session: facts::facts,
        ask: helper::ask,
    };
    let mut line = None;
    let path = match tcp.filter(|_| inherited) {
        Some(tcp) => rperf_port::open_as_inherited(directory.as_deref(), tcp, program, |it| {
            line = Some(it);
        }),
        None => rperf_port::open(directory.as_deref(), tcp, program),
    };
    let path = path.map_err(|error| refused(ruby, &error))?;
    native::session::tell_port(&native::gvl(ruby));
    let place = match rperf_port::number().filter(|_| tcp.is_some()) {
        Some(number) => {
            let url = format!("http://127.0.0.1:{number}");
            settings::text(ruby, url.as_ref())
        }
        None => settings::text(ruby, path.as_os_str()),
    };
    Ok(ruby
        .ary_new_from_values(&[place, ruby.into_value(line)])
        .as_value())
}

fn refused(ruby: &Ruby, error: &OpenError) -> Error {
    errors::rperf(ruby, format!("no port: {error}"))
}

/// `loopback_port(text)`: the number in tcp://127.0.0.1:PORT; nil for any other text.
fn loopback_port(text: RString) -> Option<u16> {
    let text = String::from_utf8(crate::text::bytes(text)).ok()?;
    table::loopback(&text)
}

/// `listen_setting(key, text)`: what the variable RPERF_`key` says: the directory that it names, the
/// number of a loopback port, true, or false.
fn listen_setting(ruby: &Ruby, key: String, text: RString) -> Result<Value, Error> {
    let text = OsString::from_vec(crate::text::bytes(text));
    let mut settings = [&LISTEN_WAKE, &LISTEN_HELPER].into_iter();
    let setting = settings.find(|it| it.key() == key).unwrap_or(&LISTEN);
    let value = table::check(setting, &Given::Text(&text), Source::Variable, || {
        table::quoted(&text)
    });
    let value = value.map_err(|error| errors::argument(ruby, error.to_string()))?;
    Ok(match value {
        Some(table::Value::Path(directory)) => settings::text(ruby, directory.as_os_str()),
        Some(table::Value::Loopback(number)) => ruby.into_value(number),
        Some(table::Value::Bool(true)) => ruby.qtrue().as_value(),
        _ => ruby.qfalse().as_value(),
    })
}

/// `listen_in_child(ended)`: in a forked child, opens a port as its parent's, which has `ended` if
/// the child takes its place. Without one the child runs on.
fn listen_in_child(parent_has_ended: bool) {
    let _ = rperf_port::open_as_parent(parent_has_ended);
}

/// `unlisten`: the program ends, and so does its port. A profile that clients wait for goes out
/// before.
fn unlisten() {
    without_gvl(rperf_port::let_go_out);
    rperf_port::close();
}
