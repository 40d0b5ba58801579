//! Graphs for tests, and a slow search.

use crate::graph::Sampled;
use crate::graph::{Graph, Root};
use crate::read::{self, ReadError};
use proptest::prelude::*;
use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::sampled::{Place, Sample, Session, Site};
use rperf_protocol::heap::write::{Object, Reference, Sink, Writer};

/// Objects of one byte with these references, and these roots.
pub fn of(targets: &[Vec<u32>], roots: &[u32]) -> Graph {
    let mut graph = Graph {
        starts: vec![0],
        texts: vec!["".into()],
        is_whole: true,
        ..Graph::default()
    };
    for targets in targets {
        graph.kinds.push(Kind(Kind::OBJECT));
        graph.classes.push(0);
        graph.bytes.push(1);
        graph.targets.extend_from_slice(targets);
        graph.starts.push(graph.targets.len() as u32);
    }
    graph.names = vec![0; graph.targets.len()];
    graph.roots = roots
        .iter()
        .map(|&target| Root {
            category: 0,
            target,
            variable: 0,
        })
        .collect();
    graph
}

/// Any small graph.
pub fn any_graph() -> impl Strategy<Value = Graph> {
    (1_u32..24).prop_flat_map(|count| {
        let targets = prop::collection::vec(prop::collection::vec(0..count, 0..4), count as usize);
        let roots = prop::collection::vec(0..count, 0..4);
        let bytes = prop::collection::vec(0_u64..1000, count as usize);
        (targets, roots, bytes, any_samples(count)).prop_map(|(targets, roots, bytes, sampled)| {
            Graph {
                bytes,
                sampled,
                ..of(&targets, &roots)
            }
        })
    })
}

/// Any small graph with classes and threads, and with names.
pub fn any_named_graph() -> impl Strategy<Value = Graph> {
    let texts = ["", "@a", "@b", "A", "Rperf", "Object", "TOPLEVEL_BINDING"];
    let named = texts.len() as u32;
    let kinds = [
        (6, Kind::OBJECT),
        (1, Kind::CLASS),
        (1, Kind::MODULE),
        (1, Kind::OBJECT | Kind::THREAD),
        (1, Kind::OBJECT | Kind::FIBER),
        (2, Kind::IMEMO),
    ];
    let kind =
        prop::strategy::Union::new_weighted(kinds.map(|(weight, it)| (weight, Just(it))).to_vec());
    let numbers = (any::<prop::sample::Index>(), 0..named, 0..named, kind);
    (any_graph(), prop::collection::vec(numbers, 100)).prop_map(move |(mut graph, numbers)| {
        graph.texts = texts.map(Box::from).to_vec();
        for (object, (class, name, _, kind)) in (0..graph.len()).zip(&numbers) {
            graph.kinds[object] = Kind(*kind);
            // Few of them have instances.
            graph.classes[object] = class.index(graph.len().min(4)) as u32;
            if *kind == Kind::IMEMO {
                graph.classes[object] = crate::graph::NONE;
            }
            if *name > 0 {
                graph.called.push((object as u32, *name));
            }
            let references = graph.starts[object] as usize..graph.starts[object + 1] as usize;
            let names = numbers.iter().cycle().skip(object).map(|it| it.2);
            // Those with names come first.
            let count = references.len() / 2;
            for (reference, name) in references.take(count).zip(names) {
                graph.names[reference] = name.max(1);
            }
        }
        for (root, (.., variable, _)) in graph.roots.iter_mut().zip(&numbers) {
            root.variable = *variable / 2;
        }
        graph
    })
}

/// What a session may know of so many objects.
fn any_samples(count: u32) -> impl Strategy<Value = Sampled> {
    let sample = (0..count, 0_u32..3, 1_u64..700, 1_u64..1 << 20, any::<u64>());
    let samples = prop::collection::vec(sample, 0..6);
    (samples, any::<u32>()).prop_map(|(samples, line)| Sampled {
        session: Some(Session {
            elapsed_ns: 7,
            bytes_per_sample: 64 << 10,
            lost_bytes: u64::MAX,
        }),
        sites: vec![
            Site::default(),
            Site {
                called_by: Place {
                    line,
                    ..Place::default()
                },
                ..Site::default()
            },
        ],
        samples: samples
            .into_iter()
            .map(|(object, site, bytes, mean, age_ns)| Sample {
                object,
                site,
                bytes,
                mean,
                age_ns,
                collections: 3,
            })
            .collect(),
    })
}

