//! Pages of the guide as text for a terminal: headings, paragraphs, lists, tables and code, as they
//! have nothing else. Called by `help` on the command's only thread.

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

/// A space within code, where no line may end.
pub const FIRM: char = '\u{a0}';

/// Text without its marks: code as it is, links with where they lead.
pub fn inline(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[', '!']) {
        plain += &rest[..at];
        rest = &rest[at..];
        let (shown, length) = marked(rest, &plain);
        plain += &shown;
        rest = &rest[length..];
    }
    plain + rest
}

/// The text shown for the mark that `text` begins with, behind `before`, and the mark's length.
fn marked(text: &str, before: &str) -> (String, usize) {
    if text.starts_with('*') {
        return (String::new(), 1);
    }
    if let Some(picture) = text.strip_prefix('!') {
        return match link(picture) {
            Some((name, _, length)) => (format!("(picture: {name})"), length + 1),
            None => ("!".to_string(), 1),
        };
    }
    if let Some(code) = text.strip_prefix('`') {
        let length = code.find('`').unwrap_or(code.len());
        return (
            code[..length].replace(' ', &FIRM.to_string()),
            (length + 2).min(text.len()),
        );
    }
    match link(text) {
        Some((name, target, length)) => {
            let is_apart = before.trim_end().ends_with(['(', '.', ':']) || before.is_empty();
            (shown_link(&inline(name), target, is_apart), length)
        }
        None => ("[".to_string(), 1),
    }
}

/// Name, target and length of the link that the text begins with.
fn link(text: &str) -> Option<(&str, &str, usize)> {
    let (name, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, _) = rest.split_once(')')?;
    let is_whole = !name.contains([']', '[']);
    is_whole.then_some((name, target, name.len() + target.len() + 4))
}

/// A page of the guide is named as the topic that prints it, a file by its path in the gem. If the
/// link stands apart from other words, a topic's name need not be shown twice.
fn shown_link(name: &str, target: &str, is_apart: bool) -> String {
    let (path, _) = target.split_once('#').unwrap_or((target, ""));
    let (up, file) = (path.matches("../").count(), path.trim_start_matches("../"));
    let place = match up {
        _ if path.contains("://") => path.to_string(),
        _ if file.is_empty() => return name.to_string(),
        0 => {
            let topic = file.trim_end_matches(".md");
            let command = format!("rperf{FIRM}help{FIRM}{topic}");
            return if name == topic && is_apart {
                format!("'{command}'")
            } else {
                format!("{name} ('{command}')")
            };
        }
        1 => format!("docs/{file}"),
        _ => file.to_string(),
    };
    if place == name || place.trim_end_matches(".md") == format!("docs/{name}") {
        place
    } else {
        format!("{name} ({place})")
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
    fn links_say_where_they_lead() {
        for (link, shown) in [
            ("[labels](labels.md)", "'rperf help labels'"),
            (
                "[its labels](labels.md#rows)",
                "its labels ('rperf help labels')",
            ),
            ("[below](#here)", "below"),
            (
                "[figures](../internals/benchmarks.md)",
                "figures (docs/internals/benchmarks.md)",
            ),
            (
                "[internals/signals](../internals/signals.md)",
                "docs/internals/signals.md",
            ),
            ("[examples/a.rb](../../examples/a.rb)", "examples/a.rb"),
            ("[Go](https://go.dev/#x)", "Go (https://go.dev/)"),
            ("![The page](../a.png)", "(picture: The page)"),
            ("[GVL wait] isn't one!", "[GVL wait] isn't one!"),
        ] {
            assert_eq!(inline(link).replace(FIRM, " "), shown, "{link}");
        }
    }

    #[test]
    fn nothing_is_lost_where_a_mark_is_open() {
        assert_eq!(inline("a `b c").replace(FIRM, " "), "a b c");
        assert_eq!(inline("a [b](c"), "a [b](c");
        assert_eq!(render("```\nopen", 40, &str::to_uppercase), "    open\n");
    }
}
