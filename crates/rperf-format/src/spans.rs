//! The time line of long calls as a Chrome trace in JSON, which Perfetto and `chrome://tracing`
//! show: each fiber is a track, and calls are nested slices on it. Called by `format::write`; any
//! thread.

use crate::FormatError;
use rperf_model::{Profile, Span, TimeLine};
use rperf_report::numbers::grouped;
use rperf_report::one_line::{function_name, one_line, without_end};
use rperf_report::thread_name;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Writes the time lines of `profile`, one event in a line.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let lines = || profile.time_lines.iter().filter(|it| !it.spans.is_empty());
    let start_ns = lines().map(|line| line.start_time_ns).min().unwrap_or(0);
    write!(output, "{{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
    write!(output, "{},\"traceEvents\":[", other_data(profile))?;
    let threads = profile.threads.iter();
    let threads = threads.map(|it| (it.seq, one_line(profile.strings.get(it.name))));
    let threads: BTreeMap<u32, Cow<'_, str>> = threads.collect();
    let mut separator = "\n";
    let mut numbers = BTreeMap::new();
    for line in lines() {
        let tracks = Tracks::of(line, numbers.entry(line.process).or_default());
        for event in tracks.names(line, &threads) {
            write!(output, "{separator}{event}")?;
            separator = ",\n";
        }
        let names: Vec<String> = line.names.iter().map(|name| shown(name)).collect();
        let shift_ns = line.start_time_ns - start_ns;
        for span in &line.spans {
            let name = Value::from(names[span.name as usize].as_str());
            let track = tracks.number(span);
            let (begin, took) = (
                micros(span.start_ns.saturating_add(shift_ns)),
                micros(span.duration_ns),
            );
            let process = line.process;
            write!(
                output,
                "{separator}{{\"ph\":\"X\",\"cat\":\"call\",\"name\":{name},\"pid\":{process},\
                 \"tid\":{track},\"ts\":{begin},\"dur\":{took}"
            )?;
            if span.is_open {
                write!(output, ",\"args\":{{\"open at the end\":true}}")?;
            }
            write!(output, "}}")?;
        }
    }
    writeln!(output, "\n]}}")?;
    Ok(())
}

/// What the time lines have and lack.
fn other_data(profile: &Profile) -> Value {
    let mut about = serde_json::Map::new();
    for line in &profile.time_lines {
        let calls = grouped(line.spans.len() as u64);
        let least = micros(line.least_ns);
        let mut text = format!("{calls} calls of at least {least} µs");
        if line.left_out > 0 {
            let left_out = grouped(line.left_out);
            text += &format!(", without the {left_out} shortest of them, which found no room");
        }
        let process = format!("process {}", line.process);
        let further = (2..).map(|number| format!("{process} ({number})"));
        let mut names = std::iter::once(process.clone()).chain(further);
        let name = names.find(|name| !about.contains_key(name));
        about.insert(name.unwrap_or_default(), text.into());
    }
    let creator = format!("rperf {}", env!("CARGO_PKG_VERSION"));
    about.insert("creator".into(), creator.into());
    Value::Object(about)
}

/// The tracks of a time line: its fibers, numbered by their threads. A process that has several
/// time lines, such as those of snapshots, has other tracks in each: their calls may overlap.
struct Tracks {
    numbers: BTreeMap<(u32, u32), usize>,
}

impl Tracks {
    /// `last`: the process has so many tracks already.
    fn of(line: &TimeLine, last: &mut usize) -> Self {
        let fibers = line.spans.iter().map(|span| (span.thread, span.fiber));
        let fibers: BTreeSet<(u32, u32)> = fibers.collect();
        let numbers = *last + 1..;
        *last += fibers.len();
        Self {
            numbers: fibers.into_iter().zip(numbers).collect(),
        }
    }

    fn number(&self, span: &Span) -> usize {
        self.numbers[&(span.thread, span.fiber)]
    }

