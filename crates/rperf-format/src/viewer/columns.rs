//! The body of RPV1: columns of numbers, each LEB128, and their directory. Called by `viewer` and
//! its tables, and for replies of a port in the same form; any thread.

use prost::encoding::encode_varint;
use serde::Serialize;

/// Columns in the making.
#[derive(Debug, Default)]
pub struct Columns {
    /// Their bytes, one behind the other.
    pub body: Vec<u8>,
    /// The entries of the columns, one for each.
    pub directory: Vec<ColumnEntry>,
}

/// Where a column is, and how its numbers are written.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ColumnEntry {
    /// How many numbers it has.
    pub count: usize,
    /// How they are written.
    pub encoding: &'static str,
    /// Its bytes.
    pub length: usize,
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub offset: usize,
}

impl Columns {
    /// Numbers as they are.
    pub fn unsigned(&mut self, name: &str, numbers: impl Iterator<Item = u32>) {
        self.column(name, "uleb", numbers.map(u64::from));
    }

    /// Differences of each number to the one before.
    pub fn deltas(&mut self, name: &str, numbers: impl Iterator<Item = u32>) {
        let mut last = 0;
        let numbers = numbers.map(|number| {
            let delta = i64::from(number) - last;
            last = i64::from(number);
            zigzag(delta)
        });
        self.column(name, "delta", numbers);
    }

    /// Numbers with a sign.
    pub fn signed(&mut self, name: &str, numbers: impl Iterator<Item = i64>) {
        self.column(name, "sleb", numbers.map(zigzag));
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, name: &str, bytes: &[u8]) {
        let offset = self.body.len();
        self.body.extend_from_slice(bytes);
        self.enter(name, "bytes", offset, bytes.len());
    }

    fn column(&mut self, name: &str, encoding: &'static str, numbers: impl Iterator<Item = u64>) {
        let offset = self.body.len();
        let mut count = 0;
        for number in numbers {
            encode_varint(number, &mut self.body);
            count += 1;
        }
        self.enter(name, encoding, offset, count);
    }

    fn enter(&mut self, name: &str, encoding: &'static str, offset: usize, count: usize) {
        self.directory.push(ColumnEntry {
            count,
            encoding,
            length: self.body.len() - offset,
            name: name.into(),
            offset,
        });
    }
}

/// A number of small size whatever the sign of `number`.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_as_few_bytes_as_they_need() {
        let mut columns = Columns::default();
        columns.unsigned("a", [0, 127, 128, u32::MAX].into_iter());
        columns.deltas("b", [5, 3, 3].into_iter());
        columns.signed("c", [-1, 64, i64::MIN].into_iter());
        columns.bytes("d", b"xy");
        let expected: &[u8] = &[
            0, 127, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, // a
            10, 3, 0, // b
            1, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, // c
            b'x', b'y',
        ];
        assert_eq!(columns.body, expected);
        assert_eq!(
            columns.directory[2],
            ColumnEntry {
                count: 3,
                encoding: "sleb",
                length: 13,
                name: "c".into(),
                offset: 12,
            }
        );
    }
}
