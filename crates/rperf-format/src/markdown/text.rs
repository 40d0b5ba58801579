//! Text of a profile within Markdown. A method can have any name: readers see it as it is, and
//! nothing in it is markup, a mention or a link. Called by `markdown` and by the command's Markdown
//! of `rperf diff`; any thread.

use rperf_report::Function;
use rperf_report::numbers::grouped;
use rperf_report::one_line::{endpoint_name, function_name, one_line};

/// `text` as a code span, in which nothing is markup.
pub fn code(text: &str) -> String {
    let text = text.replace(reorders, "\u{fffd}");
    let text = one_line(&text);
    // Any run of backticks that is longer than those within can be the fence.
    let runs = text.split(|letter| letter != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    // One blank on each side is taken away again, unless there are only blanks.
    let is_blank = text.trim().is_empty();
    let at_edge = |letter| text.starts_with(letter) || text.ends_with(letter);
    let pad = if !is_blank && (at_edge('`') || at_edge(' ')) {
        " "
    } else {
        ""
    };
    match text.as_ref() {
        "" => "(none)".to_string(),
        text => format!("{fence}{pad}{text}{pad}{fence}"),
    }
}

/// Characters that would make readers see their neighbours in another order.
fn reorders(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The name of a function as a code span.
pub fn name(function: &Function) -> String {
    match function.name.as_ref() {
        "" => code(&function_name("")),
        name => code(name),
    }
}

/// A paragraph on rows that aren't shown, if there are some.
pub fn left_out(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!("\n{} more are not shown.\n", grouped(more as u64)),
    }
}

/// A path, with a line if it is known, as a code span; nothing if there is no path.
pub fn location(path: &str, line: u32) -> String {
    match (path, line) {
        ("", _) => String::new(),
        (path, 0) => code(path),
        (path, line) => code(&format!("{path}:{line}")),
    }
}

/// The name of an endpoint, or of a job, as people know it, as a code span.
pub fn endpoint(key: &str, name: &str) -> String {
    code(&endpoint_name(key, name))
}

/// The application's method and line; nothing without one.
pub fn app(app: &Option<(Function, u32)>) -> String {
    let text = app.as_ref().map(|(function, line)| {
        let location = location(&function.short_path, *line);
        format!("{} {location}", name(function))
    });
    text.unwrap_or_default().trim_end().to_string()
}

/// A method, and the application's own one that leads to it.
pub fn place(method: &Option<Function>, own: &Option<(Function, u32)>) -> String {
    match (method, own) {
        (Some(method), Some((function, _))) if method.name != function.name => {
            format!("{}, in {}", name(method), app(own))
        }
        (_, Some(_)) => app(own),
        (Some(method), None) => name(method),
        (None, None) => "no stack".into(),
    }
}

/// A table. Its first `numbers` columns are aligned to the right.
#[derive(Debug)]
pub struct Table {
    text: String,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str], numbers: usize) -> Self {
        let rules = (0..headings.len()).map(|index| if index < numbers { "--:" } else { "---" });
        let mut table = Self {
            text: String::new(),
        };
        table.line(headings.iter().map(ToString::to_string));
        table.line(rules.map(String::from));
        table
    }

    /// Adds a row. Cells are Markdown; a bar in them doesn't end them.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.line(cells.into_iter().map(|cell| cell.replace('|', "\\|")));
    }

    /// The table, with a newline at the end.
    pub fn text(self) -> String {
        self.text
    }

    fn line(&mut self, cells: impl Iterator<Item = String>) {
        self.text.push('|');
        for cell in cells {
            self.text.push_str(&format!(" {cell} |"));
        }
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_spans_hold_any_text() {
        for (text, expected) in [
            ("Array#sort", "`Array#sort`"),
            ("<script>", "`<script>`"),
            ("Kernel#`", "`` Kernel#` ``"),
            ("a``b`c", "```a``b`c```"),
            ("a\nb|c", "`a b|c`"),
            (" a ", "`  a  `"),
            ("a\u{202e}b", "`a\u{fffd}b`"),
            (" ", "` `"),
            ("", "(none)"),
        ] {
            assert_eq!(code(text), expected, "{text:?}");
        }
    }

    #[test]
    fn tables_keep_bars_in_their_cells() {
        let mut table = Table::new(&["self", "method"], 1);
        table.row(["1 ms".to_string(), code("Integer#|")]);
        let expected = "| self | method |\n| --: | --- |\n| 1 ms | `Integer#\\|` |\n";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn places_have_a_line_where_it_is_known() {
        let locations = [location("a.rb", 7), location("a.rb", 0), location("", 7)];
        assert_eq!(locations, ["`a.rb:7`", "`a.rb`", ""]);
    }
}
