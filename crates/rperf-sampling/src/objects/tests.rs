//! Sampling as a whole: what a program makes, and what the profile has of it.

use super::*;
use rperf_model::test_support::cpu_schema;
use rperf_model::{Node, Note, Profile, SampledBytes};
use rperf_vm::{LabelSet, ResolvedFrame, Stack};

const START: Moment = Moment {
    ns: 0,
    collections: 0,
};

/// A program that makes objects of three sizes at sites of their own.
struct Program {
    sampler: ObjectSampler,
    countdown: Countdown,
    now_ns: u64,
    made: usize,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut sampler = ObjectSampler::new(seed, 100, 0);
        let countdown = Countdown::stopped();
        countdown.set(Some(sampler.next_gap()));
        Self {
            sampler,
            countdown,
            now_ns: 0,
            made: 0,
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            ns: self.now_ns,
            collections: 0,
        }
    }

    fn make(&mut self, bytes: u64, site: FrameWord) {
        self.made += 1;
        if self.countdown.ends_within(bytes as i64) {
            let stack = Stack {
                frames: &[site],
                lines: &[],
                cut: false,
            };
            let object = SampledObject {
                object: 8 * (1 + self.made),
                bytes,
                class: site,
                thread: 1,
                stack: Some(stack),
                labels: None,
            };
            self.now_ns += 1000;
            let gap = self.sampler.add(object, self.moment(), self.now_ns);
            self.countdown.set(Some(gap));
        }
    }

    fn objects(&self) -> Vec<f64> {
        let sites = &self.sampler.sums(self.moment(), "").sites;
        let mut found: Vec<_> = sites.iter().map(|it| (it.0.class, it.1.objects)).collect();
        found.sort_unstable_by_key(|it| it.0);
        found.into_iter().map(|it| it.1).collect()
    }
}

/// In the mean over many sessions each site has all of its objects, in a program that makes one kind
/// of them in bursts.
#[test]
fn each_site_has_its_objects_in_the_mean() {
    const RUNS: u64 = 20;
    let (mut sums, mut squares) = ([0.0; 3], [0.0; 3]);
    let mut made = [0_u64; 3];
    for run in 0..RUNS {
        let mut program = Program::new(run);
        made = [0; 3];
        for burst in 0..200 {
            for _ in 0..2000 {
                program.make(40, 8);
                program.make(640, 16);
            }
            made[0] += 2000;
            made[1] += 2000;
            if burst % 2 == 0 {
                for _ in 0..6000 {
                    program.make(160, 24);
                }
                made[2] += 6000;
            }
        }
        for (site, objects) in program.objects().into_iter().enumerate() {
            let off = objects - made[site] as f64;
            sums[site] += off;
            squares[site] += off * off;
        }
    }
    for site in 0..3 {
        let sigma = f64::sqrt(squares[site]);
        assert!(
            sums[site].abs() < 5.0 * sigma,
            "site {site}: off by {} ({sigma})",
            sums[site]
        );
        let spread = f64::sqrt(squares[site] / RUNS as f64) / made[site] as f64;
        assert!(spread < 0.15, "site {site}: {spread}");
    }
}

#[test]
fn a_session_that_begins_anew_has_no_old_objects() {
    let mut program = Program::new(3);
    for _ in 0..100_000 {
        program.make(40, 8);
    }
    assert_eq!(program.objects().len(), 1);
    assert_eq!(program.sampler.new_words().count(), 2);
    program.sampler.clear();
    assert_eq!(program.objects().len(), 0);
    assert_eq!(program.sampler.words().count(), 0);
    for _ in 0..100_000 {
        program.make(40, 8);
    }
    assert_eq!(
        program.sampler.new_words().count(),
        2,
        "they are told once more"
    );
}

#[test]
fn a_profile_gets_stacks_with_callers_classes_and_labels() {
    let mut sampler = ObjectSampler::new(1, 5, 0);
    let labels = LabelSet::empty().with([("page".into(), Some("a".into()))]);
    let stack = Stack {
        frames: &[8, 16],
        lines: &[3, 7],
        cut: false,
    };
    for (class, labels) in [(64, Some(&labels)), (0, None)] {
        sampler.add(
            SampledObject {
                object: 8,
                bytes: 1 << 30,
                class,
                thread: 2,
                stack: Some(stack),
                labels,
            },
            START,
            10,
        );
    }
    let without_stack = SampledObject {
        object: 8,
        bytes: 1 << 30,
        class: 64,
        thread: 2,
        stack: None,
        labels: None,
    };
    sampler.add(without_stack, START, 10);
    let sums = sampler.sums(START, "");
    assert_eq!(sums.words(), [16, 8, 64]);
    let name = |name: &str| ResolvedFrame {
        name: name.into(),
        path: "app.rb".into(),
        first_line: 1,
    };
    let mut profile = Profile::new(cpu_schema());
    sums.add_to(
        &mut profile,
        &[name("caller"), name("work"), name("String")],
    );
    profile.check().expect("it hangs together");
    let stacks: Vec<Vec<_>> = profile
        .weights
        .iter()
        .map(|row| {
            let stack = profile.tree.stack(row.key.node);
            let frame = |node: &Node| profile.frames.get(node.frame).expect("a frame").name;
            stack
                .map(|node| (profile.strings.get(frame(node)), node.line))
                .collect()
        })
        .collect();
    let known = vec![("work", 3), ("caller", 7)];
    assert_eq!(stacks, [known.clone(), known, vec![("[truncated]", 0)]]);
    let rows: Vec<_> = profile
        .weights
        .iter()
        .map(|row| row.values.to_vec())
        .collect();
    assert_eq!(rows, [[0, 0, 1, 1 << 30]; 3]);
    let labels: Vec<Vec<_>> = profile
        .weights
        .iter()
        .map(|row| {
            let set = profile.label_sets.get(row.key.labels).iter();
            set.map(|(key, value)| (profile.strings.get(*key), profile.strings.get(*value)))
                .collect()
        })
        .collect();
    let expected = [
        vec![("%class", "(internal)")],
        vec![("page", "a"), ("%class", "String")],
        vec![],
    ];
    assert_eq!(labels, expected);
    let notes: Vec<_> = profile.meta.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [Note::SampledObjects(SampledBytes(64 << 10)).to_string()]
    );
}

#[test]
fn a_look_has_to_be_worth_its_time_and_without_one_no_site_gets_marking() {
    let marking = GcTimes {
        marking_ns: 1_000_000,
        marked_at_ns: u64::MAX,
        ..GcTimes::default()
    };
    let mut program = Program::new(3);
    program.sampler = ObjectSampler::new(3, 100, 0)
        .with_objects_in_use(3)
        .with_gc_costs();
    assert!(
        !program.sampler.wants_look_after(u64::MAX),
        "none is followed"
    );
    while program.sampler.held_count() == 0 {
        program.make(640, 8);
    }
    let least = (1 + LOOK_LIKE_SAMPLES) * LOOK_NS_PER_SAMPLE;
    assert!(!program.sampler.wants_look_after(least));
    assert!(program.sampler.wants_look_after(least + 1));
    let shared = |live, sampler: &mut ObjectSampler| {
        sampler.collected(marking);
        sampler.share_gc(live);
        let costs = sampler.sums(START, "").gc_costs.expect("they are shared");
        (costs.sites.len(), costs.of_none.long_lived_ns)
    };
    assert_eq!(shared(None, &mut program.sampler), (0, 1_000_000));
    // All objects that lived are those of the sample.
    assert_eq!(shared(Some(1), &mut program.sampler), (1, 1_000_000));
}
