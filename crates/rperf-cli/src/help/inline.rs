//! The text of a paragraph, heading or cell without its marks. Called by `markdown` and `table`
//! on the command's only thread.

use super::wrap::FIRM;

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
    }
}
