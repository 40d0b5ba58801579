//! The stacks of all threads: what the VM says, and what the kernel adds to it. Answers are made on
//! a Ruby thread, and become JSON on the port's.

use super::fibers::Fibers;
use super::frames::{FrameName, Places};
use super::stack_list::Stack;
use super::waits::{NativeThread, Seen, native_threads};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Pairs of key and value.
pub type LabelTexts = Arc<[(Box<str>, Box<str>)]>;

/// A Ruby thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStack {
    /// Its name; empty without one.
    pub name: String,
    /// What Thread#status says.
    pub status: String,
    /// The number of its native thread, if it has one now.
    pub tid: Option<i32>,
    /// Whether it had the GVL when the question came to the VM.
    pub has_gvl: bool,
    /// How long it has been without the GVL, if a session runs and knows that.
    pub waiting: Option<Waiting>,
    /// Its number in the profile of the session that runs, if that knows it.
    pub profile_thread: Option<u32>,
    /// The labels that it has there.
    pub labels: LabelTexts,
    /// Which of the stacks it has; `None` if that was left out.
    pub stack: Option<u32>,
}

/// How long a thread has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The time that it has waited, in ns, as far as that was seen.
    pub ns: u64,
    /// Whether it waited before the session began, too.
    pub or_longer: bool,
}

/// What the VM knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The threads.
    pub threads: Vec<ThreadStack>,
    /// The different stacks they have.
    pub stacks: Vec<Stack>,
    /// How many threads' stacks aren't among these: there were too many frames.
    pub left_out: u32,
    /// The names of their frames.
    pub names: Vec<FrameName>,
    /// How many Ractors there are whose threads aren't among them.
    pub ractors: u32,
    /// The fibers, if they are asked for.
    pub fibers: Option<Fibers>,
}

/// The answer to `/v1/stacks` when the VM has said what it knows, as JSON: each frame once, and of
/// each thread the places of its frames in this list, and what was `seen` of it.
/// `is_woken`: the main thread had to be woken for that.
pub fn of_vm(stacks: &Stacks, seen: &Seen, is_woken: bool, elapsed_ns: u64) -> String {
    let of_fibers = stacks.fibers.iter().flat_map(|it| &it.names);
    let mut places = Places::of(stacks.names.iter().chain(of_fibers));
    let of_stacks: Vec<_> = stacks.stacks.iter().map(|it| places.list(it)).collect();
    let fibers = stacks.fibers.as_ref();
    let fibers = fibers.map(|it| it.to_json(&mut places, stacks.names.len()));
    let mut text = json!({
        "source": "vm",
        "note": null,
        "woken": is_woken,
        "elapsed_ns": elapsed_ns,
        "other_ractors": stacks.ractors,
        "stacks_left_out": stacks.left_out,
    })
    .to_string();
    // There may be a hundred thousand frames: their text is put together of parts.
    text.pop();
    text += &format!(",\"frames\":[{}],\"threads\":[", places.text);
    for (place, thread) in stacks.threads.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        // The main thread, which comes first, has the GVL because it was woken.
        let state = state_of(thread, is_woken && place == 0);
        let waits_in = thread.tid.map(|tid| seen.of(tid));
        // Of one that was woken for this, it says nothing.
        let waits = !thread.has_gvl && matches!(state, "blocked" | "waits for the GVL");
        let waiting = thread.waiting.filter(|_| waits);
        // A String takes it all.
        let _ = write!(
            text,
            "{{\"number\":{},\"name\":{},\"tid\":{},\"state\":\"{state}\",\"state_ns\":{},\
             \"state_or_longer\":{},\"waits_in\":{},\"profile_thread\":{},\"labels\":{},\"frames\":[",
            place + 1,
            json!(thread.name),
            json!(thread.tid),
            json!(waiting.map(|it| it.ns)),
            waiting.is_some_and(|it| it.or_longer),
            json!(waits_in.filter(|text| !text.is_empty())),
            json!(thread.profile_thread),
            labels(&thread.labels),
        );
        let stack = thread.stack.and_then(|place| of_stacks.get(place as usize));
        text.push_str(stack.map_or("", |it| it));
        text.push_str("]}");
    }
    text.push(']');
    if let Some(fibers) = fibers {
        text += &format!(",\"fibers\":{fibers}");
    }
    text + "}"
}

fn labels(pairs: &[(Box<str>, Box<str>)]) -> Value {
    pairs
        .iter()
        .map(|(key, value)| (key.to_string(), Value::from(&**value)))
        .collect()
}

