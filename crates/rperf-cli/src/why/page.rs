//! The answers of `rperf why` for people: states first, then where they were.

use super::heading::heading;
use super::ops;
use crate::places::place;
use crate::report::screen::{Screen, Style};
use rperf_format::table::{Column, Row, Table};
use rperf_format::{Spelling, part_detail, part_name};
use rperf_model::{LatencyClass, Profile, Requests};
use rperf_report::numbers::{counted, grouped, milliseconds, milliseconds_more, plus};
use rperf_report::one_line::{endpoint_name, one_line};
use rperf_report::{EndpointTimes, Function, Holder, Part, Site, Why};

/// The parts that the table of endpoints has.
const SHOWN: [Part; 4] = [Part::Running, Part::GvlWait, Part::Blocked, Part::Gc];

/// All endpoints, and above them why the first ones are slow: there may be more than a screen has lines.
pub fn endpoints(
    profile: &Profile,
    all: &[EndpointTimes<'_>],
    first: &[Why<'_>],
    screen: Screen,
) -> String {
    let headings = ["requests", "p50 ms", "p95 ms", "p99 ms", "max ms"].map(Column::new);
    let shares = SHOWN.map(|part| Column::weighing(part.name(), 1));
    let mut table = Table::new(headings.into_iter().chain(shares)).with_names("endpoint");
    for it in all {
        let walls = &it.requests.walls;
        let mut cells = vec![grouped(it.requests.count())];
        cells.extend([500, 950, 990].map(|at| milliseconds(walls.quantile(at))));
        cells.push(milliseconds(walls.max()));
        cells.extend(SHOWN.map(|part| match it.excess() {
            ..=0 => "-".to_string(),
            _ => format!("{:.0} %", it.share(part)),
        }));
        table.push(Row {
            cells,
            name: name(it.requests),
            ..Row::default()
        });
    }
    let text = "running, GVL wait, blocked and GC are shares of the time by which the slowest requests \
                (from p99) take longer than typical ones (p25 to p75). The endpoints whose slowest \
                requests cost most come first; 'rperf why FILE ENDPOINT' says why.\n";
    format!(
        "{}{}{}{}\n{}",
        causes(first, screen),
        ops::repeats(profile, screen),
        screen.table(&table),
        lost(profile),
        screen.wrapped(text)
    )
}

/// What the slowest requests of these take longer, and where most of it is.
fn causes(first: &[Why<'_>], screen: Screen) -> String {
    let mut text = String::new();
    for why in first {
        let requests = why.times.requests;
        let tail = requests.class(LatencyClass::Tail).count;
        let title = screen.styled(Some(Style::Bold), &name(requests));
        text += &format!(
            "{title}   {}, {} ms each{}\n",
            counted(tail, "slowest request"),
            milliseconds_more(why.times.excess()),
            match why.has_enough() {
                true => String::new(),
                false => format!(" (few: from {} on this can be relied on)", Why::FEW),
            }
        );
        for part in why.causes() {
            let place = match part_detail(why, part, &InLines) {
                it if it.is_empty() => it,
                it => format!(": {it}"),
            };
            let share = why.times.share(part);
            // Names stay whole, on lines of their own if they must: they are what is asked for.
            text += &screen.wrapped(&format!("  {share:.0} % {}{place}\n", part_name(why, part)));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// An endpoint, and why it is slow.
pub fn endpoint(profile: &Profile, why: &Why<'_>, screen: Screen) -> String {
    let requests = why.times.requests;
    let walls = &requests.walls;
    let [p50, p95, p99] = [500, 950, 990].map(|at| milliseconds(walls.quantile(at)));
    let title = screen.styled(Some(Style::Bold), &name(requests));
    let mut text = format!(
        "{title}   {}   p50 {p50} ms   p95 {p95} ms   p99 {p99} ms   max {} ms\n",
        counted(requests.count(), "request"),
        milliseconds(walls.max())
    );
    let tail = requests.class(LatencyClass::Tail).count;
    if !why.has_enough() {
        text += &screen.wrapped(&few(why, tail));
        text += &slowest(why, screen);
    }
    if tail > 0 && requests.class(LatencyClass::Typical).count > 0 {
        text += "\n";
        text += &screen.table(&parts(why));
        text += &holders(why, screen);
        text += &sites(why, screen);
    }
    text += &ops::of_endpoint(why, screen);
    if why.has_enough() {
        text += "\nThe slowest requests\n";
        text += &slowest(why, screen);
    }
    if why.open_ns > 0 {
        text += &format!(
            "\n{} ms of requests that had not ended, or had no room, are left out.\n",
            milliseconds(why.open_ns)
        );
    }
    text + &lost(profile)
}

fn name(requests: &Requests) -> String {
    endpoint_name(&requests.key, &requests.name)
}

fn few(why: &Why<'_>, tail: u64) -> String {
    let requests = why.times.requests;
    let first = requests.class(LatencyClass::First).count;
    if first == requests.count() {
        return "No request was judged: the first 100 of an endpoint tell how long they usually take. \
                The slowest of all:\n"
            .into();
    }
    let tail = counted(tail, "request");
    format!(
        "The tail has {tail} only: from {} on the comparison can be relied on. The slowest of all:\n",
        Why::FEW
    )
}

fn slowest(why: &Why<'_>, screen: Screen) -> String {
    let names = ["wall ms", "running", "GVL wait", "blocked", "GC", "objects"];
    let mut table = Table::new(names.map(Column::new));
    let first = why.slowest.iter().find_map(|it| it.label.as_deref());
    if first.is_some() {
        table = table.with_names("%request");
    }
    for it in &why.slowest {
        let values = it.took.values;
        let times = [
            values.wall,
            values.running,
            values.gvl_wait,
            values.blocked,
            values.gc,
        ];
        let mut cells: Vec<String> = times.map(milliseconds).into();
        cells.push(grouped(values.objects));
        table.push(Row {
            cells,
            name: match first {
                Some(_) => it.label.clone().unwrap_or_else(|| "-".into()),
                // No name at all: requests that weren't judged have no label.
                None => String::new(),
            },
            ..Row::default()
        });
    }
    let mut text = screen.table(&table);
    if let Some(label) = first {
        text +=
            &format!("One of them: rperf report --relative --tagfocus '%request=^{label}$' FILE\n");
    }
    text
}

/// States first: the stacks of a request that waits for others look innocent.
fn parts(why: &Why<'_>) -> Table {
    let headings = ["typical", "tail", "difference"].map(Column::new);
    let mut table = Table::new(headings).with_names("per request");
    for part in Part::ALL {
        let means = why.times.parts[part as usize];
        if part == Part::Suspended && means.typical == 0 && means.tail == 0 {
            continue;
        }
        let excess = means.excess();
        let ms = |value: i64| format!("{} ms", milliseconds(value));
        table.push(Row {
            cells: vec![
                ms(means.typical),
                ms(means.tail),
                format!("{} ms", milliseconds_more(excess)),
            ],
            style: match excess {
                ..=0 => None,
                _ => Style::of_share(why.times.share(part)),
            },
            name: part_name(why, part),
            detail: part_detail(why, part, &InLines),
            needs_detail: true,
            ..Row::default()
        });
    }
    if let Some(objects) = why.objects {
        let excess = objects.excess();
        table.push(Row {
            cells: vec![
                grouped(objects.typical),
                grouped(objects.tail),
                format!("{}{}", plus(excess), grouped(excess)),
            ],
            name: "objects".into(),
            ..Row::default()
        });
    }
    table
}

/// Names and places as the terminal has them.
struct InLines;

impl Spelling for InLines {
    fn name(&self, name: &str) -> String {
        one_line(name).into_owned()
    }

    fn place(&self, method: &Option<Function>, app: &Option<(Function, u32)>) -> String {
        place(method, app)
    }

    fn percent(&self, share: f64) -> String {
        format!("{share:.0} %")
    }
}

/// The share of a wait for the GVL of which it isn't known who had it, if that is worth telling.
fn unknown(why: &Why<'_>) -> Option<f64> {
    why.share_unknown()
        .filter(|share| *share >= Why::LEAST_PERCENT)
}

fn holders(why: &Why<'_>, screen: Screen) -> String {
    if !why.has_grown(Part::GvlWait) {
        return String::new();
    }
    let Some(holders) = &why.holders else {
        return screen.wrapped(
            "\nWho had the GVL meanwhile isn't known: it is with --measure requests,blame.\n",
        );
    };
    if holders.is_empty() {
        return screen.wrapped(
            "\nWho had the GVL meanwhile isn't known: no sample fell into these waits.\n",
        );
    }
    let are_own = holders.iter().any(|it| it.means.is_some());
    let (title, columns): (_, &[&str]) = match are_own {
        true => (
            "Who had the GVL while these requests waited for it, per request, by samples",
            &["typical", "tail", "share"],
        ),
        false => (
            "Who had the GVL while others waited for it, whoever they were, in the whole profile",
            &["waits", "share"],
        ),
    };
    let mut text = heading(screen, title);
    let mut table = Table::new(columns.iter().copied().map(Column::new));
    let ms = |value: i64| format!("{} ms", milliseconds(value));
    let share = |it: &Holder| why.share_of(it);
    for it in holders.iter().filter(|it| share(it) >= Why::LEAST_PERCENT) {
        let mut cells = match it.means {
            Some(means) => vec![ms(means.typical), ms(means.tail)],
            None => vec![ms(it.blame)],
        };
        cells.push(format!("{:.0} %", share(it)));
        table.push(Row {
            cells,
            name: one_line(&it.name).into_owned(),
            detail: match it
                .method
                .as_ref()
                .is_some_and(|method| method.name == it.name)
            {
                true => String::new(),
                false => place(&it.method, &it.app),
            },
            needs_detail: true,
            ..Row::default()
        });
    }
    if let Some(share) = unknown(why) {
        let cells = ["", "", &format!("{share:.0} %")].map(String::from);
        table.push(Row {
            cells: cells.into(),
            name: "(not known: nobody, or many for a short time each)".into(),
            ..Row::default()
        });
    }
    text += &screen.table(&table);
    text
}

/// Where the other parts grew, by samples.
fn sites(why: &Why<'_>, screen: Screen) -> String {
    let mut text = String::new();
    for part in [Part::Blocked, Part::Running, Part::Gc] {
        let sites = &why.sites[part as usize];
        if !why.has_grown(part) || sites.is_empty() {
            continue;
        }
        let title = format!("Where {} grew most per request, by samples", part.name());
        text += &heading(screen, &title);
        let mut table = Table::new(["typical", "tail"].map(Column::new));
        for Site { method, app, means } in sites {
            let ms = |value: i64| format!("{} ms", milliseconds(value));
            table.push(Row {
                cells: vec![ms(means.typical), ms(means.tail)],
                name: place(method, app),
                ..Row::default()
            });
        }
        text += &screen.table(&table);
        if part == Part::Gc {
            text += &collections(why, screen);
        }
    }
    text
}

/// Why collections ran.
fn collections(why: &Why<'_>, screen: Screen) -> String {
    if why.collections.is_empty() {
        return String::new();
    }
    let mut text = heading(screen, "Why these collections ran, per request, by samples");
    let mut table = Table::new(["typical", "tail", "share"].map(Column::new));
    for it in &why.collections {
        let ms = |value: i64| format!("{} ms", milliseconds(value));
        let share = format!("{:.0} %", why.share_of_collections(it));
        table.push(Row {
            cells: vec![ms(it.means.typical), ms(it.means.tail), share],
            name: one_line(&it.cause).into_owned(),
            ..Row::default()
        });
    }
    text += &screen.table(&table);
    text + &screen.wrapped("'rperf help gc' says what to do about each.\n")
}

/// A line about what the profile lacks.
fn lost(profile: &Profile) -> String {
    let line = rperf_report::losses_line(&profile.meta.counters);
    line.map_or_else(String::new, |line| format!("\n{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::RequestValues;
    use rperf_model::test_support;

    fn page(class: LatencyClass) -> String {
        let mut profile = test_support::with_requests(&[("job", "Export")]);
        let values = RequestValues {
            wall: 7_000_000,
            ..RequestValues::default()
        };
        profile.requests[0].add(class, values.ended_at(1), true);
        let why = Why::of(&profile, &profile.requests[0]);
        endpoint(&profile, &why, Screen::default())
    }

    #[test]
    fn requests_that_were_not_judged_have_no_column_of_names() {
        let page = page(LatencyClass::First);
        assert!(page.contains("No request was judged"), "{page}");
        let rows: Vec<_> = page
            .lines()
            .skip_while(|it| !it.contains("wall ms"))
            .collect();
        assert!(rows[0].ends_with("objects"), "{page}");
        assert!(rows[1].contains("7.0") && rows[1].ends_with('0'), "{page}");
    }
}
