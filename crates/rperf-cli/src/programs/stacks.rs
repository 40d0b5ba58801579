//! `rperf stacks PID`: what each thread of a running program does. Called by `run`, on Ruby's main
//! thread.

mod json;

use super::thread_state::{in_words, waits_in};
use super::words::of_failure;
use crate::report::screen::{Screen, columns};
use crate::shared_args::path_args::PathArgs;
use crate::{FAILURE, Refusal};
use rperf_model::Order;
use rperf_protocol::hello::Hello;
use rperf_protocol::limits::MAX_STACKS as MOST;
use rperf_protocol::stacks::{Fibers, Frame, Source, Stacks, Thread, ThreadState};
use rperf_report::terminal_text::shown;
use rperf_report::{CodePaths, numbers};
use rperf_session::process_id::ProcessId;
use rperf_watch::failure::AskError;
use rperf_watch::program::Program;
use std::cmp::Reverse;
use std::collections::HashMap;

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
    #[arg(value_name = "PID", value_parser = crate::shared_args::checked::pid)]
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
    let failed = |failure| of_failure(args.pid, &failure);
    let mut program = Program::connect(ProcessId::named(args.pid)).map_err(failed)?;
    let answer = program.stacks(args.fibers, !args.no_wake);
    let answer = answer.map_err(|error| failed(error.into()))?;
    let hello = program.hello;
    let screen = Screen::stdout(true);
    let text = match args.json {
        true => {
            let paths = code_paths(args, &hello, &answer);
            json::as_json(args.pid, &hello, &answer, &paths)
        }
        false => page(args, &hello, &answer, screen),
    };
    let text = text.ok_or_else(|| failed(AskError::TooLarge(MOST).into()))?;
    let written = screen.print(&text);
    written.map_err(|error| Refusal {
        message: format!("can't write the stacks: {error}"),
        status: FAILURE,
    })?;
    match answer.note {
        Some(note) => Err(Refusal {
            message: format!("{}: {note}", args.pid),
            status: FAILURE,
        }),
        None => Ok(0),
    }
}

/// The forms of the paths in the answer.
fn code_paths(args: &StacksArgs, hello: &Hello, answer: &Stacks<'_>) -> CodePaths {
    let files = answer.frames.iter().map(|frame| &*frame.path);
    CodePaths::of_files(args.paths.view(), hello.roots.clone(), files)
}

/// A thread, and how it is called. Threads with the same state and frames are shown together.
struct Shown<'a> {
    label: String,
    thread: &'a Thread<'a>,
}

/// `None` if there is too much of it.
fn page(args: &StacksArgs, hello: &Hello, answer: &Stacks<'_>, screen: Screen) -> Option<String> {
    let pid = args.pid;
    let threads: Vec<_> = answer.threads.iter().map(Shown::of).collect();
    let paths = code_paths(args, hello, answer);
    let frames = answer.frames.iter().map(|it| line(it, &paths, screen));
    let frames: Vec<_> = frames.collect();
    let (program, ruby) = (shown(&hello.program), shown(&hello.ruby));
    let is_native = answer.source == Source::System;
    let kind = if is_native { "native thread" } else { "thread" };
    let plural = if threads.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "{pid} {program}: {} {kind}{plural}, Ruby {ruby}, taken in {} ms\n",
        numbers::grouped(threads.len() as i64),
        numbers::milliseconds(answer.elapsed_ns)
    );
    if !is_native && answer.woken {
        text += WOKEN;
    }
    text += &counted(
        answer.other_ractors.unwrap_or(0),
        "The threads of one other Ractor are not shown.\n",
        |count| format!("The threads of {count} other Ractors are not shown.\n"),
    );
    text += &counted(
        answer.stacks_left_out.unwrap_or(0),
        "The stack of one thread is left out: there are too many frames.\n",
        |count| format!("The stacks of {count} threads are left out: there are too many frames.\n"),
    );
    text = screen.wrapped(&text);
    for group in grouped(&threads) {
        let of_group: Vec<_> = group.iter().map(|it| it.thread).collect();
        let state = in_words(&of_group);
        let labels: Vec<_> = group.iter().map(|it| &*it.label).collect();
        let heading = match labels.len() {
            1 => labels[0].to_string(),
            _ => heading_of(&labels, columns(&state), screen),
        };
        let title = side_by_side(&heading, &state, screen);
        write_stack(&title, &of_group[0].frames, &frames, &mut text)?;
    }
    match &answer.fibers {
        _ if !args.fibers || is_native => {}
        None => {
            let old = "\nThe rperf of this program is too old to show fibers.\n";
            text += &screen.wrapped(old);
        }
        Some(fibers) => write_fibers(fibers, &frames, screen, &mut text)?,
    }
    Some(text)
}

