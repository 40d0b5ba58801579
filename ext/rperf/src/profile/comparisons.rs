//! Comparisons of profiles, asked for by lib/rperf/api/files.rb. On a Ruby thread that holds the GVL; what
//! takes long runs without it. Arguments were checked in Ruby (lib/rperf/api/questions.rb).

use super::errors;
use super::object::all_shared;
use super::to_ruby::to_ruby;
use super::view::{View, sort_of};
use crate::interrupts::without_gvl_if_possible;
use magnus::{Error, RArray, RClass, RHash, Ruby, Value, function, prelude::*};
use rperf_format::answers;
use rperf_model::Profile;
use rperf_report::{Diff, Normalize, Run, Sort, TestValue};
use std::sync::Arc;

/// Defines the methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_singleton_method("diff", function!(diff, 6))?;
    class.define_singleton_method("diff_tests", function!(diff_tests, 4))?;
    class.define_singleton_method("test_values", function!(test_values, 0))
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

/// `NativeProfile.diff_tests(base, target, value, limit)`: the same of tests; nil for the value means the
/// usual one.
fn diff_tests(
    ruby: &Ruby,
    base: RArray,
    target: RArray,
    value: Option<String>,
    limit: Option<usize>,
) -> Result<Value, Error> {
    let (base, target) = (all_shared(base)?, all_shared(target)?);
    let named = |name: String| TestValue::ALL.into_iter().find(|it| it.name() == name);
    let value = value.and_then(named).unwrap_or_default();
    let compared = without_gvl_if_possible(|| {
        let runs = |side: &str, profiles: &[Arc<Profile>]| {
            let runs = profiles.iter().map(|it| Run::of_tests(it, value));
            let runs: Result<Vec<_>, _> = runs.collect();
            runs.map_err(|error| format!("{side}: {error}"))
        };
        let (base, target) = (runs("base", &base)?, runs("target", &target)?);
        let diff = Diff::of(&base, &target, Sort::SelfValue, Normalize::No);
        let diff = diff.map_err(|error| error.to_string())?;
        Ok(answers::diff(&diff, limit))
    })?;
    to_ruby(
        ruby,
        &compared.map_err(|message: String| errors::rperf(ruby, message))?,
    )
}

/// `NativeProfile.test_values`: the names of the values that tests have.
fn test_values(ruby: &Ruby) -> RArray {
    ruby.ary_from_iter(TestValue::ALL.map(TestValue::name))
}
