//! Questions to a profile, asked by lib/rperf/api/profile.rb: reading, merging, filters, and the
//! answers of rperf-report as Hashes and Arrays. On a Ruby thread that holds the GVL; what
//! takes long runs without it. Arguments were checked in Ruby (lib/rperf/api/questions.rb).

use super::errors;
use super::object::{ProfileObject, all_shared, wrap};
use super::to_ruby::to_ruby;
use super::view::{View, sort_of};
use crate::interrupts::without_gvl_if_possible;
use magnus::{Error, RArray, RClass, RHash, Ruby, Value, function, method, prelude::*};
use rperf_format::answers::{self, Data, FilteredProfile, Rows};
use rperf_model::Profile;
use rperf_report::{By, Direction, NamePattern, NoSuchRequests, Why, find_requests};
use std::path::PathBuf;
use std::sync::Arc;

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_singleton_method("load", function!(load, 1))?;
    class.define_singleton_method("merge", function!(merge, 1))?;
    class.define_method("filter", method!(filter, 1))?;
    class.define_method("totals", method!(totals, 1))?;
    class.define_method("top", method!(top, 4))?;
    class.define_method("tree", method!(tree, 3))?;
    class.define_method("callers", method!(callers, 2))?;
    class.define_method("rows", method!(rows, 4))?;
    class.define_method("gc", method!(gc, 1))?;
    class.define_method("why", method!(why, 3))
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
    let by = By::named(&by).unwrap_or(By::Function);
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

/// `#rows(question, sort, limit, filters)`: with limit nil all rows; nil if the profile doesn't tell.
fn rows(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    question: String,
    sort: String,
    limit: Option<usize>,
    filters: RHash,
) -> Result<Value, Error> {
    let rows: Rows = match question.as_str() {
        "boot" => answers::boot,
        "tests" => answers::tests,
        "ops" => answers::ops,
        _ => answers::methods,
    };
    let sort = sort_of(&sort);
    answer(ruby, rb_self, filters, |question| {
        Ok(rows(question, sort, limit))
    })
}

/// `#gc(filters)`: nil if there are no collections.
fn gc(ruby: &Ruby, rb_self: &ProfileObject, filters: RHash) -> Result<Value, Error> {
    answer(ruby, rb_self, filters, |question| {
        Ok(answers::collections(question))
    })
}

/// `#why(name, written, filters)`: about all endpoints with nil, else about the one that the name is of; nil if
/// there are no requests. `written`: the name as the program has it in its code, if that is another text.
fn why(
    ruby: &Ruby,
    rb_self: &ProfileObject,
    name: Option<String>,
    written: Option<String>,
    filters: RHash,
) -> Result<Value, Error> {
    answer(ruby, rb_self, filters, |question| {
        let profile = question.profile;
        match name {
            Some(name) if !profile.requests.is_empty() => {
                let found = find_requests(profile, &name);
                let told =
                    |error: NoSuchRequests| format!("endpoint: {}", error.as_written(written));
                let requests = found.map_err(told)?;
                Ok(answers::endpoint(&Why::of(profile, requests)))
            }
            _ => Ok(answers::endpoints(profile)),
        }
    })
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
