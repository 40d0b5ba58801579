//! The reader of pprof profiles. It takes its input for hostile. Called by the command and the
//! extension for users' files, and for the profiles of a session's processes; any thread.

mod sample;
mod sample_labels;

use super::message::Message;
use super::meta;
use super::proto;
use super::stacks::{FrameLimits, Stacks};
use super::texts::Texts;
use super::value_types;
use super::{collections, latencies, ops, requests, suite, time_lines};
use crate::{FileKind, ReadError};
use flate2::read::MultiGzDecoder;
use prost::Message as _;
use rperf_model::{Profile, State, StringId, Thread, WeightKey, WeightTable};
use rustc_hash::FxHashSet;
use sample::Sample;
use sample_labels::LabelReader;
use std::collections::BTreeMap;
use std::io::{self, Read};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The thread of samples that tell none.
const ONLY_THREAD: u32 = 1;

/// Bytes that the name of a thread takes in a map and in the profile.
const THREAD_MEMORY: usize = 32;

/// How much a profile may have before it is refused.
struct Limits {
    /// Bytes, uncompressed.
    bytes: u64,
    /// Rows of each of its tables: strings, functions, locations and so on.
    rows: usize,
    /// Bytes that the profile takes in memory: its file can be a small part of that.
    memory: u64,
    /// Bytes of names and labels: whoever shows them makes copies.
    text: u64,
    frames: FrameLimits,
}

const LIMITS: Limits = Limits {
    bytes: 256 << 20,
    rows: 2 << 20,
    memory: 512 << 20,
    text: 64 << 20,
    frames: FrameLimits {
        all: 256 << 20,
        unshared: 128 << 20,
    },
};

/// For profiles that need no limits.
const NO_LIMITS: Limits = Limits {
    bytes: u64::MAX,
    rows: usize::MAX,
    memory: u64::MAX,
    text: u64::MAX,
    frames: FrameLimits {
        all: u64::MAX,
        unshared: u64::MAX,
    },
};

impl Limits {
    /// Refuses a profile in the making that holds too much.
    fn check(
        &self,
        profile: &Profile,
        rows: &WeightTable,
        threads: usize,
    ) -> Result<(), ReadError> {
        let memory = threads * THREAD_MEMORY
            + profile.strings.memory()
            + profile.frames.memory()
            + profile.tree.memory()
            + profile.label_sets.memory()
            + rows.memory();
        let text = profile.strings.text_len();
        for (found, limit, unit) in [
            (memory, self.memory, "bytes in memory"),
            (text, self.text, "bytes of names and labels"),
        ] {
            if found as u64 > limit {
                return Err(ReadError::TooLarge { limit, unit });
            }
        }
        Ok(())
    }
}

/// Reads a profile, gzip'd or plain, ours or another tool's, whatever it measures: all
/// its sample types become columns. The result passes [`Profile::check`].
///
/// Everything in our own profiles comes back except raw samples, threads without weights, and a
/// program without a name.
pub fn read(input: &mut dyn Read) -> Result<Profile, ReadError> {
    read_within(&LIMITS, input)
}

/// Reads a profile that a process of this user's has made for us, however large it
/// is: a long session with deep stacks has more than anybody else's file may have.
pub fn read_own(input: &mut dyn Read) -> Result<Profile, ReadError> {
    read_within(&NO_LIMITS, input)
}

fn read_within(limits: &Limits, input: &mut dyn Read) -> Result<Profile, ReadError> {
    let bytes = read_bytes(limits, input)?;
    // Only of a file that is no profile: what begins like a text can be one.
    decoded(limits, &bytes)
        .map_err(|error| FileKind::of(&bytes).map_or(error, ReadError::OtherKind))
}

