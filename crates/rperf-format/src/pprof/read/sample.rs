//! A sample that is being read. Called by the reader; any thread.

use crate::ReadError;
use crate::pprof::message::push;
use crate::pprof::proto::Label;
use crate::pprof::wire::Fields;
use prost::Message as _;

/// More than any sample has of anything. In memory each takes several times as much as
/// in the file.
const MAX: usize = 1 << 21;

/// A sample; kept for its memory when the next one is read.
#[derive(Default)]
pub(super) struct Sample {
    /// Leaf first.
    pub(super) location_ids: Vec<u64>,
    pub(super) values: Vec<i64>,
    pub(super) labels: Vec<Label>,
}

impl Sample {
    /// Takes the sample with these bytes in place of the last one.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let Self {
            location_ids,
            values,
            labels,
        } = self;
        location_ids.clear();
        values.clear();
        labels.clear();
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => field.numbers(|id| push(location_ids, id, MAX, "locations in a stack"))?,
                2 => {
                    field.numbers(|value| push(values, value as i64, MAX, "values in a sample"))?
                }
                3 => push(
                    labels,
                    Label::decode(field.bytes()?)?,
                    MAX,
                    "labels of a sample",
                )?,
                _ => {}
            }
        }
        Ok(())
    }
}
