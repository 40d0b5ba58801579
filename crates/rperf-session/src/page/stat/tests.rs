//! Tests of the page, against whole pages.

use super::*;
use crate::os::{DiskStats, OsStats};
use rperf_model::test_support::{cpu_schema, wall_schema};
use rperf_model::{LabelSetId, Node, NodeId, SamplingStats, Schema, StringId, Thread, WeightKey};

/// A profile of one second of one thread: a quarter of it at work, the rest blocked.
pub(crate) fn profile() -> Profile {
    let states = [(State::Running, 250), (State::GvlBlocked, 750)];
    profile_of(wall_schema(), &states)
}

/// A profile of the CPU time of one thread, all of it at work.
pub(crate) fn cpu_profile() -> Profile {
    profile_of(cpu_schema(), &[(State::Running, 240)])
}

/// A profile with a sample for each of these milliseconds.
fn profile_of(schema: Schema, milliseconds: &[(State, i64)]) -> Profile {
    let mut profile = Profile::new(schema);
    profile.meta.frequency = 1000;
    profile.meta.duration_ns = 1_000_000_000;
    profile.meta.counters = SamplingStats {
        trigger_count: 1001,
        sampling_count: 1000,
        sampling_time_ns: 2_600_000,
        detected_thread_count: 1,
        dropped_samples: 3,
        dropped_ns: 2_900_000,
        ..SamplingStats::default()
    };
    profile.threads.push(Thread {
        seq: 1,
        name: StringId(0),
    });
    let frame = profile
        .frames
        .intern_named(&mut profile.strings, "Object#work", "app.rb", 1);
    let node = profile.tree.intern(Node {
        parent: NodeId::ROOT,
        frame,
        line: 2,
    });
    for &(state, milliseconds) in milliseconds {
        let key = WeightKey {
            node,
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        let mut values = vec![0; profile.schema.len()];
        values[0] = milliseconds;
        values[1] = milliseconds * 1_000_000;
        profile.weights.push(key, &values);
    }
    profile
}

fn figures() -> Figures {
    Figures {
        command: "ruby app.rb".to_string(),
        report: false,
        lines: false,
        shows_idle: false,
        processes: 1,
        times: Some(CommandTimes {
            real_ns: 1_050_000_000,
            user_ns: 244_400_000,
            sys_ns: 32_000_000,
            before_ns: 45_600_000,
        }),
        process: ProcessStats {
            ruby: RubyStats {
                gc_count: 9,
                gc_minor: 6,
                gc_major: 3,
                gc_time_ms: 12,
                allocated_objects: 154_468,
                freed_objects: 66_596,
                yjit_methods: None,
                yjit_ratio: None,
            },
            os: OsStats {
                user_ns: 100_000_000,
                sys_ns: 10_000_000,
                max_rss_bytes: 25 << 20,
                voluntary_switches: 1000,
                involuntary_switches: 21,
                disk: Some(DiskStats {
                    read_bytes: 1 << 20,
                    write_bytes: 2 << 20,
                }),
            },
            memory: Some(MemoryStats {
                rss: 24 << 20,
                heap: 9 << 20,
                heap_free: 3 << 20,
                malloc: 5 << 20,
                files: 7 << 20,
                ..MemoryStats::default()
            }),
            profiled_ns: 0,
        },
    }
}

#[test]
fn the_page_is_laid_out_in_columns() {
    let expected = "
 Performance stats for 'ruby app.rb':

         244.4 ms          user
          32.0 ms          sys
       1,050.0 ms          real

          45.6 ms          before profiling (until Ruby had started)
         250.0 ms   25.0%  CPU execution
         750.0 ms   75.0%  [Ruby] GVL blocked (I/O, sleep)
           4.4 ms          after profiling (the profile's writing included)
          12.0 ms          [Ruby] GC time (9 collections: 6 minor, 3 major)
       154,468             [Ruby] allocated objects
        66,596             [Ruby] freed objects
            25 MB          [OS] peak memory (maxrss)
            24 MB          [OS] memory at its end (RSS) = Ruby heap 9 + free slots 3 + malloc 5 + files 7
         1,021             [OS] context switches (1,000 voluntary, 21 involuntary)
             3 MB          [OS] disk I/O (1 MB read, 2 MB write)

  1,000 samples / 1,001 triggers, 0.3% profiler overhead
  3 samples dropped (2.9 ms)
";
    assert_eq!(render(&profile(), &figures()), expected);
}

#[test]
fn cpu_mode_breaks_cpu_time_down() {
    let page = render(&cpu_profile(), &figures());
    assert!(page.contains("240.0 ms  100.0%  CPU execution"));
    assert!(!page.contains("profiling (") && !page.contains("GVL"));
}

#[test]
fn without_a_command_the_times_are_those_of_the_process() {
    let figures = Figures {
        times: None,
        ..figures()
    };
    let page = render(&profile(), &figures);
    for row in [
        "100.0 ms          user",
        "10.0 ms          sys",
        "1,000.0 ms          real",
    ] {
        assert!(page.contains(&format!(" {row}\n")), "{row}");
    }
    assert!(!page.contains("profiling ("));
}

#[test]
fn yjit_and_threads_are_shown_when_there_are_any() {
    let mut profile = profile();
    profile.meta.counters.detected_thread_count = 4;
    let mut figures = figures();
    figures.process.ruby.yjit_methods = Some(1234);
    let page = render(&profile, &figures);
    assert!(page.contains("1,234             [Ruby] methods and blocks compiled by YJIT"));
    assert!(page.contains("4             [Ruby] detected threads"));
    figures.process.ruby.yjit_ratio = Some(98.76);
    assert!(render(&profile, &figures).contains("98.8 %           [Ruby] executed by YJIT"));
}

#[test]
fn lost_time_without_a_sample_is_told() {
    let mut profile = profile();
    profile.meta.counters.dropped_samples = 0;
    assert!(render(&profile, &figures()).contains("0 samples dropped (2.9 ms)"));
    profile.meta.counters.dropped_ns = 0;
    assert!(!render(&profile, &figures()).contains("dropped"));
}

#[test]
fn several_processes_are_counted() {
    let figures = Figures {
        processes: 12,
        ..figures()
    };
    let page = render(&profile(), &figures);
    assert!(page.contains("12             [Ruby] processes; the figures are their sums"));
    assert!(page.contains("25 MB          [OS] peak memory of the largest process (maxrss)"));
    assert!(
        page.contains("24 MB          [OS] memory of the largest process at its end (RSS) = Ruby")
    );
    assert!(page.contains("0.3% profiler overhead"));
    let mut figures = figures;
    figures.process.profiled_ns = 10_000_000_000;
    assert!(render(&profile(), &figures).contains("0.0% profiler overhead"));
}

#[test]
fn the_report_adds_the_tables() {
    let figures = Figures {
        report: true,
        ..figures()
    };
    let page = render(&profile(), &figures);
    assert!(page.contains("Flat:") && page.contains("Object#work"));
    assert!(!page.contains("Lines:"));
    let figures = Figures {
        lines: true,
        ..figures
    };
    assert!(render(&profile(), &figures).contains("app.rb:2 (Object#work)"));
}