fn decoded(limits: &Limits, bytes: &[u8]) -> Result<Profile, ReadError> {
    let message = Message::of(bytes, limits.rows)?;
    let mut texts = Texts::new(&message.texts, limits.text)?;
    let mut profile = Profile::new(value_types::schema(&message, &texts)?);
    read_meta(&message, &texts, &mut profile)?;
    let mut stacks = Stacks::new(&message, &mut texts, &mut profile, limits.frames)?;
    read_samples(&message, &mut texts, &mut stacks, &mut profile, limits)?;
    let lines = message
        .time_lines
        .iter()
        .map(|line| time_lines::decoded(line));
    profile.time_lines = lines.collect::<Result<_, _>>()?;
    let methods = message
        .latencies
        .iter()
        .map(|method| latencies::decoded(method));
    profile.latencies = methods.collect::<Result<_, _>>()?;
    profile.suite = suite::decoded(&message.suite)?;
    profile.ops = ops::decoded(&message.ops)?;
    profile.collections = collections::decoded(&message.collections)?;
    let endpoints = message.requests.iter().map(|it| requests::decoded(it));
    profile.requests = endpoints.collect::<Result<_, _>>()?;
    Ok(profile)
}

fn read_bytes(limits: &Limits, input: &mut dyn Read) -> Result<Vec<u8>, ReadError> {
    let mut magic = Vec::new();
    Read::take(&mut *input, 2).read_to_end(&mut magic)?;
    let is_gzip = magic == GZIP_MAGIC;
    let whole = io::Cursor::new(magic).chain(input);
    let mut bytes = Vec::new();
    // One byte over the limit tells a profile that is too large from one that fits.
    let enough = limits.bytes.saturating_add(1);
    if is_gzip {
        let decoder = MultiGzDecoder::new(whole);
        decoder.take(enough).read_to_end(&mut bytes)?;
    } else {
        whole.take(enough).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > limits.bytes {
        let too_large = ReadError::TooLarge {
            limit: limits.bytes,
            unit: "bytes",
        };
        return Err(FileKind::of(&bytes).map_or(too_large, ReadError::OtherKind));
    }
    Ok(bytes)
}

fn read_meta(
    message: &Message<'_>,
    texts: &Texts<'_>,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    let meta = &mut profile.meta;
    meta.start_time_ns = u64::try_from(message.time_nanos).unwrap_or(0);
    meta.duration_ns = u64::try_from(message.duration_nanos).unwrap_or(0);
    let period = value_types::read_period(message, texts, meta)?;
    if let Some(&mapping) = message.mappings.first() {
        let mapping = proto::Mapping::decode(mapping)?;
        meta.program = texts.get(mapping.filename)?.into_owned();
    }
    // Each string once, lest many rows name one that is long.
    let mut seen = FxHashSet::default();
    let mut comments = Vec::new();
    for &comment in message.comments.iter().filter(|&&row| seen.insert(row)) {
        comments.push(texts.get(comment)?.into_owned());
    }
    meta::restore(comments, meta);
    // A frequency says the same.
    if period != value_types::period(meta, &profile.schema) {
        meta.period = period;
    }
    Ok(())
}

fn read_samples(
    message: &Message<'_>,
    texts: &mut Texts<'_>,
    stacks: &mut Stacks,
    profile: &mut Profile,
    limits: &Limits,
) -> Result<(), ReadError> {
    let width = profile.schema.len();
    let mut labels = LabelReader::new(texts);
    let mut names: BTreeMap<u32, StringId> = BTreeMap::new();
    let mut weights = WeightTable::new(width);
    let mut sample = Sample::default();
    for bytes in message.samples() {
        sample.read(bytes?)?;
        let found = sample.values.len();
        if found != width {
            return Err(ReadError::damaged(format!(
                "a sample has {found} values, but there are {width} sample types"
            )));
        }
        let read = labels.read(&sample.labels, texts, &mut profile.strings)?;
        let thread = read.thread.unwrap_or(ONLY_THREAD);
        let (node, leaf_state) = stacks.node(&sample.location_ids, thread, profile)?;
        let state = leaf_state.or(read.state).unwrap_or(State::Running);
        let name = names.entry(thread).or_default();
        if *name == StringId::default() {
            *name = read.thread_name.unwrap_or_default();
        }
        let key = WeightKey {
            node,
            thread,
            labels: profile.label_sets.intern(read.user),
            state,
        };
        weights.add(key, &sample.values);
        limits.check(profile, &weights, names.len())?;
    }
    // Thread 0 has a row only if there is a name to keep.
    profile.threads = names
        .into_iter()
        .filter(|&(seq, name)| seq > 0 || name != StringId::default())
        .map(|(seq, name)| Thread { seq, name })
        .collect();
    profile.weights = weights.into_weights();
    Ok(())
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod tests;
