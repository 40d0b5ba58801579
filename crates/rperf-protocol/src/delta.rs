//! A page of what has changed in a session that is watched, as bytes: the answer to `/v1/delta`.
//! It has the form of the viewer's data (docs/internals/viewer-format.md), without compression: a
//! header of JSON, and columns. As most answers are small, the header's `columns` is shorter: an
//! array of name, encoding, length and count for each that isn't empty, in the order of their bytes.
//! Written on the port's thread; read by the client, who takes it for hostile.

mod read;

pub use read::BadDelta;

use crate::json;
use rperf_format::viewer::{ColumnEntry, Columns, MAGIC};
use rperf_model::numbers::signed;
use rperf_model::shared_sums::{Changes, SumsValues};
use rperf_model::{LabelSet, Mode, StringId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What comes with the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The VM has brought the sums up to date for this answer.
    pub is_fresh: bool,
    /// When it was given, on the monotonic clock.
    pub clock_ns: u64,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// What has changed.
    pub changes: Changes,
    /// And up to when.
    pub freshness: Freshness,
}

/// What stands in front of the columns.
#[derive(Serialize, Deserialize)]
struct Header<'a> {
    as_of_ns: u64,
    /// Missing where it is not so.
    #[serde(default, skip_serializing_if = "is_false")]
    blames: bool,
    clock_ns: u64,
    columns: Vec<Column<'a>>,
    cursor: String,
    dropped_ns: u64,
    frequency: u32,
    fresh: bool,
    #[serde(with = "mode_name")]
    mode: Mode,
    more: bool,
    reset: bool,
    sampling_ns: u64,
    start_ns: u64,
    version: u32,
}

/// Name, encoding, bytes and numbers of a column. It stays these four: what is new is a key of the
/// header, or another column.
#[derive(Serialize, Deserialize)]
struct Column<'a>(Cow<'a, str>, Cow<'a, str>, usize, usize);

impl Delta {
    /// The body as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut columns = Columns::default();
        write(&self.changes, &mut columns);
        let Changes { facts, .. } = &self.changes;
        let directory = columns.directory.iter().filter(|it| it.length > 0);
        let entry = |it: &'_ ColumnEntry| {
            Column(
                it.name.clone().into(),
                it.encoding.into(),
                it.length,
                it.count,
            )
        };
        let header = json::written(&Header {
            as_of_ns: facts.as_of_ns,
            blames: facts.blames,
            clock_ns: self.freshness.clock_ns,
            columns: directory.map(entry).collect(),
            cursor: self.changes.cursor.to_string(),
            dropped_ns: facts.dropped_ns,
            frequency: facts.frequency,
            fresh: self.freshness.is_fresh,
            mode: facts.mode,
            more: self.changes.more,
            reset: self.changes.reset,
            sampling_ns: facts.sampling_ns,
            start_ns: facts.start_ns,
            version: 1,
        });
        let length = (header.len() as u32).to_le_bytes();
        [MAGIC, &length, header.as_bytes(), &columns.body].concat()
    }
}

fn write(changes: &Changes, columns: &mut Columns) {
    let Changes {
        strings,
        frames,
        nodes,
        label_sets,
        rows,
        ..
    } = changes;
    columns.unsigned("strings/length", strings.iter().map(|it| it.len() as u32));
    columns.bytes("strings/text", strings.concat().as_bytes());
    columns.unsigned("frames/name", frames.iter().map(|it| it.name.0));
    columns.unsigned("frames/file", frames.iter().map(|it| it.path.0));
    columns.unsigned("frames/line", frames.iter().map(|it| it.first_line));
    columns.deltas("nodes/parent", nodes.iter().map(|it| it.parent.0));
    columns.unsigned("nodes/frame", nodes.iter().map(|it| it.frame.0));
    columns.unsigned("nodes/line", nodes.iter().map(|it| it.line));
    let lengths = label_sets.iter().map(|set| set.len() as u32);
    columns.unsigned("label_sets/length", lengths);
    let labels = |of: fn(&(StringId, StringId)) -> u32| {
        label_sets
            .iter()
            .flat_map(move |set: &LabelSet| set.iter().map(of))
    };
    columns.unsigned("labels/key", labels(|label| label.0.0));
    columns.unsigned("labels/value", labels(|label| label.1.0));
    columns.deltas("rows/node", rows.iter().map(|row| row.key.node.0));
    columns.unsigned("rows/thread", rows.iter().map(|row| row.key.thread));
    columns.unsigned("rows/label_set", rows.iter().map(|row| row.key.labels.0));
    columns.unsigned("rows/state", rows.iter().map(|row| row.key.state as u32));
    let mut values = |name: &str, of: fn(&SumsValues) -> u64| {
        columns.signed(name, rows.iter().map(|row| signed(of(&row.values))));
    };
    values("rows/count", |values| values.count);
    values("rows/wall", |values| values.wall_ns);
    values("rows/cpu", |values| values.cpu_ns);
    if changes.facts.blames {
        values("rows/blame", |values| values.blame_ns);
    }
}

/// The mode as its name. A page in another one can't be read: what its times are isn't known.
mod mode_name {
    use rperf_model::Mode;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's attribute wants it so"
    )]
    pub fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(mode.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Mode::from_name(&name).ok_or_else(|| D::Error::custom("no mode of samples"))
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's attribute wants it so"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
