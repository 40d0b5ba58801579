//! The page of `rperf leak`. Called by `leak`.

use crate::left_out::{SHOWS_ALL, left_out};
use crate::report::screen::Screen;
use rperf_format::table::{Column, Row, Style, Table};
use rperf_format::{Grown, GrowthAmount, GrowthTable, GrowthVerdict, LeakFile, bytes_text};
use rperf_report::numbers::{counted, grouped, percent};
use rperf_report::terminal_text::shown;

/// Names of rows that grew once at most.
const NAMES: usize = 5;

const NO_SITES: &str = "No session of the program measures heap, so the lines that make these objects aren't known: \
                        start it with RPERF_ENABLED=1 RPERF_MEASURE=heap, or call Rperf.start(measure: :heap).";

/// The lines and tables.
pub fn of(file: &LeakFile, rows: usize, screen: Screen) -> String {
    let mut text = screen.wrapped(&format!("{}\n{}", head(file), rss(file)));
    let total = file.looks.last().map_or(0, |it| it.bytes);
    text += &growth(&Part {
        table: &file.classes,
        heading: "Classes that grow",
        kinds: ["class", "classes"],
        total,
        rows,
        screen,
        amount: |it| &it.amount,
        name: |it| shown(&it.name).into(),
    });
    let Some(sites) = &file.sites else {
        return text + &screen.wrapped(&no_sites(file));
    };
    if sites.looks.len() < rperf_report::growth::LEAST_LOOKS {
        let message = "\nThe session that measures heap began late: too few looks at it for what grows by line.\n";
        return text + &screen.wrapped(message);
    }
    text += &growth(&Part {
        table: &sites.table,
        heading: "Sites that grow: where objects were made that collections have left alone",
        kinds: ["site", "sites"],
        total,
        rows,
        screen,
        amount: |it| &it.amount,
        name: |it| {
            let place = match (&*it.path, it.line) {
                ("", _) => String::new(),
                (path, 0) => format!(" ({})", shown(path)),
                (path, line) => format!(" ({}:{line})", shown(path)),
            };
            let class = match &*it.class {
                "" => String::new(),
                class => format!("  {}", shown(class)),
            };
            format!("{}{place}{class}", shown(&it.method))
        },
    });
    text
}

fn head(file: &LeakFile) -> String {
    let failed = match file.failed {
        0 => String::new(),
        1 => ", 1 look failed".into(),
        many => format!(", {} looks failed", grouped(many)),
    };
    format!(
        "{} {}: {} in {}{failed}, Ruby {}",
        file.pid,
        shown(&file.program),
        counted(file.looks.len() as u64, "look"),
        hours_text(file.time_ns() as f64 / 3.6e12),
        shown(&file.ruby),
    )
}

/// The line of the RSS.
fn rss(file: &LeakFile) -> String {
    let now = file.looks.iter().rev().find_map(|it| it.rss_bytes);
    let (Some(now), Some(grown)) = (now, &file.rss) else {
        return String::new();
    };
    let rate = format!(
        "{} ± {}/h",
        signed(grown.per_hour),
        bytes(2.0 * grown.error)
    );
    let verdict = match grown.verdict {
        GrowthVerdict::Grows => format!("grows by {rate}"),
        GrowthVerdict::GrewOnce => format!("grew, but not all the time ({rate})"),
        GrowthVerdict::Steady if grown.per_hour < -2.0 * grown.error => format!(
            "falls by {} ± {}/h",
            bytes(-grown.per_hour),
            bytes(2.0 * grown.error)
        ),
        GrowthVerdict::Steady => format!("shows no clear growth ({rate})"),
        GrowthVerdict::Unknown => "was seen too seldom to tell whether it grows".into(),
    };
    format!(
        "RSS {} {verdict}{}\n",
        bytes_text(now),
        limit(file, grown, now)
    )
}

/// When the limit is reached.
fn limit(file: &LeakFile, grown: &Grown, now: u64) -> String {
    let Some(limit) = file.limit_bytes else {
        return String::new();
    };
    // The limit of a group is for all of its processes.
    let (used, name) = match (file.limit_is_of_group, file.group_used_bytes) {
        (false, _) => (now, bytes_text(limit)),
        (true, Some(used)) => {
            let (limit, used_text) = (bytes_text(limit), bytes_text(used));
            let name = format!("the {limit} of its control group, of which {used_text} are used,");
            (used, name)
        }
        (true, None) => {
            let limit = bytes_text(limit);
            return format!("; the limit of its control group is {limit}");
        }
    };
    if used >= limit {
        return format!("; the limit of {} is reached", bytes_text(limit));
    }
    match grown.hours_to(limit, used) {
        Some(hours) => {
            let [hours, least, most] = hours.map(hours_text);
            match least == most {
                true => format!(": at this rate {name} in {hours}"),
                false => format!(": at this rate {name} in {hours} ({least} to {most})"),
            }
        }
        None => format!("; the limit is {}", bytes_text(limit)),
    }
}

