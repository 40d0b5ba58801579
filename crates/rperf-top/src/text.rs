//! Numbers and names as text of a given width.

use crate::look::Look;
use rperf_model::numbers::grouped;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `ns` in the unit that fits.
pub fn time(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        ms if ms >= 3.6e6 => format!("{:.1} h", ms / 3.6e6),
        ms if ms >= 6e5 => format!("{:.1} min", ms / 6e4),
        ms if ms >= 1e4 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 10.0 || ms == 0.0 => format!("{} ms", grouped(ms.round() as i64)),
        ms => format!("{ms:.1} ms"),
    }
}

/// A part of a whole.
pub fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// In percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A span of time as minutes and seconds.
pub fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..3600 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        _ => format!(
            "{}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

/// `text` in `room` columns at most, cut at its end, without what commands a terminal, or what it
/// can't show.
pub fn fitted(text: &str, room: usize, look: Look) -> String {
    let clean = |it: char| match it {
        it if it.is_control() => ' ',
        it if !look.unicode && !it.is_ascii() => '?',
        it => it,
    };
    // More characters than that are never shown.
    let text: String = text.chars().take(4 * room + 4).map(clean).collect();
    if text.width() <= room {
        return text;
    }
    let mut cut = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > room {
            break;
        }
        cut.push(character);
    }
    match room {
        0 => String::new(),
        _ => cut + look.ellipsis(),
    }
}

/// A method's name in `room` columns at most: its own end and the beginning of its class stay, and what
/// is between is left out.
pub fn fitted_method(text: &str, room: usize, look: Look) -> String {
    let end = text
        .rfind('#')
        .or_else(|| text.rfind("::").max(text.rfind('.')));
    let Some(end) = end.filter(|_| text.width() > room).map(|at| &text[at..]) else {
        return fitted(text, room, look);
    };
    // Of a long end, the beginning of the method's own name says most.
    let tail = fitted(end, room.saturating_sub(room / 4), look);
    let front = &text[..text.len() - end.len()];
    fitted(front, room.saturating_sub(tail.width()), look) + &tail
}

/// A path in `room` columns at most. A long one keeps its last three parts, or only the last one,
/// because the end of a path says most.
pub fn fitted_end(text: &str, room: usize, look: Look) -> String {
    let last = text.rsplitn(4, '/').collect::<Vec<_>>();
    if text.width() <= room || last.len() < 4 {
        return fitted(text, room, look);
    }
    let short = format!("{}/{}/{}/{}", look.ellipsis(), last[2], last[1], last[0]);
    if short.width() <= room {
        return fitted(&short, room, look);
    }
    fitted(last[0], room, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look {
        colour: false,
        unicode: true,
    };

    #[test]
    fn times_have_units_that_fit() {
        for (ms, text) in [
            (0.0, "0 ms"),
            (1.26, "1.3 ms"),
            (312.4, "312 ms"),
            (1_684.0, "1,684 ms"),
            (12_345.0, "12.3 s"),
            (1_200_000.0, "20.0 min"),
            (7_200_000.0, "2.0 h"),
        ] {
            assert_eq!(time((ms * 1e6) as u64), text);
        }
        assert_eq!(clock(42_000_000_000), "00:42");
        assert_eq!(clock(3_661_000_000_000), "1:01:01");
    }

    #[test]
    fn texts_fit_and_command_no_terminal() {
        assert_eq!(fitted("a\u{1b}[2Jb\u{9b}c", 9, LOOK), "a [2Jb c");
        assert_eq!(fitted("abcdef", 4, LOOK), "abc…");
        assert_eq!(fitted("計算計算", 5, LOOK), "計算…");
        assert_eq!(fitted("abc", 0, LOOK), "");
        let plain = Look {
            unicode: false,
            ..LOOK
        };
        assert_eq!(fitted("Größe!", 5, plain), "Gr??~");
        assert_eq!(fitted_end("/a/b/c/d/e.rb", 10, LOOK), "…/c/d/e.rb");
        let method = "Kramdown::Parser::Kramdown#parse_block";
        assert_eq!(fitted_method(method, 38, LOOK), method);
        assert_eq!(fitted_method(method, 24, LOOK), "Kramdown::P…#parse_block");
        assert_eq!(fitted_method(method, 12, LOOK), "Kr…#parse_b…");
        assert_eq!(fitted_method("block in <main>", 9, LOOK), "block in…");
        assert_eq!(fitted_method("Long::Name.make", 10, LOOK), "Long….make");
        assert_eq!(fitted_end("/a/b/c/d/e.rb", 6, LOOK), "e.rb");
        assert_eq!(fitted_end("e.rb", 10, LOOK), "e.rb");
    }
}
