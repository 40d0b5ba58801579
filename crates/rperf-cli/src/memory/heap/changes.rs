//! What has changed from one snapshot of a program's objects to another, by class and by holder. Called by
//! `heap`.

use super::page::{NESTED, head, part_of};
use super::sites;
use crate::report::screen::Screen;
use rperf_format::bytes_text;
use rperf_format::table::{Column, Row, Style, Table};
use rperf_heap::answer::MOST;
use rperf_heap::file::{HeapFile, Sum};
use rperf_model::Order;

use rperf_report::numbers::{counted, grouped, percent, signed};
use rperf_report::terminal_text::shown;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What one side has of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Amounts {
    bytes: u64,
    objects: u64,
    /// The variance of the bytes, where these are an estimate.
    variance: Option<f64>,
}

impl Amounts {
    /// Amounts that are no estimates.
    fn counted(bytes: u64, objects: u64) -> Self {
        Amounts {
            bytes,
            objects,
            variance: None,
        }
    }
}

/// A row of both.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    name: String,
    /// The holder of which it is a part; empty for none.
    within: String,
    before: Amounts,
    now: Amounts,
}

impl Change {
    fn bytes(&self) -> i64 {
        signed(self.now.bytes).saturating_sub(signed(self.before.bytes))
    }

    fn objects(&self) -> i64 {
        signed(self.now.objects).saturating_sub(signed(self.before.objects))
    }

    /// The standard deviation of the change of bytes, where these are estimates.
    fn deviation(&self) -> Option<u64> {
        let variances = [self.before.variance, self.now.variance];
        let sum = variances
            .into_iter()
            .flatten()
            .reduce(|one, other| one + other)?;
        Some(sum.sqrt().round() as u64)
    }

    fn to_json(&self) -> Value {
        let mut change = json!({ "bytes": self.bytes(), "objects": self.objects() });
        if let Some(deviation) = self.deviation() {
            change["deviation_bytes"] = deviation.into();
        }
        let mut row = json!({
            "name": self.name,
            "before": { "bytes": self.before.bytes, "objects": self.before.objects },
            "now": { "bytes": self.now.bytes, "objects": self.now.objects },
            "change": change,
        });
        if !self.within.is_empty() {
            row["within"] = (&*self.within).into();
        }
        row
    }
}

/// A name, and that of the holder of which it is a part: empty for none.
type Key = (String, String);

/// All rows of both, those that have grown most first. Several of one name that are parts of one holder are one.
fn changes(
    base: impl Iterator<Item = (Key, Amounts)>,
    now: impl Iterator<Item = (Key, Amounts)>,
) -> Vec<Change> {
    let mut rows: BTreeMap<Key, (Amounts, Amounts)> = BTreeMap::new();
    let add = |sum: &mut Amounts, more: Amounts| {
        sum.bytes = sum.bytes.saturating_add(more.bytes);
        sum.objects = sum.objects.saturating_add(more.objects);
        let variances = [sum.variance, more.variance];
        sum.variance = variances
            .into_iter()
            .flatten()
            .reduce(|one, other| one + other);
    };
    for (key, amounts) in base {
        add(&mut rows.entry(key).or_default().0, amounts);
    }
    for (key, amounts) in now {
        add(&mut rows.entry(key).or_default().1, amounts);
    }
    let rows = rows
        .into_iter()
        .map(|((name, within), (before, now))| Change {
            name,
            within,
            before,
            now,
        });
    let mut rows: Vec<_> = rows.filter(|it| it.before != it.now).collect();
    rows.order_by_key(|it| std::cmp::Reverse((it.bytes(), it.objects())));
    rows
}

/// The key of what is no part of a holder.
fn whole(name: String) -> Key {
    (name, String::new())
}

fn classes(file: &HeapFile) -> impl Iterator<Item = (Key, Amounts)> {
    file.classes.iter().map(|it| {
        let amounts = Amounts::counted(it.bytes, it.objects);
        (whole(it.name.clone()), amounts)
    })
}

fn holders(file: &HeapFile) -> impl Iterator<Item = (Key, Amounts)> {
    file.holders.iter().map(|it| {
        let amounts = Amounts::counted(it.retained_bytes, it.objects);
        ((it.name.clone(), it.within.clone()), amounts)
    })
}

/// Sites as both have them; `None` if one of the two has none, or those of another class.
fn sites(base: &HeapFile, file: &HeapFile) -> Option<Vec<Change>> {
    let both = [base.sites.as_ref()?, file.sites.as_ref()?];
    if both[0].of_class != both[1].of_class {
        return None;
    }
    let [base, now] = sites::named(both).map(|rows| {
        rows.map(|(name, row)| {
            let deviation = row.deviation_bytes as f64;
            let amounts = Amounts {
                variance: Some(deviation * deviation),
                ..Amounts::counted(row.bytes, row.objects)
            };
            (whole(name), amounts)
        })
    });
    Some(changes(base, now))
}