fn no_sites(file: &LeakFile) -> String {
    let is_of_looks = file.rss.is_some();
    match is_of_looks {
        true => format!("\n{NO_SITES}\n"),
        false => String::new(),
    }
}

/// A table, and how it is shown.
struct Part<'a, T> {
    table: &'a GrowthTable<T>,
    heading: &'a str,
    /// The words for one of its rows, and for several.
    kinds: [&'a str; 2],
    total: u64,
    rows: usize,
    screen: Screen,
    amount: fn(&T) -> &GrowthAmount,
    name: fn(&T) -> String,
}

fn growth<T>(part: &Part<'_, T>) -> String {
    let of = |verdict| {
        let rows = part.table.rows.iter();
        rows.filter(move |it| (part.amount)(it).bytes.verdict == verdict)
    };
    let growing: Vec<&T> = of(GrowthVerdict::Grows).collect();
    let [one, several] = part.kinds;
    let mut text = String::new();
    let is_all_unknown = part.table.steady == 0 && part.table.rows.is_empty();
    if is_all_unknown && part.table.unknown > 0 {
        text += "\n";
    } else if growing.is_empty() {
        text += &part.screen.wrapped(&format!(
            "\nNo {one} grows: what has changed is within the error, or didn't last.\n"
        ));
    } else {
        text += &part.screen.wrapped(&format!("\n{}\n", part.heading));
        text += &part.screen.table(&table(part, &growing));
        text += &left_out(growing.len(), Some(part.rows), SHOWS_ALL);
    }
    let once: Vec<String> = of(GrowthVerdict::GrewOnce).map(part.name).collect();
    if !once.is_empty() {
        let named = once
            .iter()
            .take(NAMES)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        let more = match once.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(" and {} more", grouped(more as u64)),
        };
        text += &part
            .screen
            .wrapped(&format!("Grew, but not all the time: {named}{more}.\n"));
    }
    let counts = [
        (
            part.table.steady,
            ["shows no clear growth", "show no clear growth"],
        ),
        (
            part.table.unknown,
            [
                "was seen too seldom to tell",
                "were seen too seldom to tell",
            ],
        ),
    ];
    for (count, verbs) in counts {
        let line = match count {
            0 => continue,
            1 => format!("1 {one} {}.\n", verbs[0]),
            _ => format!("{} {several} {}.\n", grouped(count), verbs[1]),
        };
        text += &part.screen.wrapped(&line);
    }
    text
}

fn table<T>(part: &Part<'_, T>, growing: &[&T]) -> Table {
    let columns = vec![
        Column::new("bytes/h"),
        Column::new("±"),
        Column::weighing("objects/h", 2),
        Column::weighing("now", 1),
    ];
    let mut table = Table::new(columns).with_names(part.kinds[0]);
    for row in growing.iter().take(part.rows) {
        let amount = (part.amount)(row);
        let now = amount.bytes_seen.last().copied().unwrap_or_default();
        let Grown {
            per_hour, error, ..
        } = amount.bytes;
        table.push(Row {
            cells: vec![
                signed(per_hour),
                bytes(2.0 * error),
                Grouped(amount.objects.per_hour).to_string(),
                bytes_text(now),
            ],
            style: Style::of_share(percent(now, part.total)),
            name: (part.name)(row),
            is_text: true,
            ..Row::default()
        });
    }
    table
}

/// A number with a sign, in groups of digits.
struct Grouped(f64);

impl std::fmt::Display for Grouped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0.0 { "-" } else { "+" };
        write!(formatter, "{sign}{}", grouped(self.0.abs().round() as u64))
    }
}

fn signed(bytes_per_hour: f64) -> String {
    let sign = if bytes_per_hour < 0.0 { "-" } else { "+" };
    format!("{sign}{}", bytes(bytes_per_hour.abs()))
}

fn bytes(number: f64) -> String {
    bytes_text(number.round() as u64)
}

