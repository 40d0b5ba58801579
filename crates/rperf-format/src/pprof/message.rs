//! A pprof file that is being read: its single fields, and where its repeated fields lie in memory.
//! Called by the reader; any thread.

use super::proto::{Line, ValueType};
use super::wire::{Field, Fields};
use super::{collections, latencies, ops, requests, suite, time_lines};
use crate::ReadError;
use prost::Message as _;
use rperf_model::{Latencies, Ops, Requests, Suite};

/// The whole file.
#[derive(Default)]
pub(crate) struct Message<'a> {
    bytes: &'a [u8],
    /// Rows that a table may have. Each takes more memory than it has bytes.
    pub(crate) max_rows: usize,
    pub(crate) sample_types: Vec<ValueType>,
    /// Each a [`super::proto::Mapping`].
    pub(crate) mappings: Vec<&'a [u8]>,
    pub(crate) locations: Vec<&'a [u8]>,
    /// Each a [`super::proto::Function`].
    pub(crate) functions: Vec<&'a [u8]>,
    pub(crate) texts: Vec<&'a [u8]>,
    pub(crate) comments: Vec<i64>,
    pub(crate) time_nanos: i64,
    pub(crate) duration_nanos: i64,
    pub(crate) period_type: Option<ValueType>,
    pub(crate) period: i64,
    pub(crate) default_sample_type: i64,
    /// Each a time line.
    pub(crate) time_lines: Vec<&'a [u8]>,
    time_line_bytes: usize,
    /// Each of a method.
    pub(crate) latencies: Vec<&'a [u8]>,
    /// Each an entry.
    pub(crate) suite: Vec<&'a [u8]>,
    suite_bytes: usize,
    /// Each of an endpoint.
    pub(crate) requests: Vec<&'a [u8]>,
    /// Each an entry.
    pub(crate) ops: Vec<&'a [u8]>,
    op_bytes: usize,
    /// Each of a cause.
    pub(crate) collections: Vec<&'a [u8]>,
}

const SAMPLE: u32 = 2;

/// Processes whose time lines a file may have.
const MAX_TIME_LINES: usize = 100_000;

impl<'a> Message<'a> {
    /// The parts of the file with these bytes.
    pub(crate) fn of(bytes: &'a [u8], max_rows: usize) -> Result<Self, ReadError> {
        let mut message = Self {
            bytes,
            max_rows,
            ..Self::default()
        };
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            message.take(field)?;
        }
        Ok(message)
    }

    fn take(&mut self, field: Field<'a>) -> Result<(), ReadError> {
        let max = self.max_rows;
        match field.number {
            1 => {
                let sample_type = ValueType::decode(field.bytes()?)?;
                push(&mut self.sample_types, sample_type, max, "sample types")?;
            }
            SAMPLE => {
                field.bytes()?;
            }
            3 => push(&mut self.mappings, field.bytes()?, max, "mappings")?,
            4 => push(&mut self.locations, field.bytes()?, max, "locations")?,
            5 => push(&mut self.functions, field.bytes()?, max, "functions")?,
            6 => push(&mut self.texts, field.bytes()?, max, "strings")?,
            9 => self.time_nanos = field.signed()?,
            10 => self.duration_nanos = field.signed()?,
            11 => {
                let period_type = self.period_type.get_or_insert_default();
                period_type.merge(field.bytes()?)?;
            }
            12 => self.period = field.signed()?,
            13 => field.numbers(|text| push(&mut self.comments, text as i64, max, "comments"))?,
            14 => self.default_sample_type = field.signed()?,
            latencies::FIELD => {
                let most = max.min(Latencies::MOST);
                push(
                    &mut self.latencies,
                    field.bytes()?,
                    most,
                    "methods with durations",
                )?;
            }
            requests::FIELD => {
                let most = max.min(Requests::MOST);
                push(&mut self.requests, field.bytes()?, most, "endpoints")?;
            }
            time_lines::FIELD => self.add_time_line(field.bytes()?)?,
            suite::FIELD => self.add_test(field.bytes()?)?,
            ops::FIELD => self.add_op(field.bytes()?)?,
            collections::FIELD => {
                let most = max.min(collections::MOST);
                push(&mut self.collections, field.bytes()?, most, "causes")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_time_line(&mut self, bytes: &'a [u8]) -> Result<(), ReadError> {
        let (most, unit) = (time_lines::MAX_BYTES, "bytes of time lines");
        add_bytes(&mut self.time_line_bytes, bytes, most, unit)?;
        let most = self.max_rows.min(MAX_TIME_LINES);
        push(&mut self.time_lines, bytes, most, "time lines")
    }

    fn add_test(&mut self, bytes: &'a [u8]) -> Result<(), ReadError> {
        add_bytes(
            &mut self.suite_bytes,
            bytes,
            suite::MAX_BYTES,
            "bytes of tests",
        )?;
        let most = self.max_rows.min(2 * Suite::MOST);
        push(&mut self.suite, bytes, most, "tests")
    }

    fn add_op(&mut self, bytes: &'a [u8]) -> Result<(), ReadError> {
        add_bytes(&mut self.op_bytes, bytes, ops::MAX_BYTES, "bytes of ops")?;
        let most = self.max_rows.min(2 * Ops::MOST);
        push(&mut self.ops, bytes, most, "ops")
    }

    /// The samples, in the file's order.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Result<&'a [u8], ReadError>> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || {
            loop {
                match fields.next() {
                    Ok(Some(field)) if field.number == SAMPLE => return Some(field.bytes()),
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }
}

/// Adds the length of `bytes` to that of all fields of this kind, of which a file has `most`.
fn add_bytes(
    all: &mut usize,
    bytes: &[u8],
    most: usize,
    unit: &'static str,
) -> Result<(), ReadError> {
    *all += bytes.len();
    let limit = most as u64;
    match *all > most {
        true => Err(ReadError::TooLarge { limit, unit }),
        false => Ok(()),
    }
}

/// A location without its lines.
#[derive(Default)]
pub(crate) struct Location {
    pub(crate) id: u64,
    pub(crate) mapping_id: u64,
    pub(crate) address: u64,
}

impl Location {
    /// The location with these bytes; its lines are handed to `take`.
    pub(crate) fn read(
        bytes: &[u8],
        mut take: impl FnMut(Line) -> Result<(), ReadError>,
    ) -> Result<Self, ReadError> {
        let mut location = Self::default();
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => location.id = field.unsigned()?,
                2 => location.mapping_id = field.unsigned()?,
                3 => location.address = field.unsigned()?,
                4 => take(Line::decode(field.bytes()?)?)?,
                _ => {}
            }
        }
        Ok(location)
    }
}

/// Adds a row to a table that may not grow without end.
pub(crate) fn push<T>(
    table: &mut Vec<T>,
    row: T,
    max: usize,
    unit: &'static str,
) -> Result<(), ReadError> {
    if table.len() >= max {
        let limit = max as u64;
        return Err(ReadError::TooLarge { limit, unit });
    }
    table.push(row);
    Ok(())
}
