//! `rperf stacks PID`: what each thread of a running program does. Called by `run`, on Ruby's main
//! thread.

use super::process;
use super::thread_state::{ThreadState, Waiting, in_words};
use crate::path_args::PathArgs;
use crate::report::screen::{Screen, columns};
use crate::{FAILURE, Refusal};
use rperf_live::client::{AskError, Client};
use rperf_protocol::hello::Hello;
use rperf_protocol::shown;
use rperf_report::{CodePaths, numbers};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

/// The port itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer at most, and of what becomes of it, in which frames are repeated: some
/// thousand deep stacks.
const MOST: usize = 32 << 20;

/// Where paths begin, if the name in front is shorter.
const PATH_COLUMN: usize = 56;

/// Columns of a path, or of a state, that stay beside a long name.
const KNOWN: usize = 24;

/// Between a name and its path.
const GAP: usize = 2;

/// Said if the main thread was woken.
const WOKEN: &str =
    "No thread ran, so the main thread was woken for a moment (not with --no-wake).\n";

/// Why fibers may be left out.
const LEFT_OUT: &str = "too many, or Ruby would have run the program's own `to_s` for them";

/// Options of `rperf stacks`.
#[derive(Debug, clap::Args)]
pub struct StacksArgs {
    /// The program's process
    #[arg(value_name = "PID", value_parser = crate::checked::pid)]
    pub pid: i32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show fibers, too: they are found by a walk of the heap, which keeps the GVL
    #[arg(long)]
    pub fibers: bool,
    /// Leave the main thread alone where all threads wait: then there are no stacks
    #[arg(long)]
    pub no_wake: bool,
    /// The form of paths.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Prints the stacks. Returns the exit status: 1 if the VM has said nothing.
pub fn run(args: &StacksArgs) -> Result<i32, Refusal> {
    let mut client = process::connect(args.pid)?;
    let (hello, answer) =
        ask(&mut client, args).map_err(|error| process::failed(args.pid, &error))?;
    let screen = Screen::stdout(true);
    let text = match args.json {
        true => as_json(args, &hello, &answer),
        false => page(args, &hello, &answer, screen),
    };
    let text = text.ok_or_else(|| process::failed(args.pid, &AskError::TooLarge(MOST)))?;
    let written = screen.print(&text);
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

fn ask(client: &mut Client, args: &StacksArgs) -> Result<(Hello, Value), AskError> {
    let hello = client.hello()?;
    let answer = match args.fibers {
        false => threads(client, !args.no_wake)?,
        true => {
            let wake = u8::from(!args.no_wake);
            client.get(&format!("/v1/stacks?fibers=1&wake={wake}"), MOST, PATIENCE)?
        }
    };
    Ok((hello, answer))
}

/// What each thread does, without a word about the program. `may_wake`: its main thread may be woken
/// for that.
pub fn threads(client: &mut Client, may_wake: bool) -> Result<Value, AskError> {
    client.get(&process::waking("/v1/stacks", may_wake), MOST, PATIENCE)
}

/// `None` if there is too much of it.
fn as_json(args: &StacksArgs, hello: &Hello, answer: &Value) -> Option<String> {
    let mut text = json!({
        "version": 1,
        "pid": args.pid,
        "program": hello.program,
        "ruby": hello.ruby,
        "source": answer.get("source"),
        "note": answer.get("note"),
        "woken": answer.get("woken"),
        "elapsed_ns": answer.get("elapsed_ns"),
        "other_ractors": answer.get("other_ractors"),
        "stacks_left_out": answer.get("stacks_left_out"),
    })
    .to_string();
    text.pop();
    let paths = code_paths(args, hello, answer);
    let frames = items(answer, "frames").cloned().map(|mut frame| {
        let path = frame.get("path").and_then(Value::as_str);
        let short = path.map(|path| paths.short(path).into_owned());
        if let (Some(short), Some(fields)) = (short, frame.as_object_mut()) {
            fields.insert("short_path".into(), short.into());
        }
        frame.to_string()
    });
    let frames: Vec<_> = frames.collect();
    text += ",\"threads\":[";
    write_stacks(items(answer, "threads"), &frames, &mut text)?;
    text.push(']');
    if let Some(fibers) = answer.get("fibers") {
        text += ",\"fibers\":{";
        write_facts(fibers, "stacks", &mut text);
        write_stacks(items(fibers, "stacks"), &frames, &mut text)?;
        text += "]}";
    }
    Some(text + "}\n")
}

/// The forms of the paths in the answer.
fn code_paths(args: &StacksArgs, hello: &Hello, answer: &Value) -> CodePaths {
    let files = items(answer, "frames").filter_map(|frame| frame.get("path")?.as_str());
    CodePaths::of_files(args.paths.view(), hello.roots.clone(), files)
}

/// Objects with `frames`, of which they have the places. `None` if it is too much.
fn write_stacks<'a>(
    stacks: impl Iterator<Item = &'a Value>,
    frames: &[String],
    text: &mut String,
) -> Option<()> {
    for (number, stack) in stacks.enumerate() {
        *text += if number > 0 { ",{" } else { "{" };
        write_facts(stack, "frames", text);
        for (place, frame) in places(stack).filter_map(|it| frames.get(it)).enumerate() {
            if place > 0 {
                text.push(',');
            }
            *text += frame;
            if text.len() > MOST {
                return None;
            }
        }
        *text += "]}";
    }
    Some(())
}

/// What is in the object, and then a list begins under `last`.
fn write_facts(object: &Value, last: &str, text: &mut String) {
    let facts = object.as_object().into_iter().flatten();
    for (key, value) in facts.filter(|(key, _)| *key != last) {
        *text += &format!("{}:{value},", json!(key));
    }
    *text += &format!("\"{last}\":[");
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Where a thread's frames are in the list of all.
fn places(thread: &Value) -> impl Iterator<Item = usize> {
    items(thread, "frames").filter_map(|place| usize::try_from(place.as_u64()?).ok())
}

/// A thread as it is shown. Threads with the same `state` and `frames` are shown together.
struct Shown {
    label: String,
    state: ThreadState,
    /// The places of its frames.
    frames: Vec<usize>,
}

/// `None` if there is too much of it.
fn page(args: &StacksArgs, hello: &Hello, answer: &Value, screen: Screen) -> Option<String> {
    let pid = args.pid;
    let threads: Vec<_> = items(answer, "threads").map(thread).collect();
    let paths = code_paths(args, hello, answer);
    let frames = items(answer, "frames").map(|it| line(it, &paths, screen));
    let frames: Vec<_> = frames.collect();
    let elapsed = answer.get("elapsed_ns").and_then(Value::as_u64);
    let (program, ruby) = (shown(&hello.program), shown(&hello.ruby));
    let is_native = answer.get("source").and_then(Value::as_str) == Some("system");
    let kind = if is_native { "native thread" } else { "thread" };
    let plural = if threads.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "{pid} {program}: {} {kind}{plural}, Ruby {ruby}, taken in {:.1} ms\n",
        numbers::grouped(threads.len() as i64),
        elapsed.unwrap_or(0) as f64 / 1e6
    );
    if !is_native && answer.get("woken").and_then(Value::as_bool) == Some(true) {
        text += WOKEN;
    }
    text += &match answer.get("other_ractors").and_then(Value::as_u64) {
        None | Some(0) => String::new(),
        Some(1) => "The threads of one other Ractor are not shown.\n".into(),
        Some(count) => {
            let count = numbers::grouped(count);
            format!("The threads of {count} other Ractors are not shown.\n")
        }
    };
    text += &match answer.get("stacks_left_out").and_then(Value::as_u64) {
        None | Some(0) => String::new(),
        Some(1) => "The stack of one thread is left out: there are too many frames.\n".into(),
        Some(count) => {
            let count = numbers::grouped(count);
            format!("The stacks of {count} threads are left out: there are too many frames.\n")
        }
    };
    text = screen.wrapped(&text);
    for group in grouped(&threads) {
        let states: Vec<_> = group.iter().map(|it| &it.state).collect();
        let state = in_words(&states);
        let labels: Vec<_> = group.iter().map(|it| &*it.label).collect();
        let heading = match labels.len() {
            1 => labels[0].to_string(),
            _ => heading_of(&labels, columns(&state), screen),
        };
        let drawn = (&*frames, screen);
        write_stack((&heading, &state), &group[0].frames, drawn, &mut text)?;
    }
    match answer.get("fibers") {
        _ if !args.fibers || is_native => {}
        None => {
            let old = "\nThe rperf of this program is too old to show fibers.\n";
            text += &screen.wrapped(old);
        }
        Some(answer) => write_fibers(answer, (&frames, screen), &mut text)?,
    }
    Some(text)
}

/// The heading of threads with one stack. On a terminal it names only so many that there is room
/// for the state.
fn heading_of(labels: &[&str], state: usize, screen: Screen) -> String {
    let count = labels.len();
    let end = format!(
        ": {} threads with one stack",
        numbers::grouped(count as i64)
    );
    let room = screen
        .width()
        .map(|width| width.saturating_sub(columns(&end) + 2 + state));
    let mut text = String::new();
    for (place, label) in labels.iter().enumerate() {
        let next = if place > 0 { ", " } else { "" }.to_string() + label;
        // Room for the dots, unless it's the last.
        let dots = if place + 1 < count {
            columns(", …")
        } else {
            0
        };
        let used = columns(&text) + columns(&next) + dots;
        if place > 0 && room.is_some_and(|room| used > room) {
            return text + ", …" + &end;
        }
        text += &next;
    }
    text + &end
}

/// `None` if it is too much.
fn write_stack(
    (heading, state): (&str, &str),
    places: &[usize],
    (frames, screen): (&[String], Screen),
    text: &mut String,
) -> Option<()> {
    let (heading, state) = side_by_side(heading, state, screen);
    *text += &format!("\n{heading}{state}\n");
    for line in places.iter().filter_map(|&place| frames.get(place)) {
        *text += line;
        if text.len() > MOST {
            return None;
        }
    }
    Some(())
}

/// The fibers that are in no thread's stack, written to `text`; `None` if the text is too long.
fn write_fibers(answer: &Value, drawn: (&[String], Screen), text: &mut String) -> Option<()> {
    let (_, screen) = drawn;
    if let Some(note) = answer.get("note").and_then(Value::as_str) {
        *text += &screen.wrapped(&format!("\n{}.\n", shown(note)));
        return Some(());
    }
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    let mut stacks: Vec<_> = items(answer, "stacks").collect();
    stacks.sort_by_key(|stack| Reverse(number(stack, "count")));
    let of = |count: u64| match count {
        1 => "1 fiber".into(),
        count => format!("{} fibers", numbers::grouped(count)),
    };
    let milliseconds = |key| number(answer, key) as f64 / 1e6;
    *text += &screen.wrapped(&format!(
        "\n{} beside the threads, taken in {:.1} ms, with a walk of the heap of {:.1} ms\n",
        of(stacks.iter().map(|stack| number(stack, "count")).sum()),
        milliseconds("elapsed_ns"),
        milliseconds("walk_ns"),
    ));
    let left_out = match number(answer, "left_out") {
        0 => String::new(),
        1 => format!("1 more was left out: {LEFT_OUT}.\n"),
        count => format!(
            "{} more were left out: {LEFT_OUT}.\n",
            numbers::grouped(count)
        ),
    };
    *text += &screen.wrapped(&left_out);
    for stack in stacks {
        let field = |key| stack.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut heading = of(number(stack, "count"));
        let places: Vec<_> = places(stack).collect();
        if places.is_empty() && !field("block").is_empty() {
            heading += &format!(", block at {}", shown(field("block")));
        }
        write_stack((&heading, &shown(field("state"))), &places, drawn, text)?;
    }
    Some(())
}

/// The groups of threads with one stack and state, in the order of their first threads. A thread
/// without frames is a group of its own.
fn grouped(threads: &[Shown]) -> Vec<Vec<&Shown>> {
    let mut groups: Vec<Vec<&Shown>> = Vec::new();
    let mut places: HashMap<(&str, &str, &[usize]), usize> = HashMap::new();
    for thread in threads {
        let next = groups.len();
        let state = &thread.state;
        let place = match &*thread.frames {
            [] => next,
            frames => *places
                .entry((&state.name, &state.waits_in, frames))
                .or_insert(next),
        };
        match groups.get_mut(place) {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    groups
}

fn padded(text: &str, start: usize) -> String {
    let gap = start.saturating_sub(columns(text)).max(GAP);
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
    let pairs = thread.get("labels").and_then(Value::as_object);
    let pairs = pairs.into_iter().flatten();
    label.extend(pairs.map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        format!("{}={}", shown(key), shown(value))
    }));
    let name = text("state");
    let waits_in = match &*name {
        "blocked" => text("waits_in"),
        _ => String::new(),
    };
    Shown {
        label: label.join(" "),
        state: ThreadState {
            name,
            waits_in,
            waiting: Waiting::of(thread),
        },
        frames: places(thread).collect(),
    }
}

/// A frame as it is shown.
fn line(frame: &Value, paths: &CodePaths, screen: Screen) -> String {
    let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
    let short = paths.short(text("path"));
    let path = shown(&short);
    let place = match frame.get("line").and_then(Value::as_u64) {
        Some(line) if line > 0 => format!("{path}:{line}"),
        _ => path.into_owned(),
    };
    let (name, place) = side_by_side(&format!("    {}", shown(text("name"))), &place, screen);
    format!("{}\n", format!("{name}{place}").trim_end())
}

/// A name, padded, and what is known of it, in a line of the screen.
fn side_by_side(name: &str, known: &str, screen: Screen) -> (String, String) {
    let for_known = columns(known).min(KNOWN);
    let name = screen.fitted_name(name, GAP + for_known);
    let start = screen.width().map_or(PATH_COLUMN, |width| {
        PATH_COLUMN.min(width.saturating_sub(for_known))
    });
    let name = padded(&name, start);
    let known = screen.fitted_name(known, columns(&name));
    (name, known)
}

#[cfg(test)]
mod tests;