/// A time as people say it.
fn hours_text(hours: f64) -> String {
    let seconds = (hours * 3600.0).round();
    match seconds {
        ..120.0 => format!("{seconds} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3600.0),
        ..31_536_000.0 => format!("{:.0} d", seconds / 86_400.0),
        _ => "more than a year".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_format::{Look, LookRow};
    use rperf_report::in_use::InUse;

    fn file() -> LeakFile {
        let look = |number: u64| {
            let of = |objects: u64| InUse {
                objects,
                bytes: objects * 100,
            };
            Look {
                time_ns: number * 60_000_000_000,
                rss_bytes: Some((100 << 20) + (number << 20)),
                classes: vec![
                    ("Or\u{1b}der".into(), of(1000 * number)),
                    ("Warm".into(), of(100_000 * number.min(7))),
                    ("Same".into(), of(5)),
                ],
                total: of(100_000),
                sites: None,
            }
        };
        let looks: Vec<Look> = (0..11).map(look).collect();
        LeakFile {
            pid: 7,
            program: "shop".into(),
            ruby: "3.4.5".into(),
            failed: 1,
            limit_bytes: Some(210 << 20),
            ..LeakFile::of(&looks)
        }
    }

    #[test]
    fn the_limit_of_a_control_group_is_for_all_of_its_processes() {
        let mut file = file();
        file.limit_is_of_group = true;
        let page = |file: &LeakFile| of(file, 20, Screen::default());
        assert!(page(&file).contains("B/h; the limit of its control group is 210.00 MB\n"));
        file.group_used_bytes = Some(180 << 20);
        let rate = "at this rate the 210.00 MB of its control group, of which 180.00 MB are used, in 30 min";
        assert!(page(&file).contains(rate), "{}", page(&file));
        file.group_used_bytes = Some(210 << 20);
        assert!(page(&file).contains("; the limit of 210.00 MB is reached\n"));
    }

    #[test]
    fn a_page_says_what_grows_and_when_the_limit_is_reached() {
        let page = of(&file(), 20, Screen::default());
        for text in [
            "7 shop: 11 looks in 10 min, 1 look failed, Ruby 3.4.5",
            "RSS 110.00 MB grows by +60.00 MB ± 0 B/h: at this rate 210.00 MB in 100 min",
            "+5.72 MB",
            "+60,000",
            "Or der",
            "Grew, but not all the time: Warm.",
            "1 class shows no clear growth.",
            "measure: :heap",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }

    #[test]
    fn a_page_says_that_nothing_grows() {
        let looks = vec![LookRow::default(); 4];
        let page = of(
            &LeakFile {
                looks,
                ..LeakFile::default()
            },
            20,
            Screen::default(),
        );
        assert!(page.contains("No class grows"), "{page}");
    }

    #[test]
    fn a_page_says_that_the_rss_falls() {
        let mut file = file();
        let grown = |verdict| Grown {
            per_hour: -3e9,
            error: 1e8,
            verdict,
        };
        file.rss = Some(grown(GrowthVerdict::Steady));
        let page = of(&file, 20, Screen::default());
        assert!(
            page.contains("RSS 110.00 MB falls by 2,861.02 MB ± 190.73 MB/h"),
            "{page}"
        );
        let within_its_error = Grown {
            per_hour: 3e9,
            error: 3e9,
            verdict: GrowthVerdict::Steady,
        };
        file.rss = Some(within_its_error);
        let page = of(&file, 20, Screen::default());
        let line = "RSS 110.00 MB shows no clear growth (+2,861.02 MB ± 5,722.05 MB/h)";
        assert!(page.contains(line), "{page}");
        file.rss = Some(grown(GrowthVerdict::Unknown));
        let page = of(&file, 20, Screen::default());
        assert!(page.contains("RSS 110.00 MB was seen too seldom"), "{page}");
    }

    #[test]
    fn unknown_classes_are_counted_apart() {
        let mut file = file();
        file.classes.unknown = 2;
        let page = of(&file, 20, Screen::default());
        let lines = "1 class shows no clear growth.\n2 classes were seen too seldom to tell.\n";
        assert!(page.contains(lines), "{page}");
        file.classes = GrowthTable {
            unknown: 1,
            ..GrowthTable::default()
        };
        let page = of(&file, 20, Screen::default());
        assert!(
            page.contains("\n1 class was seen too seldom to tell.\n"),
            "{page}"
        );
        assert!(
            !page.contains("No class grows") && !page.contains("clear"),
            "{page}"
        );
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let texts = [0.01, 1.5, 14.0, 100.0, 9000.0].map(hours_text);
        assert_eq!(texts, ["36 s", "90 min", "14 h", "4 d", "more than a year"]);
    }
}
