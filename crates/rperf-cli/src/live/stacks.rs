//! `rperf stacks PID`: what each thread of a running program does. Called by `run`, on Ruby's main
//! thread.

use super::process;
use crate::report::screen::{Screen, columns};
use crate::{FAILURE, Refusal};
use rperf_live::client::Client;
use rperf_live::hello::Hello;
use rperf_live::shown;
use rperf_report::numbers::grouped;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::time::Duration;

/// The port itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most: some thousand deep stacks.
const MOST: usize = 32 << 20;

/// Where paths begin, if the name in front is shorter.
const PATH_COLUMN: usize = 56;

/// Said if the main thread was woken.
const WOKEN: &str =
    "No thread ran, so the main thread was woken for a moment (not with --no-wake).\n";

/// Options of `rperf stacks`.
#[derive(Debug, clap::Args)]
pub struct StacksArgs {
    /// The program's process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: i32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show fibers, too: they are found by a walk of the heap, while which nothing else runs
    #[arg(long)]
    pub fibers: bool,
    /// Leave the main thread alone where all threads wait: then there are no stacks
    #[arg(long)]
    pub no_wake: bool,
}

/// Prints the stacks. Returns the exit status: 1 if the VM has said nothing.
pub fn run(args: &StacksArgs) -> Result<i32, Refusal> {
    let mut client = process::connect(args.pid)?;
    let (hello, answer) =
        ask(&mut client, args).map_err(|error| process::failed(args.pid, &error))?;
    let text = match args.json {
        true => format!("{}\n", as_json(args.pid, &hello, &answer)),
        false => page(args, &hello, &answer),
    };
    let written = Screen::stdout(true).print(&text);
    written.map_err(|error| Refusal {
        message: format!("can't write the stacks: {error}"),
        status: FAILURE,
    })?;
    match answer.get("note").and_then(Value::as_str) {
        Some(note) => Err(Refusal {
            message: format!("{}: {note}", args.pid),
            status: FAILURE,
        }),
        None => Ok(0),
    }
}

fn ask(
    client: &mut Client,
    args: &StacksArgs,
) -> Result<(Hello, Value), rperf_live::client::AskError> {
    let hello = client.hello()?;
    let mut path = process::waking("/v1/stacks", !args.no_wake);
    if args.fibers {
        path += if args.no_wake { "&" } else { "?" };
        path += "fibers=1";
    }
    let answer = client.get(&path, MOST, PATIENCE)?;
    Ok((hello, answer))
}

fn as_json(pid: i32, hello: &Hello, answer: &Value) -> Value {
    json!({
        "version": 1,
        "pid": pid,
        "program": hello.program,
        "ruby": hello.ruby,
        "source": answer.get("source"),
        "note": answer.get("note"),
        "woken": answer.get("woken"),
        "elapsed_ns": answer.get("elapsed_ns"),
        "other_ractors": answer.get("other_ractors"),
        "threads": answer.get("threads"),
        "fibers": answer.get("fibers"),
    })
}

/// A thread as it is shown. Threads with the same `state` and `frames` are shown together.
struct Shown {
    label: String,
    state: String,
    frames: Vec<(String, String)>,
}

