//! `NativeProfile.from_h`: a profile from a Hash that a user has changed or made. On a
//! Ruby thread, with the GVL, which others get in between. Any wrong shape is an ArgumentError that names the
//! key; none is a panic.

use super::{errors, own_files};
use crate::interrupts::Stretch;
use crate::text;
use magnus::r_hash::ForEach;
use magnus::{Error, RArray, RHash, RString, Ruby, Symbol, TryConvert, Value, prelude::*};
use rperf_model::{
    DisplayFrame, FREQUENCIES, LabelSetId, Meta, Node, NodeId, Profile, RawSamples, SamplingStats,
    State, StringId, Thread, WeightKey, WeightTable,
};
use rperf_sampling::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// Names of the samples, and whether they are raw ones.
const SAMPLES: [(&str, bool); 3] = [
    ("raw_samples", true),
    ("aggregated_samples", false),
    ("samples", false),
];

/// The profile that `hash` describes.
pub fn from_hash(ruby: &Ruby, hash: RHash) -> Result<Profile, Error> {
    let input = Input { ruby, hash };
    let mut profile = Profile::new(input.mode()?.schema());
    profile.meta = input.meta()?;
    own_files::describe(&mut profile);
    let labels = input.label_sets(&mut profile)?;
    let (key, raw) = SAMPLES
        .into_iter()
        .find(|(key, _)| input.get(key).is_some())
        .ok_or_else(|| input.error("samples", "is missing"))?;
    let rows: RArray = input.required(key, "an Array of samples")?;
    let width = profile.schema.len();
    let mut samples = RawSamples::new(width);
    let mut stretch = Stretch::begin();
    for (index, row) in rows.into_iter().enumerate() {
        stretch.end_if_long()?;
        let sample = input.sample(&mut profile, &labels, row);
        let sample = sample.map_err(|what| {
            let what = format!("has a wrong sample at {index}: {}", what.text());
            input.error(key, &what)
        })?;
        samples.push(sample.time_ns, sample.key, &sample.values[..width]);
    }
    let seqs = samples.weights.iter().map(|weight| weight.key.thread);
    let seqs: BTreeSet<u32> = seqs.filter(|&seq| seq > 0).collect();
    let names = input.thread_names(&mut profile)?;
    let thread = |seq| Thread {
        seq,
        name: names.get(&seq).copied().unwrap_or_default(),
    };
    profile.threads = seqs.into_iter().map(thread).collect();
    profile.weights = WeightTable::from(&samples.weights).into_weights();
    if raw {
        samples.sort();
        profile.raw_samples = Some(samples);
    }
    Ok(profile)
}

/// A row of the Hash's samples.
struct Sample {
    time_ns: u64,
    key: WeightKey,
    /// Count, weight, CPU time. The first two are the columns in cpu mode, and all of
    /// them in wall mode.
    values: [i64; 3],
}

/// What is wrong with a sample.
enum Wrong {
    /// Said by us.
    Shape(&'static str),
    /// Said by Ruby.
    Ruby(Error),
}

impl Wrong {
    fn text(self) -> String {
        match self {
            Wrong::Shape(text) => text.to_string(),
            Wrong::Ruby(error) => error.to_string(),
        }
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Wrong::Ruby(error)
    }
}

struct Input<'a> {
    ruby: &'a Ruby,
    hash: RHash,
}

