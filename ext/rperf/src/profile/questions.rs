//! Questions to a profile, asked by lib/rperf/api/profile.rb: reading, merging, filters, and the
//! answers of rperf-report as Hashes and Arrays. On a Ruby thread that holds the GVL; what
//! takes long runs without it. Arguments were checked in Ruby (lib/rperf/api/questions.rb).

use super::errors;
use super::object::{ProfileObject, shared, wrap};
use crate::interrupts::{Stretch, without_gvl_if_possible};
use magnus::{Error, RArray, RClass, RHash, Ruby, TryConvert, Value, function, method, prelude::*};
use rperf_format::answers::{self, Data, FilteredProfile, IdleTime};
use rperf_model::Profile;
use rperf_report::{
    By, CoreMethods, Diff, Direction, Filter, Idle, NamePattern, Normalize, Run, Sort, TagFilter,
    ThreadFilter, choose_values, regex,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_singleton_method("load", function!(load, 1))?;
    class.define_singleton_method("merge", function!(merge, 1))?;
    class.define_singleton_method("diff", function!(diff, 6))?;
    class.define_method("filter", method!(filter, 1))?;
    class.define_method("totals", method!(totals, 1))?;
    class.define_method("top", method!(top, 4))?;
    class.define_method("tree", method!(tree, 3))?;
    class.define_method("callers", method!(callers, 2))?;
    class.define_method("boot", method!(boot, 3))?;
    class.define_method("tests", method!(tests, 3))?;
    class.define_method("ops", method!(ops, 3))?;
    class.define_method("gc", method!(gc, 1))
}

/// `NativeProfile.load(path)`: the profile in a pprof file.
fn load(ruby: &Ruby, path: PathBuf) -> Result<Value, Error> {
    let read = without_gvl_if_possible(|| rperf_session::input::read_profile(&path))?;
    wrap(
        ruby,
        read.map_err(|error| errors::rperf(ruby, error.to_string()))?,
    )
}

/// `NativeProfile.merge(profiles)`: all in one; there is one at least.
fn merge(ruby: &Ruby, profiles: RArray) -> Result<Value, Error> {
    let profiles = all_shared(profiles)?;
    let merged = without_gvl_if_possible(|| {
        let mut profiles = (1..).zip(&profiles);
        let (_, first) = profiles.next().ok_or("there is nothing to merge")?;
        let mut whole = Profile::clone(first);
        for (number, next) in profiles {
            let merged = whole.merge(next);
            merged.map_err(|error| format!("profile {number}: {error}"))?;
        }
        Ok(whole)
    })?;
    wrap(
        ruby,
        merged.map_err(|message: String| errors::rperf(ruby, message))?,
    )
}

/// `#filter(filters)`: what is left.
fn filter(ruby: &Ruby, rb_self: &ProfileObject, filters: RHash) -> Result<Value, Error> {
    let (profile, view) = (Arc::clone(&rb_self.0), View::read(ruby, filters)?);
    let left = without_gvl_if_possible(|| view.of(&profile).map(|left| left.profile.into_owned()))?;
    wrap(
        ruby,
        left.map_err(|message| errors::argument(ruby, message))?,
    )
}

/// `#totals(filters)`
fn totals(ruby: &Ruby, rb_self: &ProfileObject, filters: RHash) -> Result<Value, Error> {
    answer(ruby, rb_self, filters, |question| {
        Ok(Data::fields(answers::totals(question)))
    })
}

/// `#top(by, sort, limit, filters)`: with limit nil all rows.
fn top(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    by: String,
    sort: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let by = match by.as_str() {
        "class" => By::Class,
        "file" => By::File,
        "dir" => By::Directory,
        "gem" => By::Gem(CoreMethods::Caller),
        "gem:c" => By::Gem(CoreMethods::Apart),
        "op" => By::Op,
        "thread" => By::Thread,
        "state" => By::State,
        other => match other.strip_prefix("label:") {
            Some(key) => By::Label(key.to_string()),
            None => By::Function,
        },
    };
    let sort = sort_of(&sort);
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::top(question, &by, sort, limit))
    })
}

/// `#tree(least, bottom_up, filters)`
fn tree(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    least: f64,
    bottom_up: bool,
    filters: RHash,
) -> Result<Value, Error> {
    let direction = match bottom_up {
        true => Direction::BottomUp,
        false => Direction::TopDown,
    };
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::tree(question, direction, least))
    })
}