fn page(args: &StacksArgs, hello: &Hello, answer: &Value) -> String {
    let pid = args.pid;
    let threads = answer.get("threads").and_then(Value::as_array);
    let threads: Vec<_> = threads.into_iter().flatten().map(thread).collect();
    let elapsed = answer.get("elapsed_ns").and_then(Value::as_u64);
    let (program, ruby) = (shown(&hello.program), shown(&hello.ruby));
    let is_native = answer.get("source").and_then(Value::as_str) == Some("system");
    let kind = if is_native { "native thread" } else { "thread" };
    let plural = if threads.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "{pid} {program}: {} {kind}{plural}, Ruby {ruby}, taken in {:.1} ms\n",
        threads.len(),
        elapsed.unwrap_or(0) as f64 / 1e6
    );
    if !is_native && answer.get("woken").and_then(Value::as_bool) == Some(true) {
        text += WOKEN;
    }
    text += &match answer.get("other_ractors").and_then(Value::as_u64) {
        None | Some(0) => String::new(),
        Some(1) => "The threads of one other Ractor are not shown.\n".into(),
        Some(count) => format!("The threads of {count} other Ractors are not shown.\n"),
    };
    let mut groups: Vec<(Vec<&str>, &Shown)> = Vec::new();
    for thread in &threads {
        let is_same = |other: &Shown| {
            !thread.frames.is_empty()
                && (&other.state, &other.frames) == (&thread.state, &thread.frames)
        };
        match groups.iter_mut().find(|(_, other)| is_same(other)) {
            Some((labels, _)) => labels.push(&thread.label),
            None => groups.push((vec![&thread.label], thread)),
        }
    }
    for (labels, thread) in groups {
        let heading = match labels.len() {
            1 => labels[0].to_string(),
            count => format!("{}: {count} threads with one stack", labels.join(", ")),
        };
        text += &stack(&heading, &thread.state, &thread.frames);
    }
    match answer.get("fibers") {
        _ if !args.fibers || is_native => {}
        None => text += "\nThe rperf of this program is too old to show fibers.\n",
        Some(answer) => text += &fibers(answer),
    }
    text
}

fn stack(heading: &str, state: &str, frames: &[(String, String)]) -> String {
    let mut text = format!("\n{}{state}\n", padded(heading));
    for (name, place) in frames {
        text += format!("{}{place}", padded(&format!("    {name}"))).trim_end();
        text.push('\n');
    }
    text
}

/// Those that are in no thread's stack.
fn fibers(answer: &Value) -> String {
    if let Some(note) = answer.get("note").and_then(Value::as_str) {
        return format!("\n{}.\n", shown(note));
    }
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    let stacks = answer.get("stacks").and_then(Value::as_array);
    let mut stacks: Vec<_> = stacks.into_iter().flatten().collect();
    stacks.sort_by_key(|stack| Reverse(number(stack, "count")));
    let count = stacks.iter().map(|stack| number(stack, "count")).sum();
    let of = |count: u64| match count {
        1 => "1 fiber".into(),
        count => format!("{} fibers", grouped(count)),
    };
    let milliseconds = |key| number(answer, key) as f64 / 1e6;
    let mut text = format!(
        "\n{} beside the threads, taken in {:.1} ms, with a walk of the heap of {:.1} ms\n",
        of(count),
        milliseconds("elapsed_ns"),
        milliseconds("walk_ns"),
    );
    match number(answer, "left_out") {
        0 => {}
        1 => text += "1 more was left out: there were too many.\n",
        count => {
            text += &format!(
                "{} more were left out: there were too many.\n",
                grouped(count)
            )
        }
    }
    for it in stacks {
        let field = |key| it.get(key).and_then(Value::as_str).unwrap_or_default();
        let frames = it.get("frames").and_then(Value::as_array);
        let frames: Vec<_> = frames.into_iter().flatten().map(frame).collect();
        let mut heading = of(number(it, "count"));
        if frames.is_empty() && !field("block").is_empty() {
            heading += &format!(", block at {}", shown(field("block")));
        }
        text += &stack(&heading, &shown(field("state")), &frames);
    }
    text
}

fn padded(text: &str) -> String {
    let gap = PATH_COLUMN.saturating_sub(columns(text)).max(2);
    format!("{text}{}", " ".repeat(gap))
}

fn thread(thread: &Value) -> Shown {
    let text = |key: &str| {
        let text = thread.get(key).and_then(Value::as_str);
        shown(text.unwrap_or_default()).into_owned()
    };
    let number = |key: &str| thread.get(key).and_then(Value::as_u64);
    let mut label: Vec<String> = Vec::new();
    label.extend(number("number").map(|number| format!("#{number}")));
    label.extend(
        Some(text("name"))
            .filter(|it| !it.is_empty())
            .map(|it| format!("\"{it}\"")),
    );
    label.extend(number("tid").map(|tid| format!("tid {tid}")));
    let waits_in = text("waits_in");
    let state = match (&*text("state"), &*waits_in) {
        ("blocked", waits_in) if !waits_in.is_empty() => format!("blocked: {waits_in}"),
        (state, _) => state.into(),
    };
    let frames = thread.get("frames").and_then(Value::as_array);
    Shown {
        label: label.join(" "),
        state,
        frames: frames.into_iter().flatten().map(frame).collect(),
    }
}

