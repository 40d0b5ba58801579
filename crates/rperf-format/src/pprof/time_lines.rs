//! Time lines in our pprof files, in a field that pprof has no name for: other readers pass over
//! it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{Span, TimeLine};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_001;

/// Bytes of all time lines of a file: a full one has about a tenth of that.
pub(crate) const MAX_BYTES: usize = 32 << 20;

/// A time line as a message; calls are rows of the repeated numbers.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(uint32, tag = "1")]
    process: u32,
    #[prost(string, tag = "2")]
    program: String,
    #[prost(uint64, tag = "3")]
    start_time_nanos: u64,
    #[prost(uint64, tag = "4")]
    least_nanos: u64,
    #[prost(uint64, tag = "5")]
    left_out: u64,
    #[prost(string, repeated, tag = "6")]
    names: Vec<String>,
    #[prost(uint32, repeated, tag = "7")]
    name: Vec<u32>,
    #[prost(uint32, repeated, tag = "8")]
    thread: Vec<u32>,
    #[prost(uint32, repeated, tag = "9")]
    fiber: Vec<u32>,
    /// Each since the one before.
    #[prost(uint64, repeated, tag = "10")]
    start: Vec<u64>,
    #[prost(uint64, repeated, tag = "11")]
    duration: Vec<u64>,
    /// The places of calls that were open at the end.
    #[prost(uint32, repeated, tag = "12")]
    open: Vec<u32>,
}

/// The field with a time line, with its number in front.
pub(crate) fn encoded(line: &TimeLine) -> Vec<u8> {
    let spans = || line.spans.iter();
    let mut last = 0;
    let starts = spans().map(|span| {
        let since = span.start_ns.saturating_sub(last);
        last = span.start_ns.max(last);
        since
    });
    let message = Packed {
        process: line.process,
        program: line.program.clone(),
        start_time_nanos: line.start_time_ns,
        least_nanos: line.least_ns,
        left_out: line.left_out,
        names: line.names.clone(),
        name: spans().map(|span| span.name).collect(),
        thread: spans().map(|span| span.thread).collect(),
        fiber: spans().map(|span| span.fiber).collect(),
        start: starts.collect(),
        duration: spans().map(|span| span.duration_ns).collect(),
        open: (0..)
            .zip(spans())
            .filter(|(_, span)| span.is_open)
            .map(|(place, _)| place)
            .collect(),
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// The time line in a field's content.
pub(crate) fn decoded(bytes: &[u8]) -> Result<TimeLine, ReadError> {
    let message = Packed::decode(bytes)?;
    let count = message.name.len();
    let others = [
        message.thread.len(),
        message.fiber.len(),
        message.start.len(),
        message.duration.len(),
    ];
    if others.iter().any(|other| *other != count) {
        return Err(ReadError::damaged("the calls of a time line lack numbers"));
    }
    let mut start_ns: u64 = 0;
    let spans = (0..count).map(|row| {
        start_ns = start_ns.saturating_add(message.start[row]);
        Span {
            name: message.name[row],
            thread: message.thread[row],
            fiber: message.fiber[row],
            start_ns,
            duration_ns: message.duration[row],
            is_open: false,
        }
    });
    let mut line = TimeLine {
        process: message.process,
        spans: spans.collect(),
        program: message.program,
        start_time_ns: message.start_time_nanos,
        least_ns: message.least_nanos,
        left_out: message.left_out,
        names: message.names,
    };
    for place in message.open {
        match line.spans.get_mut(place as usize) {
            Some(span) => span.is_open = true,
            None => return Err(ReadError::damaged("a time line has no such call")),
        }
    }
    if !line.has_all_names() {
        return Err(ReadError::damaged("a call of a time line has no name"));
    }
    line.sort();
    Ok(line)
}
