//! The wire format of protocol buffers: the fields of a message, one after the other, as they lie
//! in memory. A file has many small messages, and an object for each would need several times the
//! memory. Called by the reader; any thread.

use crate::ReadError;

/// The fields of one message.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// A field's number and content.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    /// Text, a message, or numbers one behind the other.
    Bytes(&'a [u8]),
    /// A number of 4 or 8 bytes; profiles have none.
    Fixed,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field, if there is one.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Field<'a>>, ReadError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).unwrap_or(0);
        if number == 0 {
            return Err(malformed("a field has no number"));
        }
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.rest)?),
            1 => self.fixed(8)?,
            2 => {
                let len = varint(&mut self.rest)?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.fixed(4)?,
            _ => return Err(malformed("a field is of an unknown kind")),
        };
        Ok(Some(Field { number, value }))
    }

    fn fixed(&mut self, len: u64) -> Result<Value<'a>, ReadError> {
        self.take(len).map(|_| Value::Fixed)
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], ReadError> {
        let taken = usize::try_from(len).ok();
        let taken = taken.and_then(|len| self.rest.split_at_checked(len));
        let (taken, rest) = taken.ok_or_else(cut)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl<'a> Field<'a> {
    /// The number in the field.
    pub(crate) fn unsigned(self) -> Result<u64, ReadError> {
        match self.value {
            Value::Number(number) => Ok(number),
            _ => Err(self.wrong()),
        }
    }

    /// The number in the field, which may be negative.
    pub(crate) fn signed(self) -> Result<i64, ReadError> {
        self.unsigned().map(|number| number as i64)
    }

    /// The text or message in the field.
    pub(crate) fn bytes(self) -> Result<&'a [u8], ReadError> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong()),
        }
    }

    /// Hands the numbers of a repeated field to `take`: there is one in the field, or any
    /// number.
    #[inline]
    pub(crate) fn numbers(
        self,
        mut take: impl FnMut(u64) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        match self.value {
            Value::Number(number) => take(number),
            Value::Bytes(mut rest) => {
                while !rest.is_empty() {
                    take(varint(&mut rest)?)?;
                }
                Ok(())
            }
            Value::Fixed => Err(self.wrong()),
        }
    }

    fn wrong(self) -> ReadError {
        malformed(format!("field {} is of the wrong kind", self.number))
    }
}

/// The next number: seven bits in each byte, the lowest first, and a bit that says
/// whether there are more.
#[inline]
fn varint(rest: &mut &[u8]) -> Result<u64, ReadError> {
    // Nearly all numbers are as short.
    match *rest {
        [byte, after @ ..] if *byte < 0x80 => {
            *rest = after;
            Ok(u64::from(*byte))
        }
        [low, high, after @ ..] if *high < 0x80 => {
            *rest = after;
            Ok(u64::from(*low & 0x7f) | u64::from(*high) << 7)
        }
        _ => long_varint(rest),
    }
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, ReadError> {
    const MOST_BYTES: usize = 10;
    let mut number = 0;
    for (index, byte) in rest.iter().take(MOST_BYTES).enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index + 1 == MOST_BYTES && bits > 1 {
            break;
        }
        number |= bits << (7 * index);
        if *byte < 0x80 {
            *rest = &rest[index + 1..];
            return Ok(number);
        }
    }
    Err(if rest.len() < MOST_BYTES {
        cut()
    } else {
        malformed("a number has too many bits")
    })
}

fn cut() -> ReadError {
    malformed("it ends in the middle of a field")
}

fn malformed(what: impl Into<String>) -> ReadError {
    ReadError::Malformed(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::encoding::{encode_varint, encoded_len_varint};

    fn numbers(message: &[u8]) -> Result<Vec<u64>, ReadError> {
        let mut found = Vec::new();
        let mut fields = Fields::of(message);
        while let Some(field) = fields.next()? {
            field.numbers(|number| {
                found.push(number);
                Ok(())
            })?;
        }
        Ok(found)
    }

    #[test]
    fn numbers_of_any_length_are_read() {
        let all: Vec<u64> = (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1]).collect();
        let all: Vec<u64> = all.into_iter().chain([u64::MAX]).collect();
        let mut packed = Vec::new();
        for &number in &all {
            let start = packed.len();
            encode_varint(number, &mut packed);
            assert_eq!(packed.len() - start, encoded_len_varint(number));
        }
        let mut message = vec![2 << 3 | 2];
        encode_varint(packed.len() as u64, &mut message);
        message.extend(packed);
        // One that stands alone is in the same list.
        message.extend([2 << 3, 7]);
        let expected: Vec<u64> = all.into_iter().chain([7]).collect();
        assert_eq!(numbers(&message).expect("a message"), expected);
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        let too_long = [&[8][..], &[0xff; 9], &[2]].concat();
        for (message, wanted) in [
            (&[8][..], "ends in the middle"),
            (&[8, 0x80], "ends in the middle"),
            (&[18, 2, 1], "ends in the middle"),
            (&[18, 2, 1, 0x80], "ends in the middle"),
            (&[9, 1, 2, 3], "ends in the middle"),
            (&too_long, "too many bits"),
            (&[0, 1], "no number"),
            (&[11], "unknown kind"),
            (&[15], "unknown kind"),
        ] {
            let error = numbers(message).expect_err("refused").to_string();
            assert!(error.contains(wanted), "{message:?}: {error}");
        }
    }

    #[test]
    fn a_field_of_another_kind_than_its_number_says_is_refused() {
        let field = |message: &'static [u8]| Fields::of(message).next().expect("a field");
        let (number, bytes) = (field(&[8, 3]), field(&[10, 1, 3]));
        let fixed = field(&[13, 0, 0, 0, 0]).expect("one");
        assert_eq!(number.expect("one").unsigned().expect("a number"), 3);
        assert!(number.expect("one").bytes().is_err());
        assert_eq!(bytes.expect("one").bytes().expect("bytes"), [3]);
        assert!(bytes.expect("one").signed().is_err());
        assert!(fixed.unsigned().is_err() && fixed.bytes().is_err());
        assert!(fixed.numbers(|_| Ok(())).is_err());
    }
}
