//! `Rperf::NativeSettings`: the checked settings of a session as a Ruby object, and what the table
//! of settings says, for lib/rperf/session/options.rb and specs. On a Ruby thread, with the GVL.

use crate::profile::errors;
use crate::ruby::process;
use crate::text;
use magnus::{
    Error, Integer, IntoValue, RArray, RHash, RModule, RString, Ruby, Symbol, TypedData, Value,
    function, method,
    prelude::*,
    r_hash::ForEach,
    value::{Qfalse, Qtrue},
};
use rperf_session::output::descriptor_of;
use rperf_session::settings::{self as table, Given, InvalidSetting, Setting, Settings, Source};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

/// What the Ruby object holds.
#[magnus::wrap(class = "Rperf::NativeSettings", free_immediately)]
pub struct SettingsObject(pub Arc<Settings>);

/// Defines `Rperf::NativeSettings`.
pub fn init(ruby: &Ruby, rperf: RModule) -> Result<(), Error> {
    let class = rperf.define_class("NativeSettings", ruby.class_object())?;
    class.undef_default_alloc_func();
    // Looked for now, not at first use: an interrupt could come then.
    let _ = SettingsObject::class(ruby);
    class.define_singleton_method("from_keywords", function!(from_keywords, 2))?;
    class.define_singleton_method("from_variables", function!(from_variables, 1))?;
    class.define_singleton_method("of_member", function!(of_member, 1))?;
    class.define_singleton_method("check", function!(check, 3))?;
    class.define_singleton_method("table", function!(table_rows, 0))?;
    class.define_method("[]", method!(SettingsObject::get, 1))?;
    class.define_method("ops?", method!(SettingsObject::has_ops, 0))
}

