//! Names as text of a DOT file: whatever is in them, they stay text. Used by `dot`; any thread.

use rperf_report::one_line::function_name;

/// Characters of a name in a node. Longer ones lose their middle.
const MAX_LABEL: usize = 80;
/// Characters of a name in a tooltip.
const MAX_TOOLTIP: usize = 1_000;
/// Characters of a line in a node, as far as there is a place to break it.
const LINE: usize = 28;

/// `text` between quotes: Graphviz takes a backslash for an escape, and an ampersand for the
/// beginning of an entity. What can't be in XML, and so in an SVG, becomes a space.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for part in text.chars() {
        match part {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '&' => escaped.push_str("&amp;"),
            part if part.is_control() => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            part => escaped.push(part),
        }
    }
    escaped
}

/// A name as the lines of a node.
pub(super) fn name_lines(name: &str) -> Vec<String> {
    let name = shortened(&function_name(name), MAX_LABEL);
    let mut lines = vec![String::new()];
    for piece in pieces(&name) {
        let last = lines.last_mut().expect("there is a line");
        if !last.is_empty() && last.chars().count() + piece.chars().count() > LINE {
            lines.push(piece.to_string());
        } else {
            last.push_str(piece);
        }
    }
    lines
}

/// A name for a tooltip.
pub(super) fn tooltip_name(name: &str) -> String {
    shortened(&function_name(name), MAX_TOOLTIP)
}

/// The last two parts of a path, in a line of a node.
pub(super) fn path_end(path: &str) -> String {
    let mut slashes = path.rmatch_indices('/');
    let end = match slashes.nth(1) {
        Some((place, _)) => &path[place + 1..],
        None => path,
    };
    shortened(&function_name(end), MAX_LABEL)
}

/// `text` without its middle, if it has more than `most` characters.
fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_string();
    }
    let first = most / 2;
    let last = most - first - 1;
    let begin: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(count - last).collect();
    format!("{begin}…{end}")
}

/// The parts between which a name may be broken: after `::`, `/` and ` in `, before `#`.
fn pieces(name: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(end) = piece_end(rest) {
        let (piece, next) = rest.split_at(end);
        pieces.push(piece);
        rest = next;
    }
    pieces.push(rest);
    pieces
}

/// Where the first piece of `text` ends, if there is another one.
fn piece_end(text: &str) -> Option<usize> {
    let mut places = text.char_indices().skip(1);
    let found = places.find_map(|(place, part)| match part {
        '#' => Some(place),
        ':' if text[..place].ends_with(':') => Some(place + 1),
        ' ' if text[..place].ends_with(" in") => Some(place + 1),
        '/' => Some(place + 1),
        _ => None,
    });
    found.filter(|end| *end < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_graphviz_would_read_is_escaped() {
        assert_eq!(escaped(r#"a"b\nc&lt;<b>"#), r#"a\"b\\nc&amp;lt;<b>"#);
        assert_eq!(escaped("a\nb\0c\u{ffff}é"), "a b c é");
        assert_eq!(escaped("\\"), "\\\\");
    }

    #[test]
    fn names_are_broken_where_their_parts_are() {
        for (name, lines) in [
            ("Order#total", &["Order#total"][..]),
            ("", &["(unnamed)"]),
            ("#", &["#"]),
            ("::", &["::"]),
            (
                "ActiveRecord::ConnectionAdapters::Transaction#commit",
                &[
                    "ActiveRecord::",
                    "ConnectionAdapters::",
                    "Transaction#commit",
                ],
            ),
            (
                "block (2 levels) in Shop::Order.find_each",
                &["block (2 levels) in Shop::", "Order.find_each"],
            ),
            (
                "block (2 levels) in <top (required)>",
                &["block (2 levels) in ", "<top (required)>"],
            ),
            (
                "/srv/app/models/concerns/priced/with_taxes.rb",
                &["/srv/app/models/concerns/", "priced/with_taxes.rb"],
            ),
        ] {
            assert_eq!(name_lines(name), lines, "{name}");
        }
    }

    #[test]
    fn long_names_lose_their_middle() {
        let long = format!("計{}算", "a".repeat(100));
        let [line] = &name_lines(&long)[..] else {
            panic!("one line");
        };
        assert_eq!(line.chars().count(), MAX_LABEL);
        assert!(line.starts_with('計') && line.contains('…') && line.ends_with('算'));
        assert_eq!(tooltip_name(&long), long);
        assert_eq!(tooltip_name(&long.repeat(50)).chars().count(), MAX_TOOLTIP);
    }

    #[test]
    fn of_a_path_its_end_is_shown() {
        assert_eq!(path_end("/srv/app/order.rb"), "app/order.rb");
        assert_eq!(path_end("/order.rb"), "/order.rb");
        assert_eq!(path_end("<C method>"), "<C method>");
        assert_eq!(path_end("/a\n/"), "a /");
    }
}
