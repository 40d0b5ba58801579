//! Filters with pprof's meanings: they make a smaller profile of a profile, so that every question
//! and every format works on it. Called by `rperf report`, `rperf diff` and the Ruby API; any
//! thread.

mod frames;
mod label_frames;
mod requests;
mod tag_filter;

pub use tag_filter::TagFilter;

use crate::idle::Idle;
use crate::rows::keys::set_keys;
use crate::rows::tags::ThreadNames;
use crate::text::pattern::{PatternError, regex};
use frames::{FrameFilters, Frames};
use regex::Regex;
use requests::Sampled;
use rperf_model::label_keys::{PID, THREAD_SEQ};
use rperf_model::{Collections, Profile, WeightKey, Weights};
use std::borrow::Cow;

/// The options that choose a part of a profile.
///
/// Frames match by name or path, as it is shown or as it was recorded. The leaves that stand for a state
/// (`[GVL wait]`, `<GVL>`) are frames as all others. A state whose leaf is hidden is
/// counted as the running time of its caller; the same holds with `tagleaf`.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only stacks with a frame that matches.
    pub focus: Option<Regex>,
    /// No stack with a frame that matches.
    pub ignore: Option<Regex>,
    /// Removes the frames that match; stacks without any other frame are dropped.
    pub hide: Option<Regex>,
    /// Removes the frames of ops, likewise.
    pub hides_ops: bool,
    /// Removes the frames that don't match; stacks without any other frame are dropped.
    pub show: Option<Regex>,
    /// Without the callers of the outermost frame that matches; stacks without one are
    /// dropped.
    pub show_from: Option<Regex>,
    /// Only samples that have for each of these a tag that matches.
    pub tag_focus: Vec<TagFilter>,
    /// No sample with a tag that matches one of these.
    pub tag_ignore: Vec<TagFilter>,
    /// Tags whose values become frames above all others, the outermost first.
    pub tag_root: Vec<String>,
    /// Tags whose values become frames below all others, the innermost last.
    pub tag_leaf: Vec<String>,
    /// Only threads with this number, or with a name that matches.
    pub thread: Option<ThreadFilter>,
    /// Only the process with this number.
    pub pid: Option<u32>,
    /// Without the time of idle threads.
    pub hides_idle: bool,
}

/// Chooses threads.
#[derive(Debug, Clone)]
pub struct ThreadFilter {
    number: Option<u32>,
    name: Regex,
}

/// A profile that has been filtered.
#[derive(Debug, Clone)]
pub struct Filtered {
    /// The profile after the filters.
    pub profile: Profile,
    /// The options that matched nothing at all, by their names.
    pub unmatched: Vec<&'static str>,
    /// The time of idle threads that was left out before all else, in the default values.
    pub idle: i64,
    /// The sum of the default values before the other filters.
    pub whole: i64,
}

impl ThreadFilter {
    /// The threads that `text` names: a number, or an expression for names.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        Ok(Self {
            number: text.parse().ok(),
            name: regex(text)?,
        })
    }

    fn matches(&self, seq: u32, name: Option<&str>) -> bool {
        self.number == Some(seq) || name.is_some_and(|name| self.name.is_match(name))
    }
}

impl Filter {
    /// Whether everything passes, but for the time of idle threads.
    pub fn is_empty(&self) -> bool {
        let frames = [
            &self.focus,
            &self.ignore,
            &self.hide,
            &self.show,
            &self.show_from,
        ];
        let tags = [&self.tag_focus, &self.tag_ignore];
        frames.iter().all(|regex| regex.is_none())
            && !self.hides_ops
            && tags.iter().all(|tags| tags.is_empty())
            && self.tag_root.is_empty()
            && self.tag_leaf.is_empty()
            && self.thread.is_none()
            && self.pid.is_none()
    }

    /// What is left of `profile`. Frames made of tags come first, so that the other
    /// filters see them, as with pprof.
    pub fn apply(&self, mut profile: Profile) -> Filtered {
        let mut unmatched = Vec::new();
        let idle = if self.hides_idle {
            hide_idle(&mut profile)
        } else {
            0
        };
        let whole = profile.sum(profile.schema.default_column());
        if !self.is_empty() {
            // They are of all calls, and of all collections, also of those that are left out.
            profile.latencies.clear();
            profile.collections = Collections::default();
        }
        if !self.tag_root.is_empty() || !self.tag_leaf.is_empty() {
            let added = label_frames::add(&mut profile, &self.tag_root, &self.tag_leaf);
            unmatched.extend(added.unmatched);
        }
        self.apply_tags(&mut profile, &mut unmatched);
        let filters = FrameFilters {
            focus: self.focus.as_ref(),
            ignore: self.ignore.as_ref(),
            hide: self.hide.as_ref(),
            hides_ops: self.hides_ops,
            show: self.show.as_ref(),
            show_from: self.show_from.as_ref(),
        };
        let frames = Frames::new(filters, &profile);
        if frames.is_needed {
            let kept = frames.rewrite(&mut profile);
            unmatched.extend(kept.unmatched);
        }
        Filtered {
            profile,
            unmatched,
            idle,
            whole,
        }
    }

