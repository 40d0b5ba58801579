//! Text in lines of a width. Called by `help` for paragraphs, items and cells of tables.

use unicode_width::UnicodeWidthStr;

/// A blank within code, where no line may end.
pub const FIRM: char = '\u{a0}';

/// The text in lines, each ended; `mark` stands before the first, and the others are as far in.
pub fn wrap(text: &str, mark: &str, width: usize) -> String {
    let indent = " ".repeat(mark.width());
    let mut before = mark;
    let mut wrapped = String::new();
    for line in lines(text, width.saturating_sub(mark.width())) {
        wrapped += &format!("{before}{line}\n");
        before = &indent;
    }
    wrapped
}

/// The text in lines of at most `width` columns, but for longer words; at least one.
pub fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = word.replace(FIRM, " ");
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = word,
            Some(line) if line.width() + 1 + word.width() <= width => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
}
