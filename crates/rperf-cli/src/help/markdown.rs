//! Pages of the guide as text for a terminal: headings, paragraphs, lists, tables and code, as they
//! have nothing else. Called by `help` on the command's only thread.

use super::inline::inline;
use super::table;
use super::wrap::wrap;

/// How a heading is shown: bold on a terminal.
pub type Heading<'a> = &'a dyn Fn(&str) -> String;

/// A stretch of a page.
enum Block<'a> {
    Heading(&'a str),
    /// Lines between two fences.
    Code(Vec<&'a str>),
    /// Lines that begin with a bar.
    Table(Vec<&'a str>),
    /// The mark of an item ("- ", "1. ") or nothing, and the lines of its text.
    Text(&'a str, Vec<&'a str>),
    Gap,
}

/// The page as text, in lines of at most `width` columns but for code.
pub fn render(page: &str, width: usize, heading: Heading<'_>) -> String {
    let mut text = String::new();
    for block in blocks(page) {
        match block {
            Block::Heading(title) => text += &format!("{}\n", heading(&inline(title))),
            Block::Code(lines) => {
                for line in lines {
                    text += format!("    {line}").trim_end();
                    text.push('\n');
                }
            }
            Block::Table(rows) => text += &table::render(&rows, width),
            Block::Text(mark, lines) => text += &wrap(&inline(&lines.join(" ")), mark, width),
            Block::Gap => text.push('\n'),
        }
    }
    text
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
            blocks.push(Block::Code(code.collect()));
        } else if line.starts_with('#') {
            blocks.push(Block::Heading(line.trim_start_matches(['#', ' '])));
        } else if line.is_empty() {
            blocks.push(Block::Gap);
        } else {
            add(&mut blocks, line);
        }
    }
    blocks
}

/// Adds a line to the table or text that it goes on with, or begins one.
fn add<'a>(blocks: &mut Vec<Block<'a>>, line: &'a str) {
    let mark = mark(line);
    match blocks.last_mut() {
        Some(Block::Table(rows)) if line.starts_with('|') => rows.push(line),
        Some(Block::Text(_, lines)) if mark.is_empty() => lines.push(line.trim()),
        _ if line.starts_with('|') => blocks.push(Block::Table(vec![line])),
        _ => blocks.push(Block::Text(mark, vec![line[mark.len()..].trim()])),
    }
}

/// The mark that makes the line an item of a list; empty if it is none.
fn mark(line: &str) -> &str {
    let rest = line.trim_start_matches(|it: char| it.is_ascii_digit());
    let is_number = rest.len() < line.len() && rest.starts_with(". ");
    if is_number {
        &line[..line.len() - rest.len() + 2]
    } else if line.starts_with("- ") {
        &line[..2]
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(page: &str) -> String {
        render(page, 40, &str::to_uppercase)
    }

    #[test]
    fn headings_are_set_off_and_text_is_wrapped() {
        let page = "# A title\n\nSome **strong** words, and `code here`, in lines\nof their own, *quite* many.\n";
        assert_eq!(
            plain(page),
            "A TITLE\n\nSome strong words, and code here, in\nlines of their own, quite many.\n"
        );
    }

    #[test]
    fn items_hang() {
        let page = "- one that goes on for longer than a line has\n  columns\n- two\n\n1. first\n";
        assert_eq!(
            plain(page),
            "- one that goes on for longer than a\n  line has columns\n- two\n\n1. first\n"
        );
    }

    #[test]
    fn code_is_indented_and_left_alone() {
        let page = "So:\n\n```sh norun: a reason\nrperf  report *.gz  # `a` | b\n\nnext\n```\n";
        assert_eq!(
            plain(page),
            "So:\n\n    rperf  report *.gz  # `a` | b\n\n    next\n"
        );
    }

    #[test]
    fn nothing_is_lost_where_a_fence_is_open() {
        assert_eq!(render("```\nopen", 40, &str::to_uppercase), "    open\n");
    }
}
