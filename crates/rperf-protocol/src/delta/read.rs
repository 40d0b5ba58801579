//! Reads what [`Delta::to_bytes`] writes, or what a hostile server sends in its place: each number
//! and length is checked, and nothing is allocated that the bytes don't account for.

use super::{Column, Delta, Freshness, Header};
use rperf_format::viewer::MAGIC;
use rperf_model::shared_sums::{Changes, SumsFacts, SumsRow, SumsValues};
use rperf_model::{Frame, FrameId, LabelSet, LabelSetId, Node, NodeId, State, StringId, WeightKey};

/// Bytes that a number has at most.
const MAX_NUMBER: usize = 10;

/// Bytes of the header at most.
const MAX_HEADER: usize = 64 << 10;

/// Numbers in a column at most.
const MAX_COUNT: usize = 1 << 20;

/// What came is no page of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what it sends can't be read: is its rperf another version?")]
pub struct BadDelta;

impl Delta {
    /// The body that these bytes are. What its numbers refer to is not known here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadDelta> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(BadDelta)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(BadDelta)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (header, body) = rest.split_at_checked(length).ok_or(BadDelta)?;
        if header.len() > MAX_HEADER {
            return Err(BadDelta);
        }
        let header: Header<'_> = serde_json::from_slice(header).map_err(|_| BadDelta)?;
        let columns = ReadColumns {
            directory: &header.columns,
            body,
        };
        if header.version != 1 {
            return Err(BadDelta);
        }
        Ok(Delta {
            changes: Changes {
                facts: SumsFacts {
                    mode: header.mode,
                    frequency: header.frequency,
                    blames: header.blames,
                    start_ns: header.start_ns,
                    as_of_ns: header.as_of_ns,
                    sampling_ns: header.sampling_ns,
                    dropped_ns: header.dropped_ns,
                },
                reset: header.reset,
                more: header.more,
                cursor: header.cursor.parse().map_err(|()| BadDelta)?,
                strings: columns.strings()?,
                frames: columns.frames()?,
                nodes: columns.nodes()?,
                label_sets: columns.label_sets()?,
                rows: columns.rows()?,
            },
            freshness: Freshness {
                is_fresh: header.fresh,
                clock_ns: header.clock_ns,
            },
        })
    }
}

struct ReadColumns<'a> {
    directory: &'a [Column<'a>],
    body: &'a [u8],
}

