//! The stacks of all threads: what the VM says, and what the kernel adds to it. Answers are made on
//! a Ruby thread, and become messages on the port's.

pub mod frames;
pub mod list;

use crate::waits::{NativeThread, Seen, native_threads};
use frames::{FrameName, Places};
use list::Stack;
use rperf_protocol::json::written;
use rperf_protocol::stacks::{self, Fibers, NativeStacks, Source, Thread, ThreadState};
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
    /// The names of their frames, and of those of fibers.
    pub names: Vec<FrameName>,
    /// How many Ractors there are whose threads aren't among them.
    pub ractors: u32,
    /// The fibers, if they are asked for.
    pub fibers: Option<Fibers<'static, Stack>>,
}

/// The answer to `/v1/stacks` when the VM has said what it knows, as JSON: each frame once, and of
/// each thread the places of its frames in this list, and what was `seen` of it.
/// `is_woken`: the main thread had to be woken for that.
pub fn of_vm(stacks: &Stacks, seen: &Seen, is_woken: bool, elapsed_ns: u64) -> String {
    let mut places = Places::of(&stacks.names);
    let of_stacks = stacks.stacks.iter().map(|it| places.list(it));
    let of_stacks: Vec<_> = of_stacks.collect();
    let fibers = stacks.fibers.as_ref();
    let fibers = fibers.map(|it| it.map(|frames| places.list(frames).into()));
    let threads = stacks.threads.iter().enumerate().map(|(place, thread)| {
        // The main thread, which comes first, has the GVL because it was woken.
        let state = state_of(thread, is_woken && place == 0);
        // Of one that was woken for this, it says nothing.
        let waits = !thread.has_gvl && state != ThreadState::Ending;
        let waiting = thread.waiting.filter(|_| waits);
        let waits_in = thread.tid.map(|tid| seen.of(tid));
        let labels = thread.labels.iter();
        let stack = thread.stack.and_then(|it| of_stacks.get(it as usize));
        Thread {
            number: Some(place as u32 + 1),
            name: (&*thread.name).into(),
            tid: thread.tid,
            state,
            state_ns: waiting.map(|it| it.ns),
            state_or_longer: waiting.is_some_and(|it| it.or_longer),
            waits_in: waits_in.filter(|it| !it.is_empty()).map(Into::into),
            profile_thread: thread.profile_thread,
            labels: labels
                .map(|(key, value)| ((&**key).into(), (&**value).into()))
                .collect(),
            frames: stack.map_or(&[][..], |it| it).into(),
        }
    });
    let threads = threads.collect();
    written(&stacks::Stacks {
        elapsed_ns,
        note: None,
        other_ractors: Some(stacks.ractors),
        source: Source::Vm,
        stacks_left_out: Some(stacks.left_out),
        woken: is_woken,
        frames: places.frames,
        threads,
        fibers,
    })
}

/// A thread that is ready to run has to wait for the GVL, unless it has it.
fn state_of(thread: &ThreadStack, is_woken: bool) -> ThreadState {
    match (&*thread.status, thread.has_gvl) {
        (_, true) if is_woken => ThreadState::Blocked,
        (_, true) => ThreadState::Running,
        ("run", false) => ThreadState::WaitsForGvl,
        ("sleep" | "sleep_forever", false) => ThreadState::Blocked,
        _ => ThreadState::Ending,
    }
}

/// The answer to `/v1/stacks` without the VM, as JSON: what the system knows of native threads, and
/// why there is no more.
pub fn of_system(note: &str, is_woken: bool, elapsed_ns: u64) -> String {
    of_threads(&native_threads(), note, is_woken, elapsed_ns)
}

