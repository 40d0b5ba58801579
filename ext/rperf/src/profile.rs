//! `Rperf::NativeProfile`: a finished profile as a Ruby object, which `Rperf::Profile`
//! stands on. Its methods run on the calling Ruby thread; questions, reading and writing let the
//! GVL go. The profile in it never changes.

mod arrays;
mod comparisons;
pub mod description;
pub mod errors;
mod facts;
mod from_hash;
mod object;
pub mod own_files;
mod questions;
mod to_ruby;
mod view;
mod viewer;

pub use object::{shared, wrap};

use crate::interrupts::{Interrupts, without_gvl_if_possible};
use crate::message;
use crate::ruby::stdout;
use magnus::scan_args::{ScanArgsRequired, get_kwargs, scan_args};
use magnus::{
    Error, RArray, RHash, RModule, RString, Ruby, Symbol, TypedData, Value, function, method,
    prelude::*,
};
use object::ProfileObject;
use rperf_format::{Format, FormatError, TextOptions};
use rperf_model::{PathView, Profile};
use rperf_session::output;
use rperf_session::page::verbose;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Defines `Rperf::NativeProfile`.
pub fn init(ruby: &Ruby, rperf: RModule) -> Result<(), Error> {
    description::init();
    let class = rperf.define_class("NativeProfile", ruby.class_object())?;
    class.undef_default_alloc_func();
    // At first use the class is looked for by its name, which an interrupt would end with a panic.
    let _ = ProfileObject::class(ruby);
    class.define_singleton_method("from_h", function!(ProfileObject::from_h, 1))?;
    class.define_singleton_method("compare_for_viewer", function!(viewer::compare, 4))?;
    class.define_method("for_viewer", method!(viewer::for_viewer, 1))?;
    class.define_method("facts", method!(ProfileObject::facts, 0))?;
    class.define_method("arrays", method!(ProfileObject::arrays, 0))?;
    class.define_method("samples", method!(ProfileObject::samples, 0))?;
    class.define_method("label_sets", method!(ProfileObject::label_sets, 0))?;
    class.define_method("write", method!(ProfileObject::write, -1))?;
    class.define_method("deliver", method!(ProfileObject::deliver, -1))?;
    class.define_method("encode", method!(ProfileObject::encode, -1))?;
    class.define_method("check", method!(ProfileObject::check, 0))?;
    class.define_method("verbose_lines", method!(ProfileObject::verbose_lines, 0))?;
    comparisons::init(class)?;
    questions::init(class)
}

impl ProfileObject {
    /// `NativeProfile.from_h(hash)`: for a Hash that was changed, or made.
    fn from_h(ruby: &Ruby, hash: RHash) -> Result<Self, Error> {
        from_hash::from_hash(ruby, hash).map(|profile| ProfileObject(Arc::new(profile)))
    }

    /// `#facts`: the Hash that users get, but for its Arrays.
    fn facts(ruby: &Ruby, rb_self: &Self) -> Result<RHash, Error> {
        facts::facts(ruby, &rb_self.0)
    }

    /// `#arrays`: the keys of these, each with the method that makes it.
    fn arrays(ruby: &Ruby, rb_self: &Self) -> Result<RHash, Error> {
        facts::arrays(ruby, &rb_self.0)
    }

    /// `#samples`
    fn samples(ruby: &Ruby, rb_self: &Self) -> Result<RArray, Error> {
        arrays::samples(ruby, &rb_self.0)
    }

    /// `#label_sets`
    fn label_sets(ruby: &Ruby, rb_self: &Self) -> Result<RArray, Error> {
        arrays::label_sets(ruby, &rb_self.0)
    }