impl ReadColumns<'_> {
    /// The bytes of a column, its encoding, and how many numbers it has; none if it is missing.
    fn column(&self, name: &str) -> Result<(&[u8], &str, usize), BadDelta> {
        let mut rest = self.body;
        for Column(found, encoding, length, count) in self.directory {
            let (bytes, others) = rest.split_at_checked(*length).ok_or(BadDelta)?;
            rest = others;
            if found != name {
                continue;
            }
            // Each number has a byte at least.
            let count = Some(*count).filter(|count| count <= length);
            return Ok((bytes, encoding, count.ok_or(BadDelta)?));
        }
        Ok((&[], "uleb", 0))
    }

    fn numbers(&self, name: &str) -> Result<Vec<i64>, BadDelta> {
        let (mut bytes, encoding, count) = self.column(name)?;
        if count > MAX_COUNT {
            return Err(BadDelta);
        }
        let mut numbers = Vec::with_capacity(count);
        let mut last = 0_i64;
        for _ in 0..count {
            let number = take_number(&mut bytes)?;
            let signed = (number >> 1) as i64 ^ -((number & 1) as i64);
            numbers.push(match encoding {
                "uleb" => i64::try_from(number).map_err(|_| BadDelta)?,
                "sleb" => signed,
                "delta" => {
                    last = last.checked_add(signed).ok_or(BadDelta)?;
                    last
                }
                _ => return Err(BadDelta),
            });
        }
        if bytes.is_empty() {
            Ok(numbers)
        } else {
            Err(BadDelta)
        }
    }

    fn small(&self, name: &str) -> Result<Vec<u32>, BadDelta> {
        let numbers = self.numbers(name)?.into_iter();
        let small = numbers.map(|number| u32::try_from(number).map_err(|_| BadDelta));
        small.collect()
    }

    fn strings(&self) -> Result<Vec<String>, BadDelta> {
        let (mut text, _, _) = self.column("strings/text")?;
        let mut strings = Vec::new();
        for length in self.small("strings/length")? {
            let (string, rest) = text.split_at_checked(length as usize).ok_or(BadDelta)?;
            let string = std::str::from_utf8(string).map_err(|_| BadDelta)?;
            strings.push(string.into());
            text = rest;
        }
        if text.is_empty() {
            Ok(strings)
        } else {
            Err(BadDelta)
        }
    }

    fn frames(&self) -> Result<Vec<Frame>, BadDelta> {
        let [names, files, lines] =
            table(["frames/name", "frames/file", "frames/line"].map(|name| self.small(name)))?;
        let frame = |row: usize| Frame {
            name: StringId(names[row]),
            path: StringId(files[row]),
            first_line: lines[row],
        };
        Ok((0..names.len()).map(frame).collect())
    }

    fn nodes(&self) -> Result<Vec<Node>, BadDelta> {
        let [parents, frames, lines] =
            table(["nodes/parent", "nodes/frame", "nodes/line"].map(|name| self.small(name)))?;
        let node = |row: usize| Node {
            parent: NodeId(parents[row]),
            frame: FrameId(frames[row]),
            line: lines[row],
        };
        Ok((0..parents.len()).map(node).collect())
    }

    fn label_sets(&self) -> Result<Vec<LabelSet>, BadDelta> {
        let [keys, values] = table(["labels/key", "labels/value"].map(|name| self.small(name)))?;
        let mut labels = keys.into_iter().zip(values);
        let mut sets = Vec::new();
        for length in self.small("label_sets/length")? {
            let set: LabelSet = (&mut labels)
                .take(length as usize)
                .map(|(key, value)| (StringId(key), StringId(value)))
                .collect();
            if set.len() != length as usize {
                return Err(BadDelta);
            }
            sets.push(set);
        }
        if labels.next().is_none() {
            Ok(sets)
        } else {
            Err(BadDelta)
        }
    }

    fn rows(&self) -> Result<Vec<SumsRow>, BadDelta> {
        let names = ["rows/node", "rows/thread", "rows/label_set", "rows/state"];
        let [nodes, threads, sets, states] = table(names.map(|name| self.small(name)))?;
        let [counts, walls, cpus] =
            table(["rows/count", "rows/wall", "rows/cpu"].map(|name| self.numbers(name)))?;
        // Only sessions that measure it have this one.
        let blame = self.numbers("rows/blame")?;
        if counts.len() != nodes.len() || ![0, nodes.len()].contains(&blame.len()) {
            return Err(BadDelta);
        }
        let value = |number: i64| u64::try_from(number).map_err(|_| BadDelta);
        let row = |row: usize| {
            Ok(SumsRow {
                key: WeightKey {
                    node: NodeId(nodes[row]),
                    thread: threads[row],
                    labels: LabelSetId(sets[row]),
                    state: *State::ALL.get(states[row] as usize).ok_or(BadDelta)?,
                },
                values: SumsValues {
                    count: value(counts[row])?,
                    wall_ns: value(walls[row])?,
                    cpu_ns: value(cpus[row])?,
                    blame_ns: value(blame.get(row).copied().unwrap_or(0))?,
                },
            })
        };
        (0..nodes.len()).map(row).collect()
    }
}

/// The columns of a table, which are of one length.
fn table<T, const N: usize>(
    columns: [Result<Vec<T>, BadDelta>; N],
) -> Result<[Vec<T>; N], BadDelta> {
    let columns: Vec<Vec<T>> = columns.into_iter().collect::<Result<_, _>>()?;
    let is_even = columns
        .iter()
        .all(|column| column.len() == columns[0].len());
    columns.try_into().ok().filter(|_| is_even).ok_or(BadDelta)
}

fn take_number(bytes: &mut &[u8]) -> Result<u64, BadDelta> {
    let mut number = 0_u64;
    for place in 0..MAX_NUMBER {
        let (&byte, rest) = bytes.split_first().ok_or(BadDelta)?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        // The last byte has room for one bit.
        if place == MAX_NUMBER - 1 && byte > 1 {
            return Err(BadDelta);
        }
        number |= part << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(BadDelta)
}
