//! Plain data, and its notation as JSON. Used by `answers`, the JSON format and the Ruby API. Any
//! thread.

use std::fmt::{self, Write};

/// The values of JSON, with fields in the order in which they were added.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Nothing is known.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number: any that a profile holds.
    Integer(i128),
    /// A number; always a finite one.
    Number(f64),
    /// Text.
    Text(String),
    /// Values in a row.
    List(Vec<Data>),
    /// Values with names.
    Fields(Vec<(&'static str, Data)>),
}

impl Data {
    /// A list of these values.
    pub fn list(items: impl IntoIterator<Item = Data>) -> Self {
        Data::List(items.into_iter().collect())
    }

    /// Fields with these names and values.
    pub fn fields(fields: impl IntoIterator<Item = (&'static str, Data)>) -> Self {
        Data::Fields(fields.into_iter().collect())
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Data::Text(text.to_string())
    }
}

impl From<i64> for Data {
    fn from(number: i64) -> Self {
        Data::Integer(number.into())
    }
}

impl From<u64> for Data {
    fn from(number: u64) -> Self {
        Data::Integer(number.into())
    }
}

impl From<usize> for Data {
    fn from(number: usize) -> Self {
        Data::from(number as u64)
    }
}

impl From<Option<i64>> for Data {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Data::Null, Data::from)
    }
}

impl From<Option<u64>> for Data {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Data::Null, Data::from)
    }
}

/// JSON in one line.
impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Null => f.write_str("null"),
            Data::Bool(yes) => write!(f, "{yes}"),
            Data::Integer(number) => write!(f, "{number}"),
            Data::Number(number) if number.is_finite() => write!(f, "{number:?}"),
            Data::Number(_) => f.write_str("null"),
            Data::Text(text) => string(f, text),
            Data::List(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    separator(f, index)?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Data::Fields(fields) => {
                f.write_char('{')?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    separator(f, index)?;
                    string(f, name)?;
                    f.write_char(':')?;
                    value.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn separator(f: &mut fmt::Formatter<'_>, index: usize) -> fmt::Result {
    if index > 0 { f.write_char(',') } else { Ok(()) }
}

fn string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            // Also characters that would end a line, or a script that holds the JSON.
            letter if letter.is_control() || matches!(letter, '<' | '\u{2028}' | '\u{2029}') => {
                write!(f, "\\u{:04x}", letter as u32)?;
            }
            letter => f.write_char(letter)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        let json = |text: &str| Data::from(text).to_string();
        assert_eq!(
            json("a\"b\\c\n</script>"),
            r#""a\"b\\c\u000a\u003c/script>""#
        );
        assert_eq!(json("Größe\u{2028}"), "\"Größe\\u2028\"");
    }

    #[test]
    fn numbers_are_whole_unless_they_are_shares() {
        let numbers = [
            Data::from(u64::MAX),
            Data::from(i64::MIN),
            Data::Number(12.5),
            Data::Number(f64::NAN),
            Data::Number(1e300),
            Data::from(None::<i64>),
        ];
        let json = Data::list(numbers).to_string();
        let back: Vec<Option<f64>> = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back[2..], [Some(12.5), None, Some(1e300), None]);
        assert!(json.starts_with("[18446744073709551615,-9223372036854775808,12.5,null,"));
    }
}