    /// `#write(path, format, lines: false, full_path: false, trim_path: [])`: format nil goes by the
    /// path; with lines a text report has a table of them.
    fn write(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<(), Error> {
        let ((path, format), options, view) = arguments::<(PathBuf, Option<Symbol>)>(args)?;
        let format = chosen_format(ruby, &path, format)?;
        // It outlives this: the caller's frame holds the object, which never changes.
        let profile = &*rb_self.0;
        check_time_line(ruby, profile, format)?;
        let mut interrupts = Interrupts::default();
        stdout::flush_before(&path, &mut interrupts);
        let written = interrupts.writing(|| {
            let viewed = viewed(profile, &view);
            let content = encoded(&viewed, format, options)?;
            Ok::<_, FormatError>(output::write(&path, &content))
        });
        interrupts.raise()?;
        let written = written.map_err(|error| not_encoded(ruby, &error))?;
        written.map_err(|error| errors::system(ruby, &path, &error))
    }

    /// `#deliver(path, format, lines: false)`: as `#write`, but if it can't be written there, it is
    /// elsewhere, and the error says where.
    fn deliver(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<(), Error> {
        let ((path, format), options, _) = arguments::<(PathBuf, Option<Symbol>)>(args)?;
        let format = format.map(|name| named_format(ruby, name)).transpose()?;
        let profile = &*rb_self.0;
        let mut interrupts = Interrupts::default();
        stdout::flush_before(&path, &mut interrupts);
        let deliver = || output::deliver(profile, &path, format, options);
        let Err(misplaced) = interrupts.writing(deliver) else {
            return interrupts.raise();
        };
        if let Err(interrupt) = interrupts.raise() {
            message::say(&mut Interrupts::default(), &misplaced.to_string());
            return Err(interrupt);
        }
        Err(errors::rperf(ruby, misplaced.to_string()))
    }

    /// `#encode(format, lines: false)`: what `#write` would write.
    fn encode(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<RString, Error> {
        let ((format,), options, _) = arguments::<(Option<Symbol>,)>(args)?;
        let format = chosen_format(ruby, Path::new(""), format)?;
        let profile = &*rb_self.0;
        check_time_line(ruby, profile, format)?;
        let content = without_gvl_if_possible(|| encoded(profile, format, options))?;
        let content = content.map_err(|error| not_encoded(ruby, &error))?;
        Ok(ruby.str_from_slice(&content))
    }

    /// `#check`: what is wrong with the profile, in words; empty if nothing is.
    fn check(ruby: &Ruby, rb_self: &Self) -> RArray {
        let violations = rb_self.0.check().err().unwrap_or_default();
        ruby.ary_from_iter(violations.iter().map(ToString::to_string))
    }

    /// `#verbose_lines`: sampling statistics and the hottest methods.
    fn verbose_lines(&self) -> String {
        verbose::statistics(&self.0)
    }
}

/// The profile with this form of its paths.
fn viewed<'a>(profile: &'a Profile, view: &PathView) -> Cow<'a, Profile> {
    if *view == profile.path_view {
        return Cow::Borrowed(profile);
    }
    let mut viewed = profile.clone();
    viewed.path_view = view.clone();
    Cow::Owned(viewed)
}

fn encoded(
    profile: &Profile,
    format: Format,
    options: TextOptions,
) -> Result<Vec<u8>, FormatError> {
    let mut content = Vec::new();
    rperf_format::write(profile, format, options, &mut content)?;
    Ok(content)
}

fn not_encoded(ruby: &Ruby, error: &FormatError) -> Error {
    errors::rperf(ruby, error.to_string())
}

fn chosen_format(ruby: &Ruby, path: &Path, name: Option<Symbol>) -> Result<Format, Error> {
    if let Some(name) = name {
        return named_format(ruby, name);
    }
    match Format::named_as_other(path) {
        Some((kind, None)) => Err(errors::argument(
            ruby,
            format!(
                "path: a profile is no .{kind}: name another file, such as x.pb.gz or x.md, or give format:"
            ),
        )),
        _ => Ok(Format::of_report(path)),
    }
}

/// A file of the time line alone would be empty where a profile has none.
fn check_time_line(ruby: &Ruby, profile: &Profile, format: Format) -> Result<(), Error> {
    match format {
        Format::Spans if profile.time_lines.is_empty() => Err(errors::argument(
            ruby,
            "the profile has no time line: Rperf.trace(spans: \"1ms\") keeps one",
        )),
        _ => Ok(()),
    }
}

fn named_format(ruby: &Ruby, name: Symbol) -> Result<Format, Error> {
    let name = name.name()?;
    Format::from_name(&name)
        .ok_or_else(|| errors::argument(ruby, format!("format: there is no format :{name}")))
}

/// The arguments of a method that takes `Required`, `lines:` and the form of paths.
fn arguments<Required: ScanArgsRequired>(
    args: &[Value],
) -> Result<(Required, TextOptions, PathView), Error> {
    let args = scan_args::<Required, (), (), (), RHash, ()>(args)?;
    let names = ["lines", "full_path", "trim_path"];
    type Values = (Option<bool>, Option<bool>, Option<Vec<String>>);
    let keywords = get_kwargs::<_, (), Values, ()>(args.keywords, &[], &names)?;
    let (lines, is_full, trim) = keywords.optional;
    let lines = lines.unwrap_or_default();
    let view = PathView {
        trim: trim.unwrap_or_default(),
        is_full: is_full.unwrap_or_default(),
    };
    Ok((args.required, TextOptions { lines, whole: None }, view))
}
