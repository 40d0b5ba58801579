//! Text of other programs, made fit for a terminal. Used by the client of ports, by the
//! command, and for what servers say; any thread.

use std::borrow::Cow;

/// Characters that change the direction of the text behind them, or are not seen at all.
const INVISIBLE: [(char, char); 6] = [
    ('\u{061c}', '\u{061c}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{2069}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
];

/// `text` with a blank for each character that could command a terminal, or make a line look like
/// another one.
pub fn shown(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_harmful) {
        Cow::Owned(text.replace(is_harmful, " "))
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether a terminal doesn't just show it.
pub fn is_harmful(character: char) -> bool {
    let is_invisible = |&(first, last)| (first..=last).contains(&character);
    character.is_control() || INVISIBLE.iter().any(is_invisible)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_commands_a_terminal_or_turns_text_around_is_a_blank() {
        assert_eq!(
            shown("a\u{1b}[2Jb\u{9b}c\u{202e}d\u{2066}e\r\n"),
            "a [2Jb c d e  "
        );
        assert_eq!(shown("Größe#計算 🙂"), "Größe#計算 🙂");
    }
}
