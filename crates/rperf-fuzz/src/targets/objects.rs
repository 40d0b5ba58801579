//! Graphs of objects, as the copy of a program sends them.

use rperf_heap::answer::{self, Asked};
use rperf_heap::file::{HeapFacts, HeapFile};
use rperf_heap::read::read;
use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::sampled::{Place, Sample, Session, Site};
use rperf_protocol::heap::write::{Object, Reference, Sink, Writer};

struct Bytes<'a>(&'a mut Vec<u8>);

impl Sink for Bytes<'_> {
    fn take(&mut self, bytes: &[u8]) -> bool {
        self.0.extend_from_slice(bytes);
        true
    }
}

/// Two graphs: one of a class with instances, some of them sampled, and a ring without names.
pub fn graphs() -> Vec<Vec<u8>> {
    let mut graph = Vec::new();
    let mut writer = Writer::begin(Bytes(&mut graph), 4);
    let (name, variable) = (writer.name("Orderé".as_bytes()), writer.name(b"@items"));
    for (kind, named, others) in [
        (Kind::CLASS, &[(variable, 1)][..], &[3][..]),
        (Kind::OBJECT, &[(variable, 2)], &[0, 3]),
        (Kind::OBJECT, &[], &[0, 1]),
        (Kind::IMEMO, &[], &[2]),
    ] {
        let named = named
            .iter()
            .map(|&(name, target)| Reference { name, target });
        writer.object(&Object {
            kind: Kind(kind),
            class: (kind != Kind::IMEMO).then_some(0),
            bytes: 40,
            named: &named.collect::<Vec<_>>(),
            others,
        });
    }
    writer.end_objects();
    let session = Session {
        elapsed_ns: 9,
        bytes_per_sample: 64 << 10,
        lost_bytes: 3,
    };
    writer.session(&session, 3);
    let made_in = Place {
        method: name,
        path: variable,
        line: 41,
    };
    writer.site(&Site {
        made_in,
        called_by: made_in,
        endpoint: name,
    });
    for (object, site) in [(1, 1), (2, 0), (2, 1)] {
        writer.sample(&Sample {
            object,
            site,
            bytes: 40,
            mean: 64 << 10,
            age_ns: 7 << 30,
            collections: 3,
        });
    }
    writer.root(name, 0, 0);
    writer.root(name, 1, variable);
    writer.called(0, name);
    writer.end();
    let mut ring = Vec::new();
    let mut writer = Writer::begin(Bytes(&mut ring), 300);
    for object in 0..300 {
        writer.object(&Object {
            kind: Kind(Kind::OBJECT | if object % 7 == 0 { Kind::THREAD } else { 0 }),
            class: Some(object / 2),
            bytes: u64::from(object) << 20,
            named: &[],
            others: &[(object + 1) % 300, 0],
        });
    }
    writer.end_objects();
    let category = writer.name(b"vm");
    writer.root(category, 7, 0);
    writer.end();
    vec![graph, ring]
}

/// The input is such a graph, of which all is told; or a file in which it was kept.
pub fn read_objects(input: &[u8]) {
    if let Ok(graph) = read(input, u64::MAX) {
        let asked = Asked {
            class: Some("Orderé"),
            tree: true,
        };
        let file = answer::of(&graph, HeapFacts::default(), asked);
        let json = file.to_json();
        assert!(HeapFile::read(json.as_bytes()).is_ok());
    }
    let _ = HeapFile::read(input);
}