/// `#callers(name, filters)`
fn callers(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    name: String,
    filters: RHash,
) -> Result<Value, Error> {
    answer(ruby, rb_self, filters, |question| {
        let pattern = NamePattern::new(&name, question.profile);
        let pattern = pattern.map_err(|error| format!("name: {error}"))?;
        Ok(answers::callers(question, &pattern))
    })
}

/// `#boot(sort, limit, filters)`: with limit nil all files.
fn boot(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    sort: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let sort = sort_of(&sort);
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::boot(question, sort, limit))
    })
}

/// `#tests(sort, limit, filters)`: with limit nil all tests; nil if there are none.
fn tests(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    sort: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let sort = sort_of(&sort);
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::tests(question, sort, limit))
    })
}

/// `#ops(sort, limit, filters)`: with limit nil all ops; nil if there are none.
fn ops(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    sort: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let sort = sort_of(&sort);
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::ops(question, sort, limit))
    })
}

/// `#gc(filters)`: nil if there are no collections.
fn gc(ruby: &Ruby, rb_self: &ProfileObject, filters: RHash) -> Result<Value, Error> {
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::collections(question))
    })
}

/// `NativeProfile.diff(base, target, sort, normalize, limit, filters)`: each side is an
/// Array of runs.
fn diff(
    ruby: &Ruby,
    base: RArray,
    target: RArray,
    sort: String,
    normalize: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let (base, target) = (all_shared(base)?, all_shared(target)?);
    let view = View::read(ruby, filters)?;
    let sort = sort_of(&sort);
    let (normalize, label) = match normalize.as_str() {
        "total" => (Normalize::Total, None),
        "duration" => (Normalize::Duration, None),
        "requests" => (Normalize::Requests, None),
        other => match other.strip_prefix("label:") {
            Some(key) => (Normalize::Label, Some(key)),
            None => (Normalize::No, None),
        },
    };
    let compared = without_gvl_if_possible(|| {
        let runs = |side: &[Arc<Profile>]| {
            let run = |profile: &Arc<Profile>| {
                let left = view.of(profile);
                left.map(|left| Run::of(&left.profile, label))
            };
            side.iter().map(run).collect::<Result<Vec<_>, String>>()
        };
        let (base, target) = (runs(&base)?, runs(&target)?);
        Ok(Diff::of(&base, &target, sort, normalize).map(|diff| answers::diff(&diff, limit)))
    })?;
    let compared = compared.map_err(|message: String| errors::argument(ruby, message))?;
    to_ruby(
        ruby,
        &compared.map_err(|error| errors::rperf(ruby, error.to_string()))?,
    )
}

fn sort_of(name: &str) -> Sort {
    match name {
        "total" => Sort::TotalValue,
        _ => Sort::SelfValue,
    }
}

fn all_shared(profiles: RArray) -> Result<Vec<Arc<Profile>>, Error> {
    profiles.into_iter().map(shared).collect()
}

/// What `question` says of what the filters leave.
fn answer(
    ruby: &Ruby,
    profile: &ProfileObject,
    filters: RHash,
    question: impl FnOnce(FilteredProfile<'_>) -> Result<Data, String> + Send,
) -> Result<Value, Error> {
    let (profile, view) = (Arc::clone(&profile.0), View::read(ruby, filters)?);
    let data = without_gvl_if_possible(|| {
        let left = view.of(&profile)?;
        question(FilteredProfile {
            profile: &left.profile,
            whole: left.whole,
            idle: left.idle,
        })
    })?;
    to_ruby(
        ruby,
        &data.map_err(|message| errors::argument(ruby, message))?,
    )
}

/// What of a profile is looked at.
struct View {
    filter: Filter,
    value: Option<String>,
}

/// What is left of a profile, and what it added up to before.
struct Left<'a> {
    profile: Cow<'a, Profile>,
    whole: i64,
    idle: IdleTime,
}

