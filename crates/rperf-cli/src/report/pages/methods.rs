//! The page of all that is known of each method.

use super::{Page, noun};
use rperf_format::table::{Column, Row, Table};
use rperf_model::OwnColumn;
use rperf_report::numbers::{grouped, signed};
use rperf_report::{By, Latency, Method, Methods, Scale, Sort};

/// A column: its heading, whether there is something in it, how much it weighs where there is little
/// room, and its cell in a row.
type Shown<'a> = (&'a str, bool, u8, &'a dyn Fn(&Method) -> String);

/// The methods, or what else the rows are, with their times, calls and objects.
pub fn methods(page: &Page<'_>, by: &By, sort: Sort) -> String {
    let schema = &page.profile.schema;
    let found = Methods::of(page.profile, schema.default_column(), by, sort);
    let shown = page.limit.unwrap_or(usize::MAX).min(found.rows.len());
    let mut text = page.head();
    text += &format!(
        "Showing {} of {} {}\n\n",
        grouped(shown as i64),
        grouped(found.rows.len() as i64),
        noun(by)
    );
    let scale = page.scale();
    let value = |value: i64| match value {
        0 => "-".to_string(),
        value => scale.text(value),
    };
    // A single call takes another unit than all of them.
    let per_call = |all: i64, method: &Method| match method.calls.or(method.block_calls) {
        Some(calls) => {
            let each = all / calls.max(1);
            Scale::new(schema.default_type(), each).text(each)
        }
        None => "-".to_string(),
    };
    let count = |number: Option<i64>| number.map_or_else(|| "-".into(), grouped);
    let bytes = |bytes: i64| Scale::new(&OwnColumn::Bytes.value_type(), bytes).text(bytes);
    let counted = |number: i64| count(Some(number).filter(|it| *it != 0));
    let (calls, has_time) = (found.has_calls, schema.default_type().unit != "count");
    let has = |of: fn(&Method) -> i64| found.rows.iter().any(|row| of(row) != 0);
    // They have no other count.
    let has_blocks = found.rows[..shown]
        .iter()
        .any(|row| row.calls.is_none() && row.block_calls.is_some());
    let latency = |it: &Method, of: fn(&Latency) -> u64| match &it.latency {
        Some(latency) => {
            let ns = signed(of(latency));
            Scale::new(&OwnColumn::Wall.value_type(), ns).text(ns)
        }
        None => "-".to_string(),
    };
    let columns: [Shown<'_>; 17] = [
        ("calls", calls, 14, &|it| count(it.calls)),
        ("blocks", calls, if has_blocks { 13 } else { 3 }, &|it| {
            count(it.block_calls)
        }),
        ("self", true, 15, &|it| value(it.self_value)),
        ("total", true, 16, &|it| value(it.total_value)),
        ("children", true, 6, &|it| value(it.children())),
        ("self/call", calls && has_time, 10, &|it| {
            per_call(it.self_value, it)
        }),
        ("total/call", calls && has_time, 13, &|it| {
            per_call(it.total_value, it)
        }),
        ("p50", found.has_latency, 8, &|it| latency(it, |it| it.p50)),
        ("p99", found.has_latency, 12, &|it| latency(it, |it| it.p99)),
        ("max", found.has_latency, 7, &|it| latency(it, |it| it.max)),
        ("cpu", found.has_cpu && has_time, 9, &|it| value(it.cpu)),
        ("wait", has(|it| it.wait), 5, &|it| value(it.wait)),
        ("blocked", has(|it| it.blocked), 4, &|it| value(it.blocked)),
        ("gc", has(|it| it.gc), 4, &|it| value(it.gc)),
        ("objects", found.has_objects, 11, &|it| counted(it.objects)),
        ("own", found.has_objects, 2, &|it| counted(it.self_objects)),
        ("slots", found.has_objects, 1, &|it| match it.bytes {
            0 => "-".to_string(),
            number => bytes(number),
        }),
    ];
    let columns: Vec<_> = columns.iter().filter(|column| column.1).collect();
    let order = match sort {
        Sort::SelfValue => "self",
        Sort::TotalValue => "total",
    };
    let mut table = Table::new(
        columns
            .iter()
            .map(|(heading, _, weight, _)| match *heading {
                heading if heading == order => Column::new(heading),
                heading => Column::weighing(heading, *weight),
            }),
    );
    for method in &found.rows[..shown] {
        let cells = columns.iter().map(|column| column.3(method)).collect();
        let mut row = Row::of(&method.function, cells, page.share(method.value(sort)));
        if method.is_recursive {
            row.note = "  recursive".into();
        }
        table.push(row);
    }
    match found.rows.is_empty() {
        true => text,
        false => text + &page.screen.table(&table),
    }
}
