//! A profile as OTLP has it: the body of a request to a collector of OpenTelemetry, and what its
//! answers say. Used by the command and the extension; any thread.
//!
//! OTLP's profiles are alpha: this is the schema of version 1.10. Each process is a resource of its
//! own, each column a profile of its own; states are leaf frames, as everywhere.

mod message;
mod tables;
#[cfg(test)]
mod tests;

use crate::FormatError;
use flate2::Compression;
use flate2::write::GzEncoder;
use message::{
    AnyValue, KeyValue, OneProfile, Request, Resource, ResourceProfiles, Response, Sample, Scope,
    ScopeProfiles, Status, Value,
};
use prost::Message;
use rperf_model::label_keys::{PID, PROCESS, set_apart};
use rperf_model::{Column, LabelSetId, Period, Profile, ValueType};
use rustc_hash::FxHashMap;
use std::io::Write;
use tables::Tables;

/// Where it goes to.
pub const PATH: &str = "/v1development/profiles";

/// What the body is.
pub const CONTENT_TYPE: &str = "application/x-protobuf";
/// How it is packed.
pub const CONTENT_ENCODING: &str = "gzip";

/// The version of the schema, as the User-Agent has it.
pub const SCHEMA: &str = "opentelemetry-proto/1.10";

/// What a thread is called, by the conventions of OpenTelemetry.
const THREAD_ID: &str = "thread.id";
const THREAD_NAME: &str = "thread.name";

/// The body of a request. `attributes` are those of the program, such as `service.name`; its
/// processes are told apart by the label `%pid`. `id` makes up random ids.
pub fn request(
    profile: &Profile,
    attributes: &[(String, String)],
    id: impl FnMut() -> [u8; 16],
) -> Result<Vec<u8>, FormatError> {
    let message = message(profile, attributes, id);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&message.encode_to_vec())?;
    Ok(encoder.finish()?)
}

/// What a collector says that has taken a request, but not all of it: how many profiles it has
/// refused, and why. None may be, and there is a warning only.
pub fn partial_success(body: &[u8]) -> Option<(u64, String)> {
    let said = Response::decode(body).ok()?.partial_success?;
    let rejected = u64::try_from(said.rejected_profiles).unwrap_or(0);
    let is_nothing = rejected == 0 && said.error_message.is_empty();
    (!is_nothing).then_some((rejected, said.error_message))
}

/// Why a collector refuses a request, by the body of its answer.
pub fn refusal(body: &[u8]) -> Option<String> {
    let message = Status::decode(body).ok()?.message;
    (!message.is_empty()).then_some(message)
}

fn message(
    profile: &Profile,
    attributes: &[(String, String)],
    mut id: impl FnMut() -> [u8; 16],
) -> Request {
    let mut tables = Tables::new(profile);
    let processes = Processes::of(profile, &mut tables);
    let mut resource_profiles = Vec::new();
    for process in &processes.all {
        let profiles = columns(profile).filter_map(|column| {
            let found = one_profile(profile, process, column, &mut tables)?;
            let profile_id = id().to_vec();
            Some(OneProfile {
                profile_id,
                ..found
            })
        });
        resource_profiles.push(ResourceProfiles {
            resource: Some(process.resource(attributes)),
            scope_profiles: vec![ScopeProfiles {
                profiles: profiles.collect(),
                scope: Some(Scope {
                    name: "rperf".into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                }),
            }],
        });
    }
    Request {
        resource_profiles,
        dictionary: Some(tables.into_dictionary()),
    }
}

/// The default one first. How many samples there were tells nobody more than their times.
fn columns(profile: &Profile) -> impl Iterator<Item = Column> {
    let (default, samples) = (profile.schema.default_column(), profile.schema.samples());
    let others = profile.schema.columns();
    let others = others.filter(move |&column| column != default && Some(column) != samples);
    [default].into_iter().chain(others)
}

fn one_profile(
    profile: &Profile,
    process: &Process,
    column: Column,
    tables: &mut Tables<'_>,
) -> Option<OneProfile> {
    let rows = process.rows.iter();
    let rows = rows.filter(|row| row.values[column.0] != 0);
    let samples: Vec<_> = rows
        .map(|row| Sample {
            stack: row.stack,
            attributes: row.attributes.clone(),
            values: vec![row.values[column.0]],
        })
        .collect();
    if samples.is_empty() && column != profile.schema.default_column() {
        return None;
    }
    let meta = &profile.meta;
    let value_type = profile.schema.value_type(column)?;
    let period = period(profile, value_type);
    Some(OneProfile {
        sample_type: Some(tables.value_type(value_type)),
        samples,
        time_unix_nano: meta.start_time_ns,
        duration_nano: meta.duration_ns,
        period_type: Some(tables.value_type(&period.value_type)),
        period: period.value,
        profile_id: Vec::new(),
    })
}

