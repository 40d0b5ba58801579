//! The stacks of all threads: what the VM says, and what the kernel adds to it. Answers are made on
//! a Ruby thread, and become JSON on the port's.

use super::waits::{NativeThread, native_thread, native_threads};
use serde_json::{Value, json};

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The method, with its class.
    pub name: String,
    /// The file; empty if there is none.
    pub path: String,
    /// The line; 0 if there is none.
    pub line: u32,
}

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
    /// The leaf first.
    pub frames: Vec<Frame>,
}

/// The answer to `/v1/stacks` when the VM has said what it knows.
/// `ractors`: how many there are whose threads aren't among them. `is_woken`: the main thread had to
/// be woken for that.
pub fn of_vm(threads: &[ThreadStack], ractors: u32, is_woken: bool, elapsed_ns: u64) -> Value {
    let threads = threads.iter().enumerate();
    let threads: Vec<_> = threads.map(|it| of_thread(it, is_woken)).collect();
    json!({
        "source": "vm",
        "note": null,
        "woken": is_woken,
        "elapsed_ns": elapsed_ns,
        "other_ractors": ractors,
        "threads": threads,
    })
}

fn of_thread((place, thread): (usize, &ThreadStack), is_woken: bool) -> Value {
    // The main thread, which comes first, has the GVL because it was woken.
    let is_woken = is_woken && place == 0;
    let native = thread.tid.and_then(native_thread);
    let frames: Vec<_> = thread.frames.iter().map(of_frame).collect();
    json!({
        "number": place + 1,
        "name": thread.name,
        "tid": thread.tid,
        "state": state_of(thread, is_woken),
        "waits_in": native.map(|native| native.waits_in).filter(|text| !text.is_empty()),
        "frames": frames,
    })
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

fn of_frame(frame: &Frame) -> Value {
    json!({ "name": frame.name, "path": frame.path, "line": frame.line })
}

/// The same without the VM: what the system knows of native threads, and why there is no more.
pub fn of_system(note: &str, is_woken: bool, elapsed_ns: u64) -> Value {
    let threads: Vec<_> = native_threads().iter().map(of_native).collect();
    json!({
        "source": "system",
        "note": note,
        "woken": is_woken,
        "elapsed_ns": elapsed_ns,
        "threads": threads,
    })
}

fn of_native(thread: &NativeThread) -> Value {
    let waits_in = Some(&thread.waits_in).filter(|text| !text.is_empty());
    json!({
        "number": null,
        "name": thread.name,
        "tid": thread.tid,
        "state": if thread.is_running { "running" } else { "blocked" },
        "waits_in": waits_in,
        "frames": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_could_run_waits_for_the_gvl_unless_it_has_it() {
        let thread = |status: &str, has_gvl| ThreadStack {
            name: String::new(),
            status: status.into(),
            tid: None,
            has_gvl,
            frames: Vec::new(),
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
    fn without_the_vm_there_are_native_threads() {
        let answer = of_system("why", false, 5);
        assert_eq!(
            (&answer["note"], &answer["elapsed_ns"]),
            (&json!("why"), &json!(5))
        );
        let threads = answer["threads"].as_array().expect("a list");
        assert_eq!(threads.is_empty(), !cfg!(target_os = "linux"));
    }
}