/// A thread that is ready to run has to wait for the GVL, unless it has it.
fn state_of(thread: &ThreadStack, is_woken: bool) -> &'static str {
    match (&*thread.status, thread.has_gvl) {
        (_, true) if is_woken => "blocked",
        (_, true) => "running",
        ("run", false) => "waits for the GVL",
        ("sleep" | "sleep_forever", false) => "blocked",
        _ => "ending",
    }
}

/// The answer to `/v1/stacks` without the VM, as JSON: what the system knows of native threads, and
/// why there is no more.
pub fn of_system(note: &str, is_woken: bool, elapsed_ns: u64) -> String {
    of_threads(&native_threads(), note, is_woken, elapsed_ns)
}

fn of_threads(threads: &[NativeThread], note: &str, is_woken: bool, elapsed_ns: u64) -> String {
    let threads: Vec<_> = threads.iter().map(of_native).collect();
    json!({
        "source": "system",
        "note": note,
        "woken": is_woken,
        "elapsed_ns": elapsed_ns,
        "threads": threads,
    })
    .to_string()
}

fn of_native(thread: &NativeThread) -> Value {
    let waits_in = Some(&thread.waits_in).filter(|text| !text.is_empty());
    json!({
        "number": null,
        "name": thread.name,
        "tid": thread.tid,
        "state": if thread.is_running { "running" } else { "blocked" },
        "state_ns": null,
        "state_or_longer": false,
        "waits_in": waits_in,
        "frames": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The frames of the thread at this place.
    fn frames_of(answer: &Value, thread: usize) -> Vec<&Value> {
        let frames = answer["threads"][thread]["frames"].as_array();
        let frames = frames.expect("frames").iter();
        let at = |place: &Value| &answer["frames"][place.as_u64().expect("a place") as usize];
        frames.map(at).collect()
    }

    #[test]
    fn a_thread_that_could_run_waits_for_the_gvl_unless_it_has_it() {
        let thread = |status: &str, has_gvl| ThreadStack {
            name: String::new(),
            status: status.into(),
            tid: None,
            has_gvl,
            waiting: None,
            profile_thread: None,
            labels: LabelTexts::default(),
            stack: Some(0),
        };
        let states = [
            ("run", true),
            ("run", false),
            ("sleep", false),
            ("aborting", false),
        ]
        .map(|(status, has_gvl)| state_of(&thread(status, has_gvl), false));
        assert_eq!(
            states,
            ["running", "waits for the GVL", "blocked", "ending"]
        );
        assert_eq!(state_of(&thread("run", true), true), "blocked");
    }

    #[test]
    fn a_method_of_c_is_where_it_was_called() {
        let name = |name: &str, path: Option<&str>| FrameName {
            name: name.into(),
            path: path.map(Into::into),
        };
        let stacks = Stacks {
            threads: vec![ThreadStack {
                name: "a \"}".into(),
                status: "sleep".into(),
                tid: None,
                has_gvl: false,
                waiting: None,
                profile_thread: None,
                labels: LabelTexts::default(),
                stack: Some(1),
            }],
            left_out: 2,
            stacks: vec![vec![(2, 3)], vec![(0, 0), (1, 7), (0, 0), (2, 3), (9, 9)]],
            names: vec![
                name("Kernel#sleep", None),
                name("A#\u{1b}\"b\"", Some("a.rb")),
                name("<main>", Some("b.rb")),
            ],
            ractors: 1,
            fibers: None,
        };
        let answer: Value =
            serde_json::from_str(&of_vm(&stacks, &Seen::default(), true, 5)).expect("JSON");
        let thread = &answer["threads"][0];
        let places: Vec<_> = frames_of(&answer, 0)
            .into_iter()
            .map(|it| (&it["name"], &it["path"], &it["line"]))
            .collect();
        let (sleep, a, main) = (
            json!("Kernel#sleep"),
            json!("A#\u{1b}\"b\""),
            json!("<main>"),
        );
        let (in_a, in_b, seven, three) = (json!("a.rb"), json!("b.rb"), json!(7), json!(3));
        assert_eq!(
            places,
            [
                (&sleep, &in_a, &seven),
                (&a, &in_a, &seven),
                (&sleep, &in_b, &three),
                (&main, &in_b, &three)
            ]
        );
        assert_eq!(
            (&thread["name"], &thread["waits_in"], &thread["number"]),
            (&json!("a \"}"), &Value::Null, &json!(1))
        );
        assert_eq!(
            (
                &answer["woken"],
                &answer["other_ractors"],
                &answer["stacks_left_out"]
            ),
            (&json!(true), &json!(1), &json!(2))
        );
    }

    proptest! {
        #[test]
        fn whatever_names_there_are_the_answer_is_json(names in proptest::collection::vec(any::<String>(), 3)) {
            let stacks = Stacks {
                threads: vec![ThreadStack {
                    name: names[0].clone(),
                    status: "run".into(),
                    tid: None,
                    has_gvl: true,
                    waiting: None,
            profile_thread: None,
                    labels: LabelTexts::default(),
                    stack: Some(0),
                }; 2],
                stacks: vec![vec![(0, 1); 2]],
                left_out: 0,
                names: vec![FrameName { name: names[1].clone(), path: Some(names[2].clone()) }],
                ractors: 0,
                fibers: None,
            };
            let answer: Value = serde_json::from_str(&of_vm(&stacks, &Seen::default(), false, 1)).expect("JSON");
            let frame = json!({ "name": names[1], "path": names[2], "line": 1 });
            for (place, thread) in answer["threads"].as_array().expect("threads").iter().enumerate() {
                prop_assert_eq!(&thread["name"], &json!(names[0]));
                prop_assert_eq!(frames_of(&answer, place), vec![&frame; 2]);
            }
            prop_assert_eq!(answer["frames"].as_array().map(Vec::len), Some(1));
        }
    }

    /// The VM's answer with all that there can be, and what the system says of its threads.
    fn everything() -> (Stacks, Seen) {
        let thread = |name: &str, status: &str, tid, stack| ThreadStack {
            name: name.into(),
            status: status.into(),
            tid,
            has_gvl: false,
            waiting: None,
            profile_thread: None,
            labels: LabelTexts::default(),
            stack,
        };
        let frame = |name: &str, path: Option<&str>| FrameName {
            name: name.into(),
            path: path.map(Into::into),
        };
        let label = |key: &str, value: &str| (key.into(), value.into());
        let waiting = |ns, or_longer| Some(Waiting { ns, or_longer });
        let threads = vec![
            ThreadStack {
                has_gvl: true,
                profile_thread: Some(1),
                labels: [label("route", "/a \"b\""), label("job", "\u{1b}é")].into(),
                ..thread("main", "run", Some(41), Some(1))
            },
            ThreadStack {
                waiting: waiting(5_000, true),
                ..thread("pool \"}", "sleep", Some(42), Some(1))
            },
            ThreadStack {
                waiting: waiting(3_200_000, false),
                ..thread("", "run", None, None)
            },
            thread("", "aborting", Some(43), Some(0)),
        ];
        let fiber = |block: &str, frames| super::super::fibers::FiberStack {
            count: 3,
            state: "suspended".into(),
            block: block.into(),
            frames,
        };
        let fibers = Fibers {
            note: None,
            left_out: 4,
            stacks: vec![fiber("a.rb:1", vec![(0, 7)]), fiber("", Vec::new())],
            names: vec![frame("Fiber.yield", Some("f.rb"))],
            walk_ns: 1,
            elapsed_ns: 2,
        };
        let stacks = Stacks {
            threads,
            stacks: vec![vec![(2, 3)], vec![(0, 0), (1, 7), (0, 0), (2, 3), (9, 9)]],
            left_out: 2,
            names: vec![
                frame("Kernel#sleep", None),
                frame("A#\u{1b}\"b\"", Some("a.rb")),
                frame("<main>", Some("b.rb")),
            ],
            ractors: 1,
            fibers: Some(fibers),
        };
        let seen = Seen([(42, "recv: db:1".into()), (43, String::new())].into());
        (stacks, seen)
    }

    #[test]
    fn answers_are_what_clients_of_other_versions_know() {
        let (stacks, seen) = everything();
        let golden = include_str!("../../../rperf-protocol/golden/stacks.json");
        assert_eq!(of_vm(&stacks, &seen, true, 5) + "\n", golden);
        let native = |tid, is_running, waits_in: &str| NativeThread {
            tid,
            name: "ruby \"".into(),
            is_running,
            waits_in: waits_in.into(),
        };
        let threads = [native(7, true, ""), native(8, false, "poll: \u{1b}")];
        let golden = include_str!("../../../rperf-protocol/golden/native_stacks.json");
        assert_eq!(of_threads(&threads, "why", true, 6) + "\n", golden);
    }

    #[test]
    fn without_the_vm_there_are_native_threads() {
        let answer = of_system("why", false, 5);
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(
            (&answer["note"], &answer["elapsed_ns"]),
            (&json!("why"), &json!(5))
        );
        let threads = answer["threads"].as_array().expect("a list");
        assert_eq!(threads.is_empty(), !cfg!(target_os = "linux"));
    }
}
