//! The pages of `rperf memory`. Called by `memory`.

use crate::report::screen::Screen;
use rperf_format::{
    Comparable, MemoryFile, bytes_text, memory_changes, memory_lacks, memory_notes, memory_table,
    slots_table,
};
use rperf_report::numbers::milliseconds;
use rperf_report::terminal_text::shown;
use serde_json::json;

/// Said if the main thread was woken.
const WOKEN: &str =
    "No thread ran, so the main thread was woken for a moment (not with --no-wake).";

/// The rows, with all that is to be known of them.
pub fn of(file: &MemoryFile, with_shares: bool, screen: Screen) -> String {
    let mut text = screen.wrapped(&(head(file) + "\n"));
    if file.facts.woken {
        text += &screen.wrapped(&format!("{WOKEN}\n"));
    }
    text += "\n";
    text += &screen.table(&memory_table(file, with_shares));
    if file.total.swap_bytes > 0 {
        let swapped = bytes_text(file.total.swap_bytes);
        text += &screen.wrapped(&format!("\n{swapped} more are swapped out.\n"));
    }
    if let Some(slots) = slots_table(file) {
        text += "\nRuby heap by size of slot\n";
        text += &screen.table(&slots);
    }
    for note in memory_notes(file) {
        text += &screen.wrapped(&format!("\n{note}\n"));
    }
    text
}

/// What it is of, in a line.
fn head(file: &MemoryFile) -> String {
    let facts = &file.facts;
    let ruby = facts
        .ruby
        .as_ref()
        .map(|ruby| format!(", Ruby {}", shown(ruby)));
    let held = match facts.held_ns {
        0 => String::new(),
        ns => format!(", the GVL held for {} ms of it", milliseconds(ns)),
    };
    format!(
        "{} {}: RSS {}{}, taken in {} ms{held}",
        facts.pid,
        shown(&facts.program),
        bytes_text(file.total.rss_bytes),
        ruby.unwrap_or_default(),
        milliseconds(facts.elapsed_ns),
    )
}

/// What has changed from one to the other.
pub fn changes(base: &MemoryFile, file: &MemoryFile, screen: Screen) -> String {
    let mut text = screen.wrapped(&format!(
        "{}\n{}{}\n\n",
        head(file),
        since(base.facts.time_ns, file.facts.time_ns),
        match (file.facts.pid, &file.facts.program) == (base.facts.pid, &base.facts.program) {
            true => String::new(),
            false => format!(", of {} {}", base.facts.pid, shown(&base.facts.program)),
        }
    ));
    let both = Comparable::of(base, file);
    text += &screen.table(&memory_changes(&both.base, &both.now));
    let mut notes = both.notes;
    notes.extend(memory_notes(file));
    if base.lacks != file.lacks {
        let before = memory_lacks(base).into_iter();
        notes.extend(before.map(|it| format!("Before: {it}")));
    }
    for note in notes {
        text += &screen.wrapped(&format!("\n{note}\n"));
    }
    text
}

/// So much time, in two units.
pub fn elapsed(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// How long lies between the two.
pub fn since(base_ns: u64, now_ns: u64) -> String {
    let time = elapsed(now_ns.abs_diff(base_ns));
    match now_ns >= base_ns {
        true => format!("compared with {time} before"),
        false => format!("compared with {time} later"),
    }
}

/// What has changed, as JSON.
pub fn changes_as_json(base: &MemoryFile, file: &MemoryFile) -> String {
    let row = |name: &str, before: u64, now: u64| {
        let change = i128::from(now) - i128::from(before);
        json!({
            "name": name,
            "before_bytes": before,
            "now_bytes": now,
            "change_bytes": i64::try_from(change).unwrap_or_default(),
        })
    };
    let both = Comparable::of(base, file);
    let rows = both.base.names_of_both(&both.now);
    let rows = rows.iter().map(|it| {
        let rss = |file: &MemoryFile| file.row(&it.name).rss_bytes;
        row(&it.name, rss(&both.base), rss(&both.now))
    });
    let object = json!({
        "version": 1,
        "kind": "rperf memory change",
        "base": base.facts,
        "now": file.facts,
        "lacks": { "base": base.lacks, "now": file.lacks },
        "with_objects": { "base": base.objects.is_some(), "now": file.objects.is_some() },
        "total": row("total", base.total.rss_bytes, file.total.rss_bytes),
        "rows": rows.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_format::{Amounts, Lack, MemoryFacts, MemoryRow};

    fn file(pid: i32, seconds: u64, rss_bytes: u64) -> MemoryFile {
        let amounts = Amounts {
            rss_bytes,
            ..Amounts::default()
        };
        MemoryFile {
            facts: MemoryFacts {
                pid,
                program: "puma\u{1b}".into(),
                ruby: Some("3.4.5".into()),
                time_ns: seconds * 1_000_000_000,
                elapsed_ns: 8_100_000,
                held_ns: 300_000,
                ..MemoryFacts::default()
            },
            total: amounts,
            rows: vec![MemoryRow {
                name: "other".into(),
                amounts,
            }],
            lacks: vec![Lack::Pages],
            ..MemoryFile::default()
        }
    }

    #[test]
    fn the_page_says_what_it_is_of() {
        let page = of(&file(7, 0, 1 << 20), false, Screen::default());
        let head =
            "7 puma : RSS 1.00 MB, Ruby 3.4.5, taken in 8.1 ms, the GVL held for 0.3 ms of it\n";
        assert!(page.starts_with(head), "{page}");
        assert!(page.contains("other anonymous memory") && page.contains("pagemap"));
    }

    #[test]
    fn changes_say_since_when() {
        let base = file(7, 100, 1 << 20);
        let page = |now: &MemoryFile| changes(&base, now, Screen::default());
        let same = page(&file(7, 3800, 3 << 20));
        assert!(
            same.contains("\ncompared with 1 h 1 min before\n"),
            "{same}"
        );
        assert!(same.contains("+2.00 MB"), "{same}");
        let other = page(&file(8, 90, 1 << 20));
        assert!(
            other.contains("compared with 10 s later, of 7 puma "),
            "{other}"
        );
        let json = changes_as_json(&base, &file(7, 101, 5));
        assert!(json.contains(r#""change_bytes":-1048571"#), "{json}");
        // What the base doesn't know is told.
        let knows = MemoryFile {
            lacks: Vec::new(),
            ..file(7, 101, 5)
        };
        let page = page(&knows);
        assert!(page.contains("Before: The kernel doesn't tell"), "{page}");
        assert!(page.contains("not known apart in both"), "{page}");
        let json = changes_as_json(&base, &knows);
        assert!(
            json.contains(r#""lacks":{"base":["pages"],"now":[]}"#),
            "{json}"
        );
    }
}