fn of_threads(threads: &[NativeThread], note: &str, woken: bool, elapsed_ns: u64) -> String {
    let threads = threads.iter().map(|thread| {
        let state = match thread.is_running {
            true => ThreadState::Running,
            false => ThreadState::Blocked,
        };
        let waits_in = Some(&*thread.waits_in).filter(|text| !text.is_empty());
        stacks::NativeThread {
            frames: [],
            name: &thread.name,
            number: (),
            state,
            state_ns: (),
            state_or_longer: false,
            tid: thread.tid,
            waits_in,
        }
    });
    written(&NativeStacks {
        elapsed_ns,
        note,
        source: Source::System,
        threads: threads.collect(),
        woken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_protocol::json::read;
    use rperf_protocol::stacks::FiberStack;
    use rperf_report::terminal_text::shown;

    fn thread(name: &str, status: &str, tid: Option<i32>, stack: Option<u32>) -> ThreadStack {
        ThreadStack {
            name: name.into(),
            status: status.into(),
            tid,
            has_gvl: false,
            waiting: None,
            profile_thread: None,
            labels: LabelTexts::default(),
            stack,
        }
    }

    fn frame(name: &str, path: Option<&str>) -> FrameName {
        FrameName {
            name: name.into(),
            path: path.map(Into::into),
        }
    }

    fn answer(stacks: &Stacks) -> stacks::Stacks<'static> {
        let text = of_vm(stacks, &Seen::default(), true, 5);
        read(text.as_bytes()).expect("an answer")
    }

    /// The names, files and lines of the first thread's frames.
    fn first_stack<'a>(answer: &'a stacks::Stacks<'_>) -> Vec<(&'a str, &'a str, u32)> {
        let frames = answer.threads[0].frames.iter();
        let frames = frames.map(|&place| &answer.frames[place as usize]);
        frames.map(|it| (&*it.name, &*it.path, it.line)).collect()
    }

    #[test]
    fn a_thread_that_could_run_waits_for_the_gvl_unless_it_has_it() {
        use ThreadState::{Blocked, Ending, Running, WaitsForGvl};
        for (status, has_gvl, is_woken, expected) in [
            ("run", true, false, Running),
            ("run", false, false, WaitsForGvl),
            ("sleep", false, false, Blocked),
            ("aborting", false, false, Ending),
            ("run", true, true, Blocked),
        ] {
            let thread = ThreadStack {
                has_gvl,
                ..thread("", status, None, None)
            };
            assert_eq!(state_of(&thread, is_woken), expected, "{status}");
        }
    }

    #[test]
    fn a_method_of_c_is_where_it_was_called() {
        let (stacks, _) = everything();
        assert_eq!(
            first_stack(&answer(&stacks)),
            [
                ("Kernel#sleep", "a.rb", 7),
                ("A# \"b\"", "a.rb", 7),
                ("Kernel#sleep", "b.rb", 3),
                ("<main>", "b.rb", 3)
            ]
        );
    }

    proptest! {
        #[test]
        fn whatever_names_there_are_the_answer_is_json(names: [String; 3]) {
            let [of_thread, name, path] = &names;
            let stacks = Stacks {
                threads: vec![thread(of_thread, "run", None, Some(0)); 2],
                stacks: vec![vec![(0, 1); 2]],
                names: vec![frame(name, Some(path))],
                ..Stacks::default()
            };
            let answer = answer(&stacks);
            for thread in &answer.threads {
                prop_assert_eq!(&*thread.name, shown(of_thread));
            }
            let (name, path) = (shown(name), shown(path));
            prop_assert_eq!(first_stack(&answer), vec![(&*name, &*path, 1); 2]);
            prop_assert_eq!(answer.frames.len(), 1);
        }
    }

    /// The VM's answer with all that there can be, and what the system says of its threads.
    fn everything() -> (Stacks, Seen) {
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
        let fiber = |block: Option<&'static str>, frames| FiberStack {
            block: block.map(Into::into),
            count: 3,
            state: "suspended".into(),
            frames,
        };
        let fibers = Fibers {
            elapsed_ns: 2,
            left_out: 4,
            note: None,
            walk_ns: 1,
            stacks: vec![fiber(Some("a.rb:1"), vec![(3, 7)]), fiber(None, Vec::new())],
        };
        let stacks = Stacks {
            threads,
            stacks: vec![vec![(2, 3)], vec![(0, 0), (1, 7), (0, 0), (2, 3), (9, 9)]],
            left_out: 2,
            names: vec![
                frame("Kernel#sleep", None),
                frame("A#\u{1b}\"b\"", Some("a.rb")),
                frame("<main>", Some("b.rb")),
                frame("Fiber.yield", Some("f.rb")),
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
        let golden = include_str!("../../rperf-protocol/golden/stacks.json");
        assert_eq!(of_vm(&stacks, &seen, true, 5) + "\n", golden);
        let native = |tid, is_running, waits_in: &str| NativeThread {
            tid,
            name: "ruby \"".into(),
            is_running,
            waits_in: waits_in.into(),
        };
        let threads = [native(7, true, ""), native(8, false, "poll: \u{1b}")];
        let golden = include_str!("../../rperf-protocol/golden/native_stacks.json");
        assert_eq!(of_threads(&threads, "why", true, 6) + "\n", golden);
    }

    #[test]
    fn without_the_vm_there_are_native_threads() {
        let answer = of_system("why", false, 5);
        let answer: stacks::Stacks<'_> = read(answer.as_bytes()).expect("an answer");
        assert_eq!(
            (answer.note.as_deref(), answer.elapsed_ns),
            (Some("why"), 5)
        );
        assert_eq!(answer.threads.is_empty(), !cfg!(target_os = "linux"));
    }
}
