//! Messages as JSON. What is read is hostile: no text in it commands a terminal afterwards.

use rperf_report::terminal_text::is_harmful;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A reply isn't what a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what answers there is no port of rperf's")]
pub struct NotAReply;

/// The message as JSON. The keys of all messages are texts, so nothing can fail.
pub fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// The message in `body`, whose texts are fit to be [shown](rperf_report::terminal_text::shown).
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, NotAReply> {
    let text = std::str::from_utf8(body).map_err(|_| NotAReply)?;
    serde_json::from_str(&cleaned(text)).map_err(|_| NotAReply)
}

/// JSON with a blank for each harmful character of its texts, whether or not it is escaped.
fn cleaned(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => clean_escape(&mut rest, &mut text),
            // JSON has none of the others inside of texts.
            ' '.. if is_harmful(character) => text.push(' '),
            _ => text.push(character),
        }
    }
    text
}

/// What comes behind a backslash.
fn clean_escape(rest: &mut std::str::Chars<'_>, text: &mut String) {
    match rest.next() {
        Some('b' | 'f' | 'n' | 'r' | 't') => text.push(' '),
        Some('u') => {
            let digits = rest.as_str().get(..4);
            let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            if number.and_then(char::from_u32).is_some_and(is_harmful) {
                text.push(' ');
                rest.nth(3);
            } else {
                text.push_str("\\u");
            }
        }
        other => {
            text.push('\\');
            text.extend(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_report::terminal_text::shown;
    use std::collections::BTreeMap;

    #[test]
    fn no_text_commands_a_terminal() {
        let body = br#"{"a\u009b":["\u001b[2J\n\\n\"","\u202e","\ud83d\ude42\u00e9"]}"#;
        let found: BTreeMap<String, Vec<String>> = read(body).expect("JSON");
        let texts = [" [2J \\n\"", " ", "🙂é"].map(String::from);
        assert_eq!(found, [("a ".into(), texts.into())].into());
        for odd in [&b"\"\x1b\""[..], b"\"\\x\"", b"\"\\u00\"", b"\"\xff\"", b""] {
            assert_eq!(read::<String>(odd), Err(NotAReply), "{odd:?}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_read_as_it_is_shown(text: String, odd in "[\\\\\"\u{0}-\u{20}\u{7f}-\u{a0}\u{202e}]{0,9}") {
            for text in [text, odd] {
                prop_assert_eq!(read::<String>(written(&text).as_bytes()), Ok(shown(&text).into_owned()));
            }
        }

        #[test]
        fn no_bytes_make_the_reader_fail(text in "[\\\\u0-9a-f\"é\u{9b}]{0,30}") {
            let _ = read::<String>(text.as_bytes());
        }
    }
}
