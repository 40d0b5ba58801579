//! Names and paths in a number of columns: what is too long loses its middle. Used by tables and by
//! the command; any thread.

use rperf_report::one_line::MAX_NAME;
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// Names aren't made shorter than this: nobody would know them any more.
pub const LEAST: usize = 16;

/// Stands for what is left out.
const DOTS: &str = "…";

/// How many columns of a terminal `text` takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// `text` in `room` columns at most. Of a path the file's name stays as long as it fits, of a
/// method's name its end and the beginning of the class.
pub fn shortened(text: &str, room: usize) -> Cow<'_, str> {
    if columns(text) <= room {
        return Cow::Borrowed(text);
    }
    let room = room.saturating_sub(columns(DOTS));
    let (last, front) = match last_part(text) {
        Last::File(at) => (at, 0),
        Last::Method(at) => (at, room / 4),
    };
    let wanted = columns(&text[last..]).max(room / 2);
    let tail = end(text, wanted.min(room - front));
    let head = beginning(text, room - columns(tail));
    Cow::Owned(format!("{head}{DOTS}{tail}"))
}

/// `text` in `room` columns at most, without its end: that of source, or of prose.
pub fn cut(text: &str, room: usize) -> Cow<'_, str> {
    match columns(text) <= room {
        true => Cow::Borrowed(text),
        false => {
            let room = room.saturating_sub(columns(DOTS));
            Cow::Owned(format!("{}{DOTS}", beginning(text, room)))
        }
    }
}

/// The fewest columns of which [`shortened`] makes something that can still be known.
pub fn least_columns(text: &str) -> usize {
    let at = match last_part(text) {
        Last::File(at) | Last::Method(at) => at,
    };
    let last = columns(&text[at..]) + columns(DOTS);
    last.min(LEAST).min(columns(text))
}

/// Where the part begins that says most.
enum Last {
    /// With the slash.
    File(usize),
    /// With what parts it from its class.
    Method(usize),
}

fn last_part(text: &str) -> Last {
    let method = || ["::", "."].iter().filter_map(|it| text.rfind(it)).max();
    match (text.rfind('#'), text.rfind('/')) {
        (None, Some(at)) => Last::File(at),
        (hash, _) => Last::Method(hash.or_else(method).unwrap_or(text.len())),
    }
}

/// The longest beginning that fits in `room` columns.
fn beginning(text: &str, room: usize) -> &str {
    let ends = text.char_indices().map(|(at, it)| at + it.len_utf8());
    let fitting = ends
        .take_while(|end| *end <= MAX_NAME)
        .take(most_characters(room));
    let mut longest = 0;
    for end in fitting {
        if columns(&text[..end]) > room {
            break;
        }
        longest = end;
    }
    &text[..longest]
}

/// The longest end that fits in `room` columns.
fn end(text: &str, room: usize) -> &str {
    let starts = text.char_indices().rev().map(|(at, _)| at);
    let mut longest = text.len();
    for start in starts.take(most_characters(room)) {
        if columns(&text[start..]) > room {
            break;
        }
        longest = start;
    }
    &text[longest..]
}

/// Characters that are looked at: there may be any number of those that have no width.
fn most_characters(room: usize) -> usize {
    4 * room + 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_keep_the_name_of_the_file() {
        let path = "rouge-4.5.1/lib/rouge/lexers/ruby.rb:271";
        assert_eq!(shortened(path, 40), path);
        assert_eq!(shortened(path, 30), "rouge-4.5.1/lib…rs/ruby.rb:271");
        assert_eq!(shortened(path, 14), "r…/ruby.rb:271");
        assert_eq!(shortened(path, 10), "…by.rb:271");
        assert_eq!(least_columns(path), 13);
    }

    #[test]
    fn names_keep_the_method_and_the_front_of_the_class() {
        let name = "ActiveRecord::ConnectionAdapters::PostgreSQLAdapter#exec_query";
        assert_eq!(shortened(name, 30), "ActiveRecord::C…ter#exec_query");
        assert_eq!(shortened("Aa::Bb::Cc.call", 10), "Aa::….call");
        let long = format!("Order#{}_end", "x".repeat(40));
        assert_eq!(shortened(&long, 20), "Orde…xxxxxxxxxxx_end");
        assert_eq!(shortened("Kernel#/abcdefghij", 12), "Ke…bcdefghij");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(shortened("計算計算#計算", 9), "計…#計算");
        assert_eq!(cut("計算計算", 6), "計算…");
        assert_eq!(cut("計算", 4), "計算");
    }

    proptest! {
        #[test]
        fn whatever_the_text_is_it_fits(text in "(\\PC|[/#.:é計👨👩\u{200d}\u{fe0f}]){0,40}", room in 1..50_usize) {
            let short = shortened(&text, room);
            prop_assert!(columns(&short) <= room, "{short:?}");
            prop_assert!(columns(&cut(&text, room)) <= room);
            if columns(&text) <= room {
                prop_assert_eq!(&*short, &text);
            } else {
                let (head, tail) = short.split_once(DOTS).expect("dots");
                prop_assert!(text.starts_with(head) || text.contains(DOTS));
                prop_assert!(text.ends_with(tail) || text.contains(DOTS));
            }
        }

        #[test]
        fn a_file_that_fits_is_whole(directories in "([a-z]{1,9}/){1,9}", file in "[a-z]{1,9}", more in 1..9_usize) {
            let path = format!("{directories}{file}.rb:1");
            let room = file.len() + ".rb:1".len() + "/…".len() + more;
            let slashed = format!("/{file}.rb:1");
            prop_assert!(shortened(&path, room).ends_with(&slashed));
        }
    }
}