impl View {
    /// From a Hash of Strings; `tagfocus`, `tagignore`, `tagroot` and `tagleaf` are Arrays of them, `pid` a
    /// number.
    fn read(ruby: &Ruby, filters: RHash) -> Result<Self, Error> {
        let filters = Filters { ruby, filters };
        Ok(Self {
            filter: Filter {
                focus: filters.parsed("focus", regex)?,
                ignore: filters.parsed("ignore", regex)?,
                hide: filters.parsed("hide", regex)?,
                hides_ops: filters.get("hide_ops")?.unwrap_or(false),
                show: filters.parsed("show", regex)?,
                show_from: filters.parsed("show_from", regex)?,
                tag_focus: filters.tags("tagfocus")?,
                tag_ignore: filters.tags("tagignore")?,
                tag_root: filters.get("tagroot")?.unwrap_or_default(),
                tag_leaf: filters.get("tagleaf")?.unwrap_or_default(),
                thread: filters.parsed("thread", ThreadFilter::new)?,
                pid: filters.get("pid")?,
                hides_idle: filters.get("idle")? == Some(false),
            },
            value: filters.get("value")?,
        })
    }

    /// Copies the profile only if there is something to change in it.
    fn of<'a>(&self, profile: &'a Profile) -> Result<Left<'a>, String> {
        let mut left = Cow::Borrowed(profile);
        if let Some(value) = &self.value {
            let chosen = choose_values(left.to_mut(), value);
            chosen.map_err(|error| format!("value: {error}"))?;
        }
        if self.filter.is_empty() && !self.filter.hides_idle {
            let all = FilteredProfile::all(&left);
            let (whole, idle) = (all.whole, all.idle);
            return Ok(Left {
                profile: left,
                whole,
                idle,
            });
        }
        let idle = Idle::of(&left).value();
        let filtered = self.filter.apply(left.into_owned());
        Ok(Left {
            profile: Cow::Owned(filtered.profile),
            whole: filtered.whole,
            idle: match self.filter.hides_idle {
                true => IdleTime::LeftOut(idle),
                false => IdleTime::Kept(idle),
            },
        })
    }
}

struct Filters<'a> {
    ruby: &'a Ruby,
    filters: RHash,
}

impl Filters<'_> {
    fn get<T: TryConvert>(&self, key: &str) -> Result<Option<T>, Error> {
        match self.filters.get(self.ruby.to_symbol(key)) {
            Some(value) => Option::<T>::try_convert(value as Value),
            None => Ok(None),
        }
    }

    fn parsed<T, E: std::fmt::Display>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Error> {
        let text: Option<String> = self.get(key)?;
        let parsed = text.as_deref().map(parse).transpose();
        parsed.map_err(|error| errors::argument(self.ruby, format!("{key}: {error}")))
    }

    fn tags(&self, key: &str) -> Result<Vec<TagFilter>, Error> {
        let texts: Vec<String> = self.get(key)?.unwrap_or_default();
        let parsed = texts.iter().map(|text| TagFilter::new(text));
        let parsed: Result<_, _> = parsed.collect();
        parsed.map_err(|error| errors::argument(self.ruby, format!("{key}: {error}")))
    }
}

/// What JSON calls an object is a Hash with Symbols as keys. Other threads run in between.
fn to_ruby(ruby: &Ruby, data: &Data) -> Result<Value, Error> {
    to_ruby_by_stretches(ruby, data, &mut Stretch::begin())
}

fn to_ruby_by_stretches(ruby: &Ruby, data: &Data, stretch: &mut Stretch) -> Result<Value, Error> {
    Ok(match data {
        Data::Null => ruby.qnil().as_value(),
        Data::Bool(true) => ruby.qtrue().as_value(),
        Data::Bool(false) => ruby.qfalse().as_value(),
        Data::Integer(number) => match u64::try_from(*number) {
            Ok(number) => ruby.integer_from_u64(number).as_value(),
            Err(_) => {
                let number = i64::try_from(*number).unwrap_or(i64::MIN);
                ruby.integer_from_i64(number).as_value()
            }
        },
        Data::Number(number) => ruby.float_from_f64(*number).as_value(),
        Data::Text(text) => ruby.str_new(text).as_value(),
        Data::List(items) => {
            let array = ruby.ary_new_capa(items.len());
            for item in items {
                stretch.end_if_long()?;
                array.push(to_ruby_by_stretches(ruby, item, stretch)?)?;
            }
            array.as_value()
        }
        Data::Fields(fields) => {
            let hash = ruby.hash_new();
            for (name, value) in fields {
                let value = to_ruby_by_stretches(ruby, value, stretch)?;
                hash.aset(ruby.to_symbol(*name), value)?;
            }
            hash.as_value()
        }
    })
}