/// The tables.
pub fn page(base: &HeapFile, file: &HeapFile, rows: usize, screen: Screen) -> String {
    let of = match (file.facts.pid, &file.facts.program) == (base.facts.pid, &base.facts.program) {
        true => String::new(),
        false => format!(", of {} {}", base.facts.pid, shown(&base.facts.program)),
    };
    let since = since(base, file);
    let mut text = screen.wrapped(&format!("{}\n{since}{of}\n", head(file)));
    let total = base.total.bytes.max(file.total.bytes);
    let of_sites = sites(base, file).map(|it| {
        (
            "Retained by allocation site, estimated",
            "site, class, endpoint",
            it,
        )
    });
    for (heading, what, changes) in of_sites.into_iter().chain([
        ("Classes", "class", changes(classes(base), classes(file))),
        (
            "Holders: what would go with them",
            "holder",
            changes(holders(base), holders(file)),
        ),
    ]) {
        text += &format!("\n{heading}\n");
        if changes.is_empty() {
            text += "(nothing has changed)\n";
            continue;
        }
        let order = largest(&changes, rows);
        text += &screen.table(&table(&order, what, total));
        if order.iter().any(|it| !it.within.is_empty()) {
            text += &screen.wrapped(&format!("{NESTED}\n"));
        }
    }
    if base.holders.len().max(file.holders.len()) >= MOST {
        text += &screen.wrapped(&format!(
            "Of each side the {} biggest holders are known: others count as 0 B there.\n",
            grouped(MOST as u64)
        ));
    }
    if base.unreferenced.objects.max(file.unreferenced.objects) > 0 {
        let garbage = |it: Sum| {
            format!(
                "{} ({})",
                counted(it.objects, "object"),
                bytes_text(it.bytes)
            )
        };
        text += &screen.wrapped(&format!(
            "\nNothing referred to {} of the classes before, and to {} now: the next collection frees them.\n",
            garbage(base.unreferenced),
            garbage(file.unreferenced),
        ));
    }
    text
}

/// So many rows that have changed most, those that have grown most first.
fn largest(changes: &[Change], rows: usize) -> Vec<&Change> {
    let mut order: Vec<&Change> = changes.iter().collect();
    order.order_by_key(|it| std::cmp::Reverse(it.bytes().unsigned_abs()));
    order.truncate(rows);
    order.order_by_key(|it| std::cmp::Reverse((it.bytes(), it.objects())));
    order
}

fn table(changes: &[&Change], what: &str, total: u64) -> Table {
    let mut columns = vec![
        Column::weighing("before", 2),
        Column::weighing("now", 3),
        Column::new("change"),
    ];
    let is_estimate = changes.iter().any(|it| it.deviation().is_some());
    columns.extend(is_estimate.then(|| Column::weighing("+/-", 4)));
    columns.push(Column::weighing("objects", 1));
    let mut table = Table::new(columns).with_names(what);
    for change in changes {
        let bytes = change.bytes();
        let share = percent(bytes.unsigned_abs(), total);
        let mut cells = vec![
            bytes_text(change.before.bytes),
            bytes_text(change.now.bytes),
            format!("{}{}", sign(bytes), bytes_text(bytes.unsigned_abs())),
        ];
        cells.extend(is_estimate.then(|| change.deviation().map_or_else(String::new, bytes_text)));
        let objects = change.objects();
        cells.push(format!(
            "{}{}",
            sign(objects),
            grouped(objects.unsigned_abs())
        ));
        table.push(Row {
            cells,
            style: match bytes {
                1.. => Style::of_share(share),
                _ if share >= 5.0 => Some(Style::Good),
                _ => None,
            },
            name: shown(&change.name).into_owned() + &part_of(&change.within),
            is_text: true,
            ..Row::default()
        });
    }
    table
}

fn sign(number: i64) -> &'static str {
    match number {
        1.. => "+",
        0 => "",
        _ => "-",
    }
}

/// How long lies between the two.
fn since(base: &HeapFile, file: &HeapFile) -> String {
    crate::memory::since(base.facts.time_ns, file.facts.time_ns)
}