fn frame(frame: &Value) -> (String, String) {
    let text = |key: &str| {
        let text = frame.get(key).and_then(Value::as_str);
        shown(text.unwrap_or_default()).into_owned()
    };
    let place = match frame.get("line").and_then(Value::as_u64) {
        Some(line) if line > 0 => format!("{}:{line}", text("path")),
        _ => text("path"),
    };
    (text("name"), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_one_and_names_command_no_terminal() {
        let thread = |number: u32, name: &str| {
            json!({
                "number": number, "name": name, "tid": 40 + number, "state": "blocked",
                "waits_in": "waits to be woken",
                "frames": [{ "name": "Thread::Queue#pop", "path": "a.rb", "line": 7 }],
            })
        };
        let mut running = thread(3, "\u{1b}[31mx");
        running["state"] = json!("running");
        let answer = json!({
            "source": "vm", "note": null, "elapsed_ns": 2_100_000, "other_ractors": 1,
            "threads": [thread(1, "pool"), thread(2, ""), running],
        });
        let hello = Hello {
            protocol: 1,
            rperf: "0".into(),
            ruby: "3.4.5".into(),
            pid: 7,
            start: 1,
            program: "puma\n[shop]".into(),
            uptime_ns: None,
            cpu_ns: 0,
            clock_ns: 0,
            session: None,
            tcp: None,
            clients: 1,
            silent_ns: 0,
            keeper: None,
        };
        let mut args = StacksArgs {
            pid: 7,
            json: false,
            fibers: false,
            no_wake: false,
        };
        let threads = page(&args, &hello, &answer);
        args.fibers = true;
        let stack = |count: u32, frames: Value| json!({ "count": count, "state": "suspended", "block": "b.rb:1", "frames": frames });
        let listed = json!({
            "note": null, "left_out": 2000, "walk_ns": 2_000_000, "elapsed_ns": 3_000_000,
            "stacks": [stack(1, json!([])), stack(1200, json!([{ "name": "x", "path": "a.rb", "line": 7 }]))],
        });
        let shown = |answer: &Value| {
            let page = page(&args, &hello, answer);
            let fibers = page.strip_prefix(&threads).expect("the threads first");
            fibers
                .lines()
                .map(|line| line.trim_end().into())
                .collect::<Vec<String>>()
        };
        assert!(shown(&answer)[1].contains("too old"));
        let mut with_fibers = answer.clone();
        with_fibers["fibers"] = json!({ "note": "no" });
        assert_eq!(shown(&with_fibers)[1], "no.");
        with_fibers["fibers"] = listed;
        let expected = [
            "",
            "1,201 fibers beside the threads, taken in 3.0 ms, with a walk of the heap of 2.0 ms",
            "2,000 more were left out: there were too many.",
            "",
            &format!("{:56}suspended", "1,200 fibers"),
            &format!("{:56}a.rb:7", "    x"),
            "",
            &format!("{:56}suspended", "1 fiber, block at b.rb:1"),
        ];
        assert_eq!(shown(&with_fibers), expected);
        let page = threads;
        let lines: Vec<_> = page.lines().map(str::trim_end).collect();
        let frame = format!("{:56}a.rb:7", "    Thread::Queue#pop");
        assert_eq!(
            lines[0],
            "7 puma [shop]: 3 threads, Ruby 3.4.5, taken in 2.1 ms"
        );
        let heading = "#1 \"pool\" tid 41, #2 tid 42: 2 threads with one stack";
        assert_eq!(lines[1], "The threads of one other Ractor are not shown.");
        assert_eq!(lines[3], format!("{heading:56}blocked: waits to be woken"));
        assert_eq!((lines[4], lines[7]), (&*frame, &*frame));
        assert_eq!(lines[6], format!("{:56}running", "#3 \" [31mx\" tid 43"));
    }
}