/// Which objects are reached from the roots if this one is taken out.
pub fn reached_without(graph: &Graph, out: Option<u32>) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut open: Vec<u32> = graph.roots.iter().map(|it| it.target).collect();
    while let Some(object) = open.pop() {
        if Some(object) != out && !reached[object as usize] {
            reached[object as usize] = true;
            open.extend(graph.references(object).map(|it| it.target));
        }
    }
    reached
}

fn read(input: &[u8]) -> Result<Graph, ReadError> {
    read::read(input, u64::MAX)
}

struct Bytes(Vec<u8>);

impl Sink for &mut Bytes {
    fn take(&mut self, bytes: &[u8]) -> bool {
        self.0.extend_from_slice(bytes);
        true
    }
}

/// The stream of a graph.
pub fn stream(graph: &Graph) -> Vec<u8> {
    let mut bytes = Bytes(Vec::new());
    let mut writer = Writer::begin(&mut bytes, graph.len() as u32);
    for text in graph.texts.iter().skip(1) {
        writer.name(text.as_bytes());
    }
    for object in 0..graph.len() as u32 {
        let references: Vec<_> = graph.references(object).collect();
        let (named, others): (Vec<Reference>, Vec<_>) =
            references.into_iter().partition(|it| it.name > 0);
        let others: Vec<_> = others.iter().map(|it| it.target).collect();
        let class = graph.classes[object as usize];
        assert!(writer.object(&Object {
            kind: graph.kinds[object as usize],
            class: (class != crate::graph::NONE).then_some(class),
            bytes: graph.bytes[object as usize],
            named: &named,
            others: &others,
        }));
    }
    assert!(writer.end_objects());
    if let Some(session) = &graph.sampled.session {
        writer.session(session, graph.sampled.samples.len() as u64);
    }
    for site in &graph.sampled.sites {
        assert!(writer.site(site));
    }
    for sample in &graph.sampled.samples {
        assert!(writer.sample(sample));
    }
    for root in &graph.roots {
        writer.root(root.category, root.target, root.variable);
    }
    for &(object, name) in &graph.called {
        writer.called(object, name);
    }
    assert!(writer.begin_globals());
    assert!(writer.end());
    bytes.0
}

proptest! {
    #[test]
    fn what_is_written_is_read(graph in any_graph()) {
        let bytes = stream(&graph);
        prop_assert_eq!(read(&bytes[..]).expect("a graph"), graph);
    }

    #[test]
    fn what_ends_early_or_is_damaged_is_told(graph in any_graph(), cut: prop::sample::Index, byte: u8) {
        let bytes = stream(&graph);
        let cut = cut.index(bytes.len());
        match read(&bytes[..cut]) {
            Ok(part) => {
                // It lacks nothing but global variables, of which it has none.
                let whole = Graph { is_whole: false, ..graph };
                prop_assert_eq!(part, whole);
            }
            Err(error) => prop_assert!(matches!(error, ReadError::Short), "{error}"),
        }
        // Whatever else it is, its numbers can be used.
        let mut damaged = bytes;
        damaged[cut] = byte;
        if let Ok(graph) = read(&damaged[..]) {
            let asked = crate::answer::Asked {
                tree: true,
                ..Default::default()
            };
            crate::answer::of(&graph, crate::file::HeapFacts::default(), asked);
        }
    }

    #[test]
    fn nothing_that_is_sent_takes_memory_out_of_proportion(bytes: Vec<u8>) {
        let sent = [&rperf_protocol::heap::tags::MAGIC[..], &bytes].concat();
        if let Ok(graph) = read(&sent[..]) {
            prop_assert!(graph.targets.len() <= sent.len());
        }
    }
}