/// The rows as JSON.
pub fn as_json(base: &HeapFile, file: &HeapFile) -> String {
    let rows = |changes: Vec<Change>| changes.iter().map(Change::to_json).collect::<Vec<_>>();
    let change = |name: &str, base: Sum, now: Sum| {
        let amounts = |it: Sum| Amounts::counted(it.bytes, it.objects);
        let (name, before, now) = (name.into(), amounts(base), amounts(now));
        let within = String::new();
        Change {
            name,
            within,
            before,
            now,
        }
        .to_json()
    };
    let object = json!({
        "version": 1,
        "kind": "rperf heap change",
        "base": base.facts,
        "now": file.facts,
        "total": change("total", base.total, file.total),
        "unreferenced": change("unreferenced", base.unreferenced, file.unreferenced),
        "sites": sites(base, file).map(rows),
        "classes": rows(changes(classes(base), classes(file))),
        "holders": rows(changes(holders(base), holders(file))),
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_heap::file::{ClassRow, CodePlace, Holder, SiteRow, Sites};

    fn file(class: u64, holder: u64) -> HeapFile {
        HeapFile {
            classes: vec![
                ClassRow {
                    name: "Cart".into(),
                    objects: class / 40,
                    bytes: class,
                    ..ClassRow::default()
                },
                ClassRow {
                    name: "Same".into(),
                    objects: 1,
                    bytes: 40,
                    ..ClassRow::default()
                },
            ],
            holders: vec![Holder {
                name: "CARTS".into(),
                retained_bytes: holder,
                ..Holder::default()
            }],
            ..HeapFile::default()
        }
    }

    #[test]
    fn changes_have_signs_and_rows_that_are_the_same_are_left_out() {
        let (base, now) = (file(4000, 9 << 20), file(80_000, 1 << 20));
        let page = page(&base, &now, 9, Screen::default());
        assert!(
            page.contains("+1,900") && page.contains("-8.00 MB"),
            "{page}"
        );
        assert!(!page.contains("Same"), "{page}");
        let json: Value = serde_json::from_str(&as_json(&base, &now)).expect("JSON");
        assert_eq!(json["classes"][0]["change"]["bytes"], 76_000);
        assert_eq!(json["holders"][0]["change"]["bytes"], -(8 << 20));
        assert_eq!(json["classes"][0]["change"].get("deviation_bytes"), None);
        let same = super::page(&base, &base, 9, Screen::default());
        assert_eq!(same.matches("nothing has changed").count(), 2);
    }

    #[test]
    fn growth_of_a_part_is_told_as_that_of_its_holder() {
        let with = |holder: u64| {
            let mut file = file(40, holder);
            let part = Holder {
                name: "[:page] of a Fiber in CARTS".into(),
                retained_bytes: holder - 40,
                within: "CARTS".into(),
                ..Holder::default()
            };
            // What isn't part of it has a row of its own.
            let alone = Holder {
                within: String::new(),
                retained_bytes: 7 * holder,
                ..part.clone()
            };
            file.holders.extend([part, alone]);
            file
        };
        let (base, now) = (with(1 << 20), with(3 << 20));
        let page_of = |rows| page(&base, &now, rows, Screen::default());
        let page = page_of(9);
        assert!(
            page.contains("[:page] of a Fiber in CARTS (part of CARTS)\n"),
            "{page}"
        );
        assert!(
            page.contains("+14.00 MB        0  [:page] of a Fiber in CARTS\n"),
            "{page}"
        );
        assert!(page.ends_with(&format!("{NESTED}\n")), "{page}");
        assert!(!page_of(1).contains(NESTED), "{}", page_of(1));
        let json: Value = serde_json::from_str(&as_json(&base, &now)).expect("JSON");
        let within = |row: usize| json["holders"][row].get("within").and_then(Value::as_str);
        assert_eq!(
            [0, 1, 2].map(within).iter().flatten().collect::<Vec<_>>(),
            [&"CARTS"]
        );
        assert_eq!(json["classes"], Value::Array(Vec::new()));
    }

    #[test]
    fn it_is_said_where_holders_may_be_cut() {
        let with = |count: usize| {
            let mut file = file(40, 40);
            file.holders.resize(count, Holder::default());
            page(&file, &super::tests::file(40, 40), 9, Screen::default())
        };
        let line = "Of each side the 1,000 biggest holders are known";
        assert!(with(MOST).contains(line), "{}", with(MOST));
        assert!(!with(MOST - 1).contains(line));
    }

    #[test]
    fn a_site_is_the_same_in_both_and_its_change_has_the_noise_of_both() {
        let of = |bytes, deviation_bytes, others: &[&str]| {
            let row = |path: &str, bytes| SiteRow {
                made_in: Some(CodePlace {
                    method: "Cart#add".into(),
                    path: path.into(),
                    line: 41,
                }),
                class: "Item".into(),
                objects: bytes / 40,
                bytes,
                deviation_bytes,
                ..SiteRow::default()
            };
            let mut rows = vec![row("/srv/app/cart.rb", bytes)];
            rows.extend(others.iter().map(|path| row(path, 40)));
            HeapFile {
                sites: Some(Sites {
                    rows,
                    ..Sites::default()
                }),
                ..HeapFile::default()
            }
        };
        // The other file makes the path of the first a longer one.
        let (base, now) = (
            of(4 << 20, 3 << 10, &[]),
            of(6 << 20, 4 << 10, &["/srv/lib/cart.rb"]),
        );
        let json: Value = serde_json::from_str(&as_json(&base, &now)).expect("JSON");
        assert_eq!(json["sites"].as_array().map(Vec::len), Some(2), "{json}");
        let grown = &json["sites"][0];
        assert_eq!(grown["before"]["bytes"], 4 << 20);
        assert_eq!(grown["change"]["deviation_bytes"], 5 << 10);
        let page = page(&base, &now, 9, Screen::default());
        assert!(
            page.contains("+2.00 MB  5.0 KB  +52,429  Cart#add"),
            "{page}"
        );
        let mut of_class = now;
        if let Some(sites) = &mut of_class.sites {
            sites.of_class = Some("Item".into());
        }
        let json: Value = serde_json::from_str(&as_json(&base, &of_class)).expect("JSON");
        assert_eq!(json["sites"], Value::Null);
    }
}