/// `from_keywords(hash, shown)`: of `Rperf.start`; `shown` gives a short text for any object.
fn from_keywords(ruby: &Ruby, hash: RHash, shown: Value) -> Result<SettingsObject, Error> {
    let mut given = Vec::new();
    let mut unknown = Vec::new();
    hash.foreach(|name: Value, value: Value| {
        let symbol = Symbol::from_value(name);
        let known = symbol.and_then(|symbol| symbol.name().ok().and_then(|name| keyword(&name)));
        match known {
            Some(setting) => given.push((setting, value)),
            None => unknown.push(name.inspect()),
        }
        Ok(ForEach::Continue)
    })?;
    if !unknown.is_empty() {
        let plural = if unknown.len() == 1 { "" } else { "s" };
        let message = format!("unknown keyword{plural}: {}", unknown.join(", "));
        return Err(errors::argument(ruby, message));
    }
    let given = given
        .into_iter()
        .map(|(setting, value)| {
            let given = plain(ruby, setting, value)?;
            Ok((setting, given, move || text_of(shown, value)))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let output = || hash.get(ruby.to_symbol(table::OUTPUT.name));
    checked(
        ruby,
        Settings::from_keywords(given),
        Source::Keyword,
        || text_of(shown, output().unwrap_or(ruby.qnil().as_value())),
    )
}

/// `from_variables(hash)`: of a program that profiles itself; the names are without the prefix.
fn from_variables(ruby: &Ruby, hash: RHash) -> Result<SettingsObject, Error> {
    let texts = texts(hash)?;
    let variable = |name: &str| texts.get(name).map(OsString::as_os_str);
    checked(
        ruby,
        Settings::from_variables(variable),
        Source::Variable,
        || table::quoted(variable(&table::OUTPUT.key()).unwrap_or_default()),
    )
}

/// `of_member(hash)`: of a process that takes part in a session, by the session's settings.
fn of_member(ruby: &Ruby, hash: RHash) -> Result<SettingsObject, Error> {
    let texts = texts(hash)?;
    let setting = |name: &str| texts.get(name).map(OsString::as_os_str);
    let settings = Settings::of_member(setting).map_err(|error| refused(ruby, &error))?;
    Ok(SettingsObject(Arc::new(settings)))
}

/// `check(name, value, shown)`: fails if `Rperf.start` wouldn't take the keyword's value.
fn check(ruby: &Ruby, name: Symbol, value: Value, shown: Value) -> Result<(), Error> {
    let setting = keyword(&name.name()?)
        .ok_or_else(|| errors::argument(ruby, format!("unknown keyword: {}", name.inspect())))?;
    let given = plain(ruby, setting, value)?;
    let shown = || text_of(shown, value);
    let value = table::check(setting, &given, Source::Keyword, shown);
    value.map(|_| ()).map_err(|error| refused(ruby, &error))
}

fn keyword(name: &str) -> Option<&'static Setting> {
    let mut settings = table::ALL.into_iter();
    settings.find(|setting| setting.keyword && setting.name == name)
}

/// Refuses an output that is Ruby's own, too; `shown` makes a short text of it.
fn checked(
    ruby: &Ruby,
    settings: Result<Settings, InvalidSetting>,
    source: Source,
    shown: impl FnOnce() -> String,
) -> Result<SettingsObject, Error> {
    let checked = settings.and_then(|settings| {
        let output = settings.output().and_then(descriptor_of);
        if output.is_some_and(|it| process::is_reserved(it.number())) {
            table::check(&table::OUTPUT, &Given::ReservedDescriptor, source, shown)?;
        }
        Ok(settings)
    });
    let settings = checked.map_err(|error| refused(ruby, &error))?;
    Ok(SettingsObject(Arc::new(settings)))
}

fn refused(ruby: &Ruby, error: &InvalidSetting) -> Error {
    errors::argument(ruby, error.to_string())
}

/// Asks Ruby; that no object makes it fail is up to Ruby.
fn text_of(shown: Value, value: Value) -> String {
    let text = shown.funcall::<_, _, String>("call", (value,));
    text.unwrap_or_else(|_| "an object".into())
}

/// The value of a setting. Calls no method of the object, which may have none; only of what is in
/// a Hash of labels.
fn plain(ruby: &Ruby, setting: &Setting, value: Value) -> Result<Given<'static>, Error> {
    if value.is_nil() {
        return Ok(Given::Nil);
    }
    if Qtrue::from_value(value).is_some() {
        return Ok(Given::Bool(true));
    }
    if Qfalse::from_value(value).is_some() {
        return Ok(Given::Bool(false));
    }
    if let Some(number) = Integer::from_value(value) {
        return Ok(number.to_i64().map_or(Given::Other, Given::Integer));
    }
    if let Some(symbol) = Symbol::from_value(value) {
        // A name that isn't UTF-8 is none of ours.
        return Ok(symbol
            .name()
            .map_or(Given::Other, |name| Given::Symbol(name.into_owned())));
    }
    if let Some(text) = RString::from_value(value) {
        return Ok(Given::Path(OsString::from_vec(text::bytes(text)).into()));
    }
    if let Some(array) = RArray::from_value(value).filter(|_| setting.name == table::MEASURE.name) {
        return Ok(symbols(array).map_or(Given::Other, Given::Symbols));
    }
    if let Some(array) = RArray::from_value(value) {
        return Ok(strings(array)?.map_or(Given::Other, Given::Texts));
    }
    match RHash::from_value(value) {
        Some(hash) if setting.name == table::LABELS.name => Ok(Given::Pairs(pairs(ruby, hash)?)),
        _ => Ok(Given::Other),
    }
}

/// The names of an Array of Symbols; `None` if something else is in it.
fn symbols(array: RArray) -> Option<Vec<String>> {
    let names = (0..array.len()).map(|place| {
        let symbol = Symbol::from_value(array.entry(place as isize).ok()?)?;
        Some(symbol.name().ok()?.into_owned())
    });
    names.collect()
}

