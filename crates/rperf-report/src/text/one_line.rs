//! Names made fit for lines of text. Used by the formats, by filters and by the command;
//! any thread.

use crate::text::terminal_text::shown;
use std::borrow::Cow;

/// `text` without characters that could break a line, command a terminal, or turn the text behind them
/// around: Ruby lets methods have any name.
pub fn one_line(text: &str) -> Cow<'_, str> {
    shown(text)
}

/// A function's name for one line. Some readers would drop an empty one.
pub fn function_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        Cow::Borrowed("(unnamed)")
    } else {
        one_line(name)
    }
}

/// An endpoint as people know it, of the key of its label and its name.
pub fn endpoint_name(key: &str, name: &str) -> String {
    let name = one_line(name);
    match key {
        "endpoint" => name.into_owned(),
        key => format!("{}={name}", one_line(key)),
    }
}

/// Bytes that the name or path of a frame may have: those of C++ templates can be long,
/// and a page may show each of them thousands of times.
pub const MAX_NAME: usize = 16 << 10;

/// `name` without the end of a very long one, which nobody reads.
pub fn without_end(name: &str) -> Cow<'_, str> {
    const END: &str = "…";
    if name.len() <= MAX_NAME {
        return Cow::Borrowed(name);
    }
    let mut end = MAX_NAME - END.len();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}{END}", &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME, function_name, one_line, without_end};

    #[test]
    fn only_very_long_names_lose_their_end() {
        let long = "計".repeat(MAX_NAME);
        let fits = &long[..MAX_NAME / 3 * 3];
        assert_eq!(without_end(fits), fits);
        let cut = without_end(&long);
        assert!(cut.len() <= MAX_NAME && cut.len() > MAX_NAME - 6);
        assert!(cut.ends_with("計…"));
        assert_eq!(without_end(&cut), cut);
    }

    #[test]
    fn functions_always_have_a_name() {
        assert_eq!(function_name(""), "(unnamed)");
        assert_eq!(function_name("a\tb"), "a b");
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{85}"), "a b [31m ");
        assert_eq!(one_line("Größe#計算"), "Größe#計算");
        assert_eq!(one_line("a\u{202e}b\u{2066}c\u{2028}d"), "a b c d");
    }
}
