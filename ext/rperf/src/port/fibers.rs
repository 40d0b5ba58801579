//! The stacks of fibers, for the port's clients. On the helper, with the GVL. The walk of the heap
//! that finds them keeps it; all else is done a little at a time.

use super::failure::class_of;
use crate::interrupts::Stretch;
use crate::text;
use magnus::{Error, RArray, RModule, RString, TryConvert, Value, prelude::*};
use rperf_port::request;
use rperf_port::stacks::frames::FrameName;
use rperf_port::stacks::list::Stack;
use rperf_port::task::Question;
use rperf_protocol::stacks::{self, FiberStack};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// How long fibers are looked at; later ones are left out, because the port waits for some seconds
/// only, of which the threads had a part.
const LIMIT: Duration = Duration::from_secs(1);

const FAILED: &str = "No fibers are shown: an exception came while they were looked at";

/// The fibers, as the port has them.
type Fibers = stacks::Fibers<'static, Stack>;

/// Takes the stacks, and adds the names of their frames to `names`. Where an exception comes, there
/// are none, and the rest of the answer stays; the error is that the helper ends. Where nobody waits
/// for the answer any more, it lacks some.
pub fn take(
    helper: RModule,
    question: Question,
    names: &mut Vec<FrameName>,
) -> Result<Fibers, Error> {
    try_take(helper, question, names).or_else(|error| match class_of(helper, &error) {
        Some(class) => Ok(Fibers {
            note: Some(format!("{FAILED} ({class})").into()),
            ..Fibers::default()
        }),
        None => Err(error),
    })
}

fn try_take(
    helper: RModule,
    question: Question,
    names: &mut Vec<FrameName>,
) -> Result<Fibers, Error> {
    let began = Instant::now();
    let taking: Value = helper.funcall("fiber_stacks", ())?;
    let walk = began.elapsed();
    let count: usize = taking.funcall("size", ())?;
    let mut stretch = Stretch::begin();
    for place in 0..count {
        if began.elapsed() >= walk + LIMIT || !request::is_wanted(question) {
            break;
        }
        stretch.end_if_long()?;
        let _: Value = taking.funcall("look_at", (place,))?;
    }
    let (note, left_out, of_frames, stacks): (Option<RString>, u32, RArray, RArray) =
        taking.funcall("to_a", ())?;
    let others = names.len() as u32;
    for name in items(of_frames) {
        stretch.end_if_long()?;
        let (name, path) = <(RString, RString)>::try_convert(name?)?;
        names.push(FrameName {
            name: text::content(name),
            path: Some(text::content(path)),
        });
    }
    let stacks = items(stacks).map(|stack| {
        stretch.end_if_long()?;
        let (count, state, block, frames): (u32, RString, RString, RArray) =
            TryConvert::try_convert(stack?)?;
        Ok(FiberStack {
            count,
            state: text::content(state).into(),
            block: Some(text::content(block).into()).filter(|it: &Cow<'_, str>| !it.is_empty()),
            frames: frames_of(&frames.to_vec::<i64>()?, others),
        })
    });
    Ok(Fibers {
        note: note.map(|it| text::content(it).into()),
        left_out,
        stacks: stacks.collect::<Result<_, Error>>()?,
        walk_ns: nanoseconds(walk),
        elapsed_ns: nanoseconds(began.elapsed()),
    })
}

/// The items of an array, one after the other, each of which is on the stack while it is used.
fn items(array: RArray) -> impl Iterator<Item = Result<Value, Error>> {
    (0..array.len()).map(move |place| array.entry(place as isize))
}

/// Each frame as its name's place, behind `others`, and its line, which is 0 if it doesn't fit into 32 bits, because
/// code may be told that its lines have any numbers.
fn frames_of(numbers: &[i64], others: u32) -> Stack {
    let number = |number| u32::try_from(number).unwrap_or(0);
    let frames = numbers.chunks_exact(2);
    frames
        .map(|frame| (others + number(frame[0]), number(frame[1])))
        .collect()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