/// The contents of an Array of Strings; `None` for one of other objects.
fn strings(array: RArray) -> Result<Option<Vec<String>>, Error> {
    let text = |place: usize| {
        let entry: Value = array.entry(place as isize)?;
        Ok(RString::from_value(entry).map(text::content))
    };
    (0..array.len()).map(text).collect()
}

/// The texts of a Hash's keys and values, by their to_s, whose exceptions come through; without
/// values that are nil.
fn pairs(ruby: &Ruby, hash: RHash) -> Result<Vec<(String, String)>, Error> {
    // A to_s may change the Hash.
    let objects = ruby.ary_new();
    hash.foreach(|key: Value, value: Value| {
        if !value.is_nil() {
            objects.push(key)?;
            objects.push(value)?;
        }
        Ok(ForEach::Continue)
    })?;
    let text = |place: usize| text::shown(ruby, objects.entry(place as isize)?);
    let pairs = (0..objects.len() / 2).map(|row| Ok((text(2 * row)?, text(2 * row + 1)?)));
    pairs.collect()
}

/// Names and values as the system has them.
pub fn texts(hash: RHash) -> Result<HashMap<String, OsString>, Error> {
    let mut texts = HashMap::new();
    hash.foreach(|name: RString, value: RString| {
        texts.insert(text::content(name), OsString::from_vec(text::bytes(value)));
        Ok(ForEach::Continue)
    })?;
    Ok(texts)
}

impl SettingsObject {
    /// `ops?`: whether ops are measured. A child whose program has redefined what Arrays do asks for it, too.
    fn has_ops(&self) -> bool {
        self.0.measures_ops()
    }

    /// `#[](name)`: a value as `Rperf.start` takes it; what has no simple one is a String.
    fn get(ruby: &Ruby, rb_self: &Self, name: Symbol) -> Result<Option<Value>, Error> {
        let name = name.name()?;
        let setting = table::ALL.into_iter().find(|setting| setting.name == name);
        let setting =
            setting.ok_or_else(|| errors::argument(ruby, format!("there is no setting {name}")))?;
        Ok(rb_self.0.get(setting).map(|value| match value {
            table::Value::Bool(on) => bool_value(ruby, *on),
            table::Value::Off => bool_value(ruby, false),
            table::Value::Integer(number) => ruby.integer_from_u64(u64::from(*number)).as_value(),
            table::Value::Word(word) => ruby.to_symbol(word).as_value(),
            table::Value::Words(words) => {
                let words = words.iter().map(|word| ruby.to_symbol(word));
                ruby.ary_from_iter(words).as_value()
            }
            other => text(ruby, &other.spelled(Source::Variable)),
        }))
    }
}

fn bool_value(ruby: &Ruby, on: bool) -> Value {
    if on {
        ruby.qtrue().as_value()
    } else {
        ruby.qfalse().as_value()
    }
}

/// A String as ENV has them.
pub fn text(ruby: &Ruby, text: &OsStr) -> Value {
    PathBuf::from(text).into_value_with(ruby)
}

/// `table`: what the table says of each setting, in texts; nil for what it doesn't have.
fn table_rows(ruby: &Ruby) -> Result<RArray, Error> {
    let rows = ruby.ary_new();
    for setting in table::ALL {
        let name = |source, is_there: bool| is_there.then(|| setting.label(source));
        let row = ruby.hash_new();
        for (key, text) in [
            ("name", Some(setting.name.to_string())),
            ("meaning", Some(setting.meaning.to_string())),
            ("flag", name(Source::Flag, setting.flags.is_some())),
            ("keyword", name(Source::Keyword, setting.keyword)),
            ("keyword_default", Some(setting.keyword_default())),
            ("keyword_values", Some(setting.values(Source::Keyword))),
            ("variable", name(Source::Variable, setting.variable)),
            ("variable_default", setting.default.record.map(Into::into)),
            ("variable_values", Some(setting.values(Source::Variable))),
        ] {
            row.aset(ruby.to_symbol(key), text)?;
        }
        rows.push(row)?;
    }
    Ok(rows)
}