/// A line of what isn't shown, if there is any.
fn counted(count: u32, one: &str, several: impl FnOnce(String) -> String) -> String {
    match count {
        0 => String::new(),
        1 => one.into(),
        count => several(numbers::grouped(count)),
    }
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
fn write_stack(title: &str, places: &[u32], frames: &[String], text: &mut String) -> Option<()> {
    *text += &format!("\n{title}\n");
    for line in places
        .iter()
        .filter_map(|&place| frames.get(place as usize))
    {
        *text += line;
        if text.len() > MOST {
            return None;
        }
    }
    Some(())
}

/// The fibers that are in no thread's stack, written to `text`; `None` if the text is too long.
fn write_fibers(
    fibers: &Fibers<'_>,
    frames: &[String],
    screen: Screen,
    text: &mut String,
) -> Option<()> {
    if let Some(note) = &fibers.note {
        *text += &screen.wrapped(&format!("\n{note}.\n"));
        return Some(());
    }
    let mut stacks: Vec<_> = fibers.stacks.iter().collect();
    stacks.order_by_key(|stack| Reverse(stack.count));
    let of = |count: u64| match count {
        1 => "1 fiber".into(),
        count => format!("{} fibers", numbers::grouped(count)),
    };
    *text += &screen.wrapped(&format!(
        "\n{} beside the threads, taken in {} ms, with a walk of the heap of {} ms\n",
        of(stacks.iter().map(|stack| u64::from(stack.count)).sum()),
        numbers::milliseconds(fibers.elapsed_ns),
        numbers::milliseconds(fibers.walk_ns),
    ));
    let one = format!("1 more was left out: {LEFT_OUT}.\n");
    let left_out = counted(fibers.left_out, &one, |count| {
        format!("{count} more were left out: {LEFT_OUT}.\n")
    });
    *text += &screen.wrapped(&left_out);
    for stack in stacks {
        let mut heading = of(stack.count.into());
        let block = stack.block.as_deref().unwrap_or_default();
        if stack.frames.is_empty() && !block.is_empty() {
            heading += &format!(", block at {block}");
        }
        let title = side_by_side(&heading, &stack.state, screen);
        write_stack(&title, &stack.frames, frames, text)?;
    }
    Some(())
}

/// The groups of threads with one stack and state, in the order of their first threads. A thread
/// without frames is a group of its own.
fn grouped<'a>(threads: &'a [Shown<'a>]) -> Vec<Vec<&'a Shown<'a>>> {
    let mut groups: Vec<Vec<&Shown<'_>>> = Vec::new();
    let mut places: HashMap<(&ThreadState, &str, &[u32]), usize> = HashMap::new();
    for shown in threads {
        let next = groups.len();
        let thread = shown.thread;
        let place = match &*thread.frames {
            [] => next,
            frames => *places
                .entry((&thread.state, waits_in(thread), frames))
                .or_insert(next),
        };
        match groups.get_mut(place) {
            Some(group) => group.push(shown),
            None => groups.push(vec![shown]),
        }
    }
    groups
}

fn padded(text: &str, start: usize) -> String {
    let gap = start.saturating_sub(columns(text)).max(GAP);
    format!("{text}{}", " ".repeat(gap))
}

impl<'a> Shown<'a> {
    fn of(thread: &'a Thread<'a>) -> Self {
        let name = Some(&thread.name).filter(|name| !name.is_empty());
        let labels = thread.labels.iter();
        let parts = [
            thread.number.map(|number| format!("#{number}")),
            name.map(|name| format!("\"{name}\"")),
            thread.tid.map(|tid| format!("tid {tid}")),
        ];
        let parts = parts.into_iter().flatten();
        let parts = parts.chain(labels.map(|(key, value)| format!("{key}={value}")));
        Shown {
            label: parts.collect::<Vec<_>>().join(" "),
            thread,
        }
    }
}

/// A frame as it is shown.
fn line(frame: &Frame<'_>, paths: &CodePaths, screen: Screen) -> String {
    let path = paths.short(&frame.path);
    let place = match frame.line {
        0 => path.into_owned(),
        line => format!("{path}:{line}"),
    };
    let line = side_by_side(&format!("    {}", frame.name), &place, screen);
    format!("{}\n", line.trim_end())
}

/// A name, padded, and what is known of it, in a line of the screen.
fn side_by_side(name: &str, known: &str, screen: Screen) -> String {
    let for_known = columns(known).min(KNOWN);
    let name = screen.fitted_name(name, GAP + for_known);
    let start = screen.width().map_or(PATH_COLUMN, |width| {
        PATH_COLUMN.min(width.saturating_sub(for_known))
    });
    let name = padded(&name, start);
    let known = screen.fitted_name(known, columns(&name));
    name + &known
}

#[cfg(test)]
mod tests;