/// Collectors tell the kind of a profile by it, and refuse 0.
fn period(profile: &Profile, value_type: &ValueType) -> Period {
    let found = profile.meta.period.clone();
    found.unwrap_or_else(|| {
        let frequency = i64::from(profile.meta.frequency.max(1));
        let value = match &*value_type.unit {
            "nanoseconds" => 1_000_000_000 / frequency,
            _ => 1,
        };
        Period {
            value_type: value_type.clone(),
            value,
        }
    })
}

/// The processes of a profile.
#[derive(Default)]
struct Processes {
    all: Vec<Process>,
    /// Where each is, by `%pid`.
    by_pid: FxHashMap<String, usize>,
}

#[derive(Default)]
struct Process {
    pid: String,
    title: String,
    /// No two have the same stack and attributes.
    rows: Vec<Row>,
    by_identity: FxHashMap<(i32, Vec<i32>), usize>,
}

struct Row {
    stack: i32,
    attributes: Vec<i32>,
    values: Vec<i64>,
}

impl Processes {
    fn of(profile: &Profile, tables: &mut Tables<'_>) -> Self {
        let names = profile.threads.iter();
        let names = names.map(|thread| (thread.seq, profile.strings.get(thread.name)));
        let names: FxHashMap<u32, &str> = names.collect();
        let mut places: FxHashMap<(u32, LabelSetId), (usize, Vec<i32>)> = FxHashMap::default();
        let mut processes = Processes::default();
        for weight in profile.weights.iter() {
            let key = weight.key;
            let place = places.entry((key.thread, key.labels)).or_insert_with(|| {
                let name = names.get(&key.thread).copied().unwrap_or_default();
                let attributes = attributes(profile, key.thread, name, key.labels, tables);
                (processes.place(profile, key.labels), attributes)
            });
            let stack = tables.stack(key);
            processes.all[place.0].add(stack, &place.1, weight.values);
        }
        processes
    }

    fn place(&mut self, profile: &Profile, labels: LabelSetId) -> usize {
        let value = |key: &str| {
            let mut pairs = profile.label_sets.get(labels).iter();
            let pair = pairs.find(|pair| profile.strings.get(pair.0) == key);
            pair.map_or("", |pair| profile.strings.get(pair.1))
        };
        let pid = value(PID);
        *self.by_pid.entry(pid.into()).or_insert_with(|| {
            self.all.push(Process {
                pid: pid.into(),
                title: value(PROCESS).into(),
                ..Process::default()
            });
            self.all.len() - 1
        })
    }
}

/// The attributes of a sample: its thread, and its labels except those of its process.
fn attributes(
    profile: &Profile,
    thread: u32,
    name: &str,
    labels: LabelSetId,
    tables: &mut Tables<'_>,
) -> Vec<i32> {
    let mut found = vec![tables.attribute(THREAD_ID, Value::Number(thread.into()))];
    if !name.is_empty() {
        found.push(tables.attribute(THREAD_NAME, Value::Text(name.into())));
    }
    let is_ours = |key: &str| key.is_empty() || key == THREAD_ID || key == THREAD_NAME;
    for &(key, value) in profile.label_sets.get(labels) {
        let key = profile.strings.get(key);
        if key != PID && key != PROCESS {
            let value = Value::Text(profile.strings.get(value).into());
            found.push(tables.attribute(&set_apart(key, is_ours), value));
        }
    }
    found
}

impl Process {
    fn add(&mut self, stack: i32, attributes: &[i32], values: &[i64]) {
        let next = self.rows.len();
        let identity = (stack, attributes.to_vec());
        let place = *self.by_identity.entry(identity).or_insert(next);
        if place == next {
            self.rows.push(Row {
                stack,
                attributes: attributes.to_vec(),
                values: values.to_vec(),
            });
            return;
        }
        for (sum, value) in self.rows[place].values.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
    }

    fn resource(&self, attributes: &[(String, String)]) -> Resource {
        let text = |text: &str| Value::Text(text.into());
        let own = attributes.iter();
        let mut pairs: Vec<_> = own.map(|(key, value)| (&**key, text(value))).collect();
        let mut add = |key, value| {
            if pairs.iter().all(|pair| pair.0 != key) {
                pairs.push((key, value));
            }
        };
        add("process.runtime.name", text("ruby"));
        if let Ok(pid) = self.pid.parse() {
            add("process.pid", Value::Number(pid));
        }
        if !self.title.is_empty() {
            add("process.title", text(&self.title));
        }
        let attributes = pairs.into_iter().map(|(key, value)| KeyValue {
            key: key.into(),
            value: Some(AnyValue { value: Some(value) }),
        });
        Resource {
            attributes: attributes.collect(),
        }
    }
}