    fn apply_tags(&self, profile: &mut Profile, unmatched: &mut Vec<&'static str>) {
        let names = ThreadNames::of(profile);
        let matching = |tags: &[TagFilter], join: fn(bool, bool) -> bool| {
            let masks = tags.iter();
            let masks = masks.map(|tag| tag_filter::matching(profile, &names, tag));
            masks.reduce(|all, next| {
                let pairs = all.into_iter().zip(next);
                pairs.map(|(all, next)| join(all, next)).collect()
            })
        };
        let focus = matching(&self.tag_focus, |all, next| all && next);
        let focus = focus.map(|rows| ("--tagfocus", rows));
        let ignore = matching(&self.tag_ignore, |all, next| all || next);
        let ignore = ignore.map(|rows| ("--tagignore", rows));
        let thread = self.thread.as_ref().map(|thread| {
            let is_kept = |row: WeightKey| {
                let name = names.get(profile, row.thread);
                thread.matches(row.thread, name)
            };
            ("--thread", rows(&profile.weights, is_kept))
        });
        let pid = self.pid.map(|pid| {
            let sets: Vec<bool> = (0..profile.label_sets.len() as u32)
                .map(|set| {
                    let value =
                        crate::rows::tags::label(profile, rperf_model::LabelSetId(set), PID);
                    value.is_some_and(|value| value.parse() == Ok(pid))
                })
                .collect();
            let is_kept = |row: WeightKey| sets[row.labels.0 as usize];
            ("--pid", rows(&profile.weights, is_kept))
        });
        let ignored = ignore.map(|(name, rows)| {
            if !rows.contains(&true) {
                unmatched.push(name);
            }
            rows.into_iter().map(|is_ignored| !is_ignored).collect()
        });
        let mut masks: Vec<Vec<bool>> = ignored.into_iter().collect();
        for (name, rows) in [focus, thread, pid].into_iter().flatten() {
            if !rows.contains(&true) {
                unmatched.push(name);
            }
            masks.push(rows);
        }
        if masks.is_empty() {
            return;
        }
        let sampled = Sampled::of(profile);
        let keys = profile.weights.iter().enumerate().map(|(row, weight)| {
            let is_kept = masks.iter().all(|mask| mask[row]);
            is_kept.then_some(weight.key)
        });
        let keys: Vec<_> = keys.collect();
        set_keys(profile, &keys);
        sampled.leave(profile, |tags| {
            let is_of_all = self.thread.is_none() && self.pid.is_none();
            is_of_all
                && self.tag_focus.iter().all(|filter| filter.matches(tags))
                && !self.tag_ignore.iter().any(|filter| filter.matches(tags))
        });
    }
}

/// `profile` without the time of idle threads, and how much that is.
pub fn without_idle(profile: &Profile) -> (Cow<'_, Profile>, i64) {
    let idle = Idle::of(profile);
    if idle.value() == 0 {
        return (Cow::Borrowed(profile), 0);
    }
    let mut left = profile.clone();
    drop_idle(&mut left, &idle);
    (Cow::Owned(left), idle.value())
}

/// Leaves the time of idle threads out. Returns how much that is.
fn hide_idle(profile: &mut Profile) -> i64 {
    let idle = Idle::of(profile);
    if idle.value() != 0 {
        drop_idle(profile, &idle);
    }
    idle.value()
}

fn drop_idle(profile: &mut Profile, idle: &Idle) {
    let rows = profile.weights.iter().zip(idle.rows());
    let keys = rows.map(|(row, is_idle)| (!is_idle).then_some(row.key));
    let keys: Vec<_> = keys.collect();
    set_keys(profile, &keys);
}

/// Puts a frame above all stacks of each thread, named for the thread's number.
pub(crate) fn add_thread_frames(profile: &mut Profile) {
    label_frames::add(profile, &[THREAD_SEQ.to_string()], &[]);
}

fn rows(weights: &Weights, is_kept: impl Fn(WeightKey) -> bool) -> Vec<bool> {
    weights.iter().map(|weight| is_kept(weight.key)).collect()
}

#[cfg(test)]
mod tests;
