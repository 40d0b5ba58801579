//! The part of a profile that a question is about, and the order of its rows, as lib/rperf/api/questions.rb
//! hands them over. Read on a Ruby thread that holds the GVL; applied without it.

use super::errors;
use magnus::{Error, RHash, Ruby, TryConvert, Value};
use rperf_format::answers::{FilteredProfile, IdleTime};
use rperf_model::Profile;
use rperf_report::{Filter, Idle, Sort, TagFilter, ThreadFilter, choose_values, regex};
use std::borrow::Cow;

/// The order by its name.
pub fn sort_of(name: &str) -> Sort {
    match name {
        "total" => Sort::TotalValue,
        _ => Sort::SelfValue,
    }
}

/// What of a profile is looked at.
pub struct View {
    filter: Filter,
    value: Option<String>,
}

/// What is left of a profile, and what it added up to before.
pub struct Left<'a> {
    /// The part that is left.
    pub profile: Cow<'a, Profile>,
    /// The sum before filters.
    pub whole: i64,
    /// The time of idle threads.
    pub idle: IdleTime,
}

impl View {
    /// From a Hash of Strings; `tagfocus`, `tagignore`, `tagroot` and `tagleaf` are Arrays of them, `pid` a
    /// number.
    pub fn read(ruby: &Ruby, filters: RHash) -> Result<Self, Error> {
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
    pub fn of<'a>(&self, profile: &'a Profile) -> Result<Left<'a>, String> {
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