#[test]
fn numbers_beyond_what_there_is_are_refused() {
    let read = |rest: &[u8]| read(&[&rperf_protocol::heap::tags::MAGIC[..], rest].concat()[..]);
    let is_damaged = |rest: &[u8]| matches!(read(rest), Err(ReadError::Damaged));
    // 64 M objects and one more.
    assert!(matches!(
        read(&[0x81, 0x80, 0x80, 0x20]),
        Err(ReadError::TooLarge)
    ));
    // A reference to the second of one object; one before the first; a class; a name; too long a number.
    assert!(is_damaged(&[1, 2, 1, 0, 1, 0, 1, 2]));
    assert!(is_damaged(&[1, 2, 1, 0, 1, 0, 1, 1]));
    assert!(is_damaged(&[1, 2, 1, 2, 1, 0, 0]));
    assert!(is_damaged(&[1, 2, 1, 0, 1, 1, 0, 1, 0]));
    assert!(is_damaged(&[0xff; 12]));
    // More references than are read, and as many objects as it didn't say.
    let many = [1, 2, 1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(matches!(read(&many), Err(ReadError::TooLarge)));
    assert!(is_damaged(&[0, 2, 1, 0, 1, 0, 0]));
    // One object; then a sample of a second one, of a site that there isn't, of no bytes, with no gap, and a
    // site whose line has more than 32 bits. The last one is as it should be.
    let with = |rest: &[u8]| [&[1, 2, 1, 0, 1, 0, 0, 6][..], rest, &[10, 5, 0]].concat();
    assert!(is_damaged(&with(&[9, 1, 0, 40, 99, 0, 0])));
    assert!(is_damaged(&with(&[9, 0, 1, 40, 99, 0, 0])));
    assert!(is_damaged(&with(&[9, 0, 0, 0, 99, 0, 0])));
    assert!(is_damaged(&with(&[9, 0, 0, 40, 0, 0, 0])));
    assert!(is_damaged(&with(&[
        8, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0, 0
    ])));
    assert!(is_damaged(&with(&[8, 0, 1, 1, 0, 0, 0, 0])));
    // More samples than the session has, fewer, and a second session.
    let site = [8, 0, 0, 0, 0, 0, 0, 0];
    let sample = [9, 0, 1, 40, 99, 0, 0];
    let sent = |parts: &[&[u8]]| with(&parts.concat());
    assert!(is_damaged(&sent(&[&site, &sample])));
    assert!(is_damaged(&sent(&[&[7, 9, 9, 0, 2], &site, &sample])));
    assert!(is_damaged(&sent(&[&[7, 9, 9, 0, 0], &[7, 9, 9, 0, 0]])));
    assert!(read(&sent(&[&[7, 9, 9, 0, 1], &site, &sample])).is_ok());
    assert!(matches!(
        super::read::read(&b"rpheap1\n"[..], u64::MAX),
        Err(ReadError::Other)
    ));
}

#[test]
fn a_stream_that_is_cut_before_its_global_variables_is_no_graph() {
    let graph = of(&[vec![1], vec![]], &[0]);
    let bytes = stream(&graph);
    let globals = bytes.len() - 3;
    assert_eq!(bytes[globals], rperf_protocol::heap::tags::GLOBALS);
    for cut in 0..=globals {
        let read = read(&bytes[..cut]);
        assert!(matches!(read, Err(ReadError::Short)), "{cut}: {read:?}");
    }
    for cut in globals + 1..bytes.len() {
        let graph = read(&bytes[..cut]).expect("a graph");
        assert!(!graph.is_whole && graph.roots.len() == 1);
    }
    // Without that mark nothing says that all else has come.
    let mut unmarked = bytes;
    unmarked.remove(globals);
    assert!(matches!(read(&unmarked), Err(ReadError::Damaged)));
}

#[test]
fn what_there_is_no_memory_for_is_refused() {
    let bytes = stream(&of(&[vec![1, 1], vec![0]], &[0]));
    let read = |memory| read::read(&bytes[..], memory);
    assert!(read(1000).is_ok());
    assert!(matches!(read(319), Err(ReadError::NoMemory)), "objects");
    assert!(matches!(read(320), Err(ReadError::NoMemory)), "references");
    // Before any has come.
    let many = [
        &rperf_protocol::heap::tags::MAGIC[..],
        &[0x80, 0x80, 0x80, 0x20],
    ]
    .concat();
    let many = read::read(&many[..], 1 << 30);
    assert!(matches!(many, Err(ReadError::NoMemory)));
}
