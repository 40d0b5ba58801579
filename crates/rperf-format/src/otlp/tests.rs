//! What we send, read by the messages that others have generated from the published schema.

use super::*;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceRequest, ExportProfilesServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value::{IntValue, StringValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use rperf_model::test_support::RandomWalk;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::io::Read;

fn sent(profile: &Profile, attributes: &[(String, String)]) -> ExportProfilesServiceRequest {
    let mut last = 0;
    let id = || {
        last += 1;
        [last; 16]
    };
    let body = request(profile, attributes, id).expect("made");
    let mut plain = Vec::new();
    let read = GzDecoder::new(body.as_slice()).read_to_end(&mut plain);
    read.expect("gzip");
    let found = ExportProfilesServiceRequest::decode(plain.as_slice()).expect("a request");
    // Nothing is lost, so there is no field that the schema hasn't.
    assert_eq!(found.encoded_len(), plain.len());
    check(&found);
    found
}

/// The rules that the schema states in words.
fn check(request: &ExportProfilesServiceRequest) {
    let tables = request.dictionary.as_ref().expect("a dictionary");
    begins_with_zero(&tables.mapping_table);
    begins_with_zero(&tables.location_table);
    begins_with_zero(&tables.function_table);
    begins_with_zero(&tables.link_table);
    begins_with_zero(&tables.string_table);
    begins_with_zero(&tables.attribute_table);
    begins_with_zero(&tables.stack_table);
    let mut used = Used(tables, Default::default());
    let mut ids = HashSet::new();
    for profile in profiles(request) {
        let id = &profile.profile_id;
        assert!(id.len() == 16 && ids.insert(id.clone()), "{id:?}");
        assert!(profile.period > 0 && profile.time_unix_nano > 0);
        for value_type in [profile.sample_type, profile.period_type] {
            let value_type = value_type.expect("a type");
            used.text(value_type.type_strindex);
            used.text(value_type.unit_strindex);
        }
        let mut identities = HashSet::new();
        for sample in &profile.samples {
            used.stack(sample.stack_index);
            used.attributes(&sample.attribute_indices);
            assert!(sample.link_index == 0 && sample.timestamps_unix_nano.is_empty());
            assert_eq!(sample.values.len(), 1);
            assert!(identities.insert((sample.stack_index, &sample.attribute_indices)));
        }
    }
    // Each index is one that is there, and no entry but the first is there for nothing.
    let lens = [
        tables.stack_table.len(),
        tables.location_table.len(),
        tables.function_table.len(),
        tables.string_table.len(),
        tables.attribute_table.len(),
    ];
    assert_eq!(used.1.each_ref().map(|it| it.len() + 1), lens);
}

fn begins_with_zero<T: Default + Debug + PartialEq>(table: &[T]) {
    assert_eq!(table.first(), Some(&T::default()));
    let twice = |(index, entry): (usize, &T)| table[..index].contains(entry);
    // All of a short one, the begin of a long one.
    assert!(!table.iter().take(300).enumerate().any(twice));
}

/// The indexes that are used: of stacks, locations, functions, strings and attributes.
struct Used<'a>(&'a otlp::ProfilesDictionary, [HashSet<i32>; 5]);

impl Used<'_> {
    fn text(&mut self, index: i32) {
        assert!(!self.0.string_table[index as usize].is_empty());
        self.1[3].insert(index);
    }

    fn attributes(&mut self, indexes: &[i32]) {
        let mut keys = HashSet::new();
        for &index in indexes {
            let attribute = &self.0.attribute_table[index as usize];
            assert!(attribute.value.is_some() && keys.insert(attribute.key_strindex));
            self.text(attribute.key_strindex);
            self.1[4].insert(index);
        }
    }

    fn stack(&mut self, index: i32) {
        let tables = self.0;
        if index == 0 || !self.1[0].insert(index) {
            assert_ne!(index, 0);
            return;
        }
        for &index in &tables.stack_table[index as usize].location_indices {
            assert_ne!(index, 0);
            let location = &tables.location_table[index as usize];
            self.1[1].insert(index);
            self.attributes(&location.attribute_indices);
            assert_eq!((location.mapping_index, location.lines.len()), (0, 1));
            let function = location.lines[0].function_index;
            self.1[2].insert(function);
            let function = tables.function_table[function as usize];
            self.text(function.name_strindex);
            if function.filename_strindex != 0 {
                self.text(function.filename_strindex);
            }
        }
    }
}

