//! Names made fit for lines of text. Used by the text formats and by the command; any
//! thread.

use std::borrow::Cow;

/// `text` without control characters, which could break a line or command a
/// terminal: Ruby lets methods have any name.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        Cow::Owned(text.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// A function's name for one line. Some readers would drop an empty one.
pub fn function_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        Cow::Borrowed("(unnamed)")
    } else {
        one_line(name)
    }
}

#[cfg(test)]
mod tests {
    use super::{function_name, one_line};

    #[test]
    fn functions_always_have_a_name() {
        assert_eq!(function_name(""), "(unnamed)");
        assert_eq!(function_name("a\tb"), "a b");
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{85}"), "a b [31m ");
        assert_eq!(one_line("Größe#計算"), "Größe#計算");
    }
}
