//! `NativeProfile#facts`: the Hash that users get, but for its long Arrays (`arrays.rs`). On a
//! Ruby thread, with the GVL; how many stacks there are is counted without it.

use super::arrays::Shapes;
use crate::interrupts::{Stretch, without_gvl_if_possible};
use magnus::{Error, RHash, Ruby, Value, value::ReprValue};
use rperf_model::{Profile, SessionMode};

/// The Hash.
pub fn facts(ruby: &Ruby, profile: &Profile) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    let set = |key: &str, value: Value| hash.aset(ruby.to_symbol(key), value);
    let number = |number: u64| ruby.integer_from_u64(number).as_value();
    let meta = &profile.meta;
    let mode = match profile.schema.is_traced() {
        true => SessionMode::Trace.name(),
        false => profile.schema.default_type().name.as_str(),
    };
    set("mode", ruby.to_symbol(mode).as_value())?;
    let frequency = (meta.frequency > 0).then(|| number(u64::from(meta.frequency)));
    set("frequency", frequency.unwrap_or(ruby.qnil().as_value()))?;
    for (key, count) in numbers(profile) {
        set(key, number(count))?;
    }
    if profile.raw_samples.is_none() {
        let stacks = without_gvl_if_possible(|| Shapes::new(profile).stacks(profile))?;
        set("unique_frames", number(profile.frames.len() as u64))?;
        set("unique_stacks", number(stacks as u64))?;
    }
    let names = thread_names(ruby, profile)?;
    if !names.is_empty() {
        set("thread_names", names.as_value())?;
    }
    Ok(hash)
}

/// The names of threads by their numbers, without those that have none.
fn thread_names(ruby: &Ruby, profile: &Profile) -> Result<RHash, Error> {
    let names = ruby.hash_new();
    let mut stretch = Stretch::begin();
    for thread in &profile.threads {
        stretch.end_if_long()?;
        let name = profile.strings.get(thread.name);
        if !name.is_empty() {
            let name = ruby.str_new(name);
            name.freeze();
            names.aset(thread.seq, name)?;
        }
    }
    names.freeze();
    Ok(names)
}

fn numbers(profile: &Profile) -> [(&'static str, u64); 20] {
    let meta = &profile.meta;
    let counters = &meta.counters;
    [
        ("sampling_count", counters.sampling_count),
        ("sampling_time_ns", counters.sampling_time_ns),
        ("trigger_count", counters.trigger_count),
        ("detected_thread_count", counters.detected_thread_count),
        ("start_time_ns", meta.start_time_ns),
        ("duration_ns", meta.duration_ns),
        ("dropped_samples", counters.dropped_samples),
        ("dropped_ns", counters.dropped_ns),
        ("truncated_samples", counters.truncated_samples),
        ("folded_samples", counters.folded_samples),
        ("folded_ns", counters.folded_ns),
        ("unlabelled_samples", counters.unlabelled_samples),
        ("tick_stacks", counters.tick_stacks),
        ("safepoint_stacks", counters.safepoint_stacks),
        ("safepoint_calls", counters.safepoint_calls),
        ("unreadable_stacks", counters.unreadable_stacks),
        ("hidden_frames", counters.hidden_frames),
        ("known_waits", counters.known_waits),
        ("interval_ns", counters.interval_ns),
        ("off_gvl_interval_ns", counters.off_gvl_interval_ns),
    ]
}

/// `NativeProfile#arrays`: the keys of the Hash's long Arrays, each with the method that makes it.
pub fn arrays(ruby: &Ruby, profile: &Profile) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    let samples = ruby.to_symbol("samples");
    let second_name = match profile.raw_samples {
        Some(_) => "raw_samples",
        None => "aggregated_samples",
    };
    hash.aset(samples, samples)?;
    hash.aset(ruby.to_symbol(second_name), samples)?;
    if profile.label_sets.len() > 1 {
        let label_sets = ruby.to_symbol("label_sets");
        hash.aset(label_sets, label_sets)?;
    }
    Ok(hash)
}