fn profiles(request: &ExportProfilesServiceRequest) -> impl Iterator<Item = &otlp::Profile> {
    let scopes = request.resource_profiles.iter();
    let scopes = scopes.flat_map(|it| &it.scope_profiles);
    scopes.flat_map(|it| &it.profiles)
}

fn walk() -> Profile {
    let walk = RandomWalk {
        weights: 500,
        depth: 20,
        threads: 3,
        requests: 4,
    };
    let mut profile = walk.profile();
    profile.meta.start_time_ns = 1_700_000_000_000_000_000;
    profile.meta.frequency = 100;
    profile
}

fn texts(request: &ExportProfilesServiceRequest, profile: &otlp::Profile) -> [String; 2] {
    let texts = &request.dictionary.as_ref().expect("one").string_table;
    let value_type = profile.sample_type.expect("a type");
    [value_type.type_strindex, value_type.unit_strindex].map(|it| texts[it as usize].clone())
}

#[test]
fn it_has_the_whole_profile_by_the_published_schema() {
    let profile = walk();
    let service = [("service.name".to_string(), "shop".to_string())];
    let request = sent(&profile, &service);
    let sums = profiles(&request).map(|it| {
        let sum: i64 = it.samples.iter().flat_map(|it| &it.values).sum();
        (texts(&request, it), sum)
    });
    let sums: Vec<_> = sums.collect();
    let sum = |name: &str| -> i64 {
        let column = profile.schema.find(name).expect("a column");
        profile.weights.iter().map(|row| row.value(column)).sum()
    };
    let named = |name: &str| ([name.to_string(), "nanoseconds".to_string()], sum(name));
    assert_eq!(sums, [named("wall"), named("cpu")]);
    assert!(profiles(&request).all(|it| it.period == 10_000_000));
}

#[test]
fn each_process_is_a_resource_with_its_threads_and_labels() {
    let mut profile = walk();
    profile.label_all(&[("%pid", "7"), ("%process", "puma"), ("thread.id", "mine")]);
    let mut other = walk();
    other.label_all(&[("%pid", "8"), ("%process", "rake")]);
    profile.merge(&other).expect("merged");
    let service = [("service.name".to_string(), "shop".to_string())];
    let request = sent(&profile, &service);
    let resources = request.resource_profiles.iter().map(|it| {
        let attributes = &it.resource.as_ref().expect("one").attributes;
        let pairs = attributes.iter().map(|it| {
            let value = it.value.clone().and_then(|it| it.value).expect("a value");
            (it.key.as_str(), value)
        });
        pairs.collect::<BTreeMap<_, _>>()
    });
    let resources: Vec<_> = resources.collect();
    let expected = |pid, title: &str| {
        BTreeMap::from([
            ("service.name", StringValue("shop".into())),
            ("process.runtime.name", StringValue("ruby".into())),
            ("process.pid", IntValue(pid)),
            ("process.title", StringValue(title.into())),
        ])
    };
    assert_eq!(resources, [expected(7, "puma"), expected(8, "rake")]);
    let tables = request.dictionary.as_ref().expect("one");
    let attributes = tables.attribute_table.iter();
    let keys: HashSet<_> = attributes
        .map(|it| &*tables.string_table[it.key_strindex as usize])
        .collect();
    let all = ["thread.id", "label.thread.id", "profile.frame.type"];
    assert!(all.iter().all(|key| keys.contains(key)), "{keys:?}");
    assert!(!keys.contains("%pid") && !keys.contains("%process"));
}

#[test]
fn what_a_collector_says_is_understood() {
    let said = |rejected_profiles, error_message: &str| {
        let said = ExportProfilesPartialSuccess {
            rejected_profiles,
            error_message: error_message.into(),
        };
        let partial_success = Some(said);
        partial_success_of(ExportProfilesServiceResponse { partial_success })
    };
    assert_eq!(said(2, "too old"), Some((2, "too old".into())));
    assert_eq!(said(0, "a warning"), Some((0, "a warning".into())));
    assert_eq!(said(0, ""), None);
    assert_eq!(partial_success(b""), None);
    assert_eq!(partial_success(b"{}"), None);
    let status = b"\x08\x03\x12\x03odd";
    assert_eq!(refusal(status), Some("odd".into()));
    assert_eq!(refusal(b"<html>"), None);
}

fn partial_success_of(response: ExportProfilesServiceResponse) -> Option<(u64, String)> {
    partial_success(&response.encode_to_vec())
}