impl Input<'_> {
    fn error(&self, key: &str, what: &str) -> Error {
        errors::argument(self.ruby, format!("data: {key}: {what}"))
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.hash
            .get(self.ruby.to_symbol(key))
            .filter(|value: &Value| !value.is_nil())
    }

    fn required<T: TryConvert>(&self, key: &str, what: &str) -> Result<T, Error> {
        let value = self.get(key).ok_or_else(|| self.error(key, "is missing"))?;
        T::try_convert(value).map_err(|_| self.error(key, &format!("must be {what}")))
    }

    fn count(&self, key: &str) -> Result<u64, Error> {
        match self.get(key) {
            None => Ok(0),
            Some(_) => self.required(key, "an Integer that isn't negative"),
        }
    }

    fn mode(&self) -> Result<Mode, Error> {
        let mode: Symbol = self.required("mode", ":cpu or :wall")?;
        Mode::from_name(&mode.name()?).ok_or_else(|| self.error("mode", "must be :cpu or :wall"))
    }

    fn meta(&self) -> Result<Meta, Error> {
        let (least, most) = (FREQUENCIES.start(), FREQUENCIES.end());
        let allowed = &format!("an Integer from {least} to {most}");
        let frequency: u32 = self.required("frequency", allowed)?;
        if !FREQUENCIES.contains(&frequency) {
            return Err(self.error("frequency", &format!("must be {allowed}")));
        }
        Ok(Meta {
            frequency,
            start_time_ns: self.count("start_time_ns")?,
            duration_ns: self.count("duration_ns")?,
            counters: SamplingStats {
                trigger_count: self.count("trigger_count")?,
                sampling_count: self.count("sampling_count")?,
                sampling_time_ns: self.count("sampling_time_ns")?,
                detected_thread_count: self.count("detected_thread_count")?,
                dropped_samples: self.count("dropped_samples")?,
                dropped_ns: self.count("dropped_ns")?,
                truncated_samples: self.count("truncated_samples")?,
                folded_samples: self.count("folded_samples")?,
                folded_ns: self.count("folded_ns")?,
                unlabelled_samples: self.count("unlabelled_samples")?,
                tick_stacks: self.count("tick_stacks")?,
                safepoint_stacks: self.count("safepoint_stacks")?,
                safepoint_calls: self.count("safepoint_calls")?,
                unreadable_stacks: self.count("unreadable_stacks")?,
                hidden_frames: self.count("hidden_frames")?,
                known_waits: self.count("known_waits")?,
                interval_ns: self.count("interval_ns")?,
                off_gvl_interval_ns: self.count("off_gvl_interval_ns")?,
            },
            ..Meta::default()
        })
    }

    /// The names of threads that the Hash has, by number.
    fn thread_names(&self, profile: &mut Profile) -> Result<BTreeMap<u32, StringId>, Error> {
        let mut names = BTreeMap::new();
        if self.get("thread_names").is_some() {
            let what = "a Hash of Strings by the numbers of threads";
            let hash: RHash = self.required("thread_names", what)?;
            hash.foreach(|seq: Value, name: Value| {
                let pair = (u32::try_convert(seq).ok(), text::of_string(name));
                let (Some(seq), Some(name)) = pair else {
                    return Err(self.error("thread_names", &format!("must be {what}")));
                };
                names.insert(seq, profile.strings.intern(&name));
                Ok(ForEach::Continue)
            })?;
        }
        Ok(names)
    }

    /// The ids in the profile of the Hash's label sets, by their index.
    fn label_sets(&self, profile: &mut Profile) -> Result<Vec<LabelSetId>, Error> {
        let what = "an Array of Hashes";
        let mut ids = Vec::new();
        if self.get("label_sets").is_some() {
            let sets: RArray = self.required("label_sets", what)?;
            for set in sets {
                let set = RHash::try_convert(set)
                    .map_err(|_| self.error("label_sets", &format!("must be {what}")))?;
                let mut pairs = Vec::new();
                set.foreach(|key: Value, value: Value| {
                    pairs.push((key.to_string(), value.to_string()));
                    Ok(ForEach::Continue)
                })?;
                let pairs = pairs.iter().map(|(key, value)| {
                    (profile.strings.intern(key), profile.strings.intern(value))
                });
                let mut pairs: Vec<_> = pairs.collect();
                // Keys of different kinds can look the same as text: the first counts.
                let mut seen = BTreeSet::new();
                pairs.retain(|(key, _)| seen.insert(*key));
                ids.push(profile.label_sets.intern(pairs));
            }
        }
        if ids.is_empty() {
            ids.push(LabelSetId::default());
        }
        Ok(ids)
    }

    /// Reads a row: frames, weight, thread, label set, count, CPU time, time.
    fn sample(
        &self,
        profile: &mut Profile,
        labels: &[LabelSetId],
        row: Value,
    ) -> Result<Sample, Wrong> {
        let row = RArray::from_value(row).ok_or(Wrong::Shape("it must be an Array"))?;
        let frames =
            RArray::from_value(row.entry(0)?).ok_or(Wrong::Shape("its frames must be an Array"))?;
        let weight = number(row, 1)?.ok_or(Wrong::Shape("it has no weight"))?;
        let thread = row.entry::<Option<u32>>(2)?.unwrap_or(1);
        let label_set = row.entry::<Option<usize>>(3)?.unwrap_or(0);
        let count = number(row, 4)?.unwrap_or(1);
        let cpu_ns = number(row, 5)?.unwrap_or(0);
        let time_ns = row.entry::<Option<u64>>(6)?.unwrap_or(0);
        let labels = *labels
            .get(label_set)
            .ok_or(Wrong::Shape("there is no such label set"))?;
        let (node, state) = self.stack(profile, frames)?;
        let key = WeightKey {
            node,
            thread,
            labels,
            state,
        };
        Ok(Sample {
            time_ns,
            key,
            values: [count, weight, cpu_ns],
        })
    }

    /// The node of a stack whose leaf comes first, and the state of that leaf.
    fn stack(&self, profile: &mut Profile, frames: RArray) -> Result<(NodeId, State), Wrong> {
        let mut state = State::Running;
        let mut node = NodeId::ROOT;
        for index in (0..frames.len()).rev() {
            let pair = RArray::from_value(frames.entry(index as isize)?)
                .filter(|pair| pair.len() == 2)
                .ok_or(Wrong::Shape("a frame must be a path and a label"))?;
            let (path, name) = (self.text(pair, 0)?, self.text(pair, 1)?);
            if index == 0 {
                if let Some(synthetic) = State::from_synthetic_frame(&name, &path) {
                    state = synthetic;
                    break;
                }
                if frames.len() == 1 && DisplayFrame::is_placeholder(&name, &path) {
                    break;
                }
            }
            let strings = &mut profile.strings;
            let frame = profile.frames.intern_named(strings, &name, &path, 0);
            node = profile.tree.intern(Node {
                parent: node,
                frame,
                line: 0,
            });
        }
        Ok((node, state))
    }

    /// Bytes that are no UTF-8 become replacement characters.
    fn text(&self, pair: RArray, index: isize) -> Result<String, Wrong> {
        let string = RString::from_value(pair.entry(index)?)
            .ok_or(Wrong::Shape("a frame's path and label must be Strings"))?;
        Ok(text::content(string))
    }
}

/// The number in this index of a row, which must not be negative. One that a profile
/// can't hold is cut.
fn number(row: RArray, index: isize) -> Result<Option<i64>, Error> {
    let number = row.entry::<Option<u64>>(index)?;
    Ok(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
}