    /// The events that give the process and its tracks their names. `threads` have those of threads,
    /// which may be empty.
    fn names(&self, line: &TimeLine, threads: &BTreeMap<u32, Cow<'_, str>>) -> Vec<Value> {
        let process = line.process;
        let program = match &*one_line(&line.program) {
            "" => "ruby".to_owned(),
            program => program.to_owned(),
        };
        let event = |kind: &str, track: usize, name: String| json!({"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}});
        let mut events = vec![event("process_name", 0, program)];
        for (&(thread, fiber), &track) in &self.numbers {
            let name = threads.get(&thread).map_or("", |name| name);
            let thread = thread_name(thread, name);
            let name = match fiber {
                0 => thread,
                fiber => format!("{thread}, fiber {fiber}"),
            };
            events.push(event("thread_name", track, name));
        }
        events
    }
}

fn shown(name: &str) -> String {
    function_name(&without_end(name)).into_owned()
}

/// The time as the format has it: in µs, with the ns behind the point.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Thread;
    use rperf_model::test_support::wall_schema;

    fn text(profile: &Profile) -> Value {
        let mut output = Vec::new();
        write(profile, &mut output).expect("memory takes everything");
        serde_json::from_slice(&output).expect("JSON")
    }

    #[test]
    fn calls_are_slices_on_the_tracks_of_their_fibers() {
        let mut profile = Profile::new(wall_schema());
        let name = profile.strings.intern("main");
        profile.threads.push(Thread { seq: 1, name });
        let span = |name, fiber, start_ns, is_open| Span {
            name,
            thread: 1,
            fiber,
            start_ns,
            duration_ns: 2_500_000,
            is_open,
        };
        for (process, start_time_ns) in [(7, 1_000_000), (8, 3_000_123)] {
            profile.time_lines.push(TimeLine {
                process,
                program: "app.rb".into(),
                start_time_ns,
                least_ns: 1_000_000,
                left_out: 3,
                names: vec!["Order#\"total\"\n".into(), String::new()],
                spans: vec![span(0, 0, 1_234, false), span(1, 5, 2_000, true)],
            });
        }
        let json = text(&profile);
        let events = json["traceEvents"].as_array().expect("events");
        assert_eq!(events.len(), 2 * (1 + 2 + 2));
        assert_eq!(
            (&events[1]["args"]["name"], &events[2]["args"]["name"]),
            (&json!("thread 1: main"), &json!("thread 1: main, fiber 5"))
        );
        let slice = &events[3];
        assert_eq!(
            *slice,
            json!({
                "ph": "X", "cat": "call", "name": "Order#\"total\" ", "pid": 7, "tid": 1,
                "ts": 1.234, "dur": 2500.0
            })
        );
        assert_eq!(events[8]["ts"], json!(2001.357));
        assert_eq!(events[9]["args"]["open at the end"], json!(true));
        let about = json["otherData"]["process 7"].as_str().expect("text");
        assert_eq!(
            about,
            "2 calls of at least 1000.000 µs, without the 3 shortest of them, which found no room"
        );
    }

    #[test]
    fn time_lines_of_one_process_have_tracks_of_their_own_and_none_hides_what_another_lacks() {
        let mut profile = Profile::new(wall_schema());
        for left_out in [0, 4] {
            let span = Span {
                name: 0,
                thread: 1,
                fiber: 0,
                start_ns: 0,
                duration_ns: 1_000,
                is_open: false,
            };
            profile.time_lines.push(TimeLine {
                process: 7,
                left_out,
                names: vec!["Order#total".into()],
                spans: vec![span],
                ..TimeLine::default()
            });
        }
        let json = text(&profile);
        let events = json["traceEvents"].as_array().expect("events");
        let calls = events.iter().filter(|event| event["ph"] == "X");
        let tracks: Vec<_> = calls.map(|event| (&event["pid"], &event["tid"])).collect();
        let number = |number: u64| json!(number);
        assert_eq!(tracks, [(&number(7), &number(1)), (&number(7), &number(2))]);
        let about = &json["otherData"];
        assert!(!about["process 7"].to_string().contains("without"));
        assert!(
            about["process 7 (2)"]
                .to_string()
                .contains("without the 4 ")
        );
    }

    #[test]
    fn a_profile_without_time_line_makes_an_empty_one() {
        let json = text(&Profile::new(wall_schema()));
        assert_eq!(json["traceEvents"], json!([]));
    }
}
