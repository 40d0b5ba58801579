//! Memory for people: the table of its rows, that of slots, and what is to be known beside them. Used by
//! `rperf memory`; any thread.

use crate::memory::{Amounts, Lack, MemoryFile, MemoryPool};
use crate::table::{Column, Row, Style, Table};
use rperf_model::ValueType;
use rperf_report::Scale;
use rperf_report::memory::rows::RowKind;
use rperf_report::numbers::{counted, grouped, percent, signed};

/// From which share of what malloc has handed out on it is told that so much isn't resident.
const UNTOUCHED: f64 = 10.0;

/// From how many heaps of arenas on, and which share of all that malloc keeps free, these are told.
const HEAPS: u64 = 8;
const FREE: f64 = 20.0;

/// A number of bytes with its unit.
pub fn bytes_text(bytes: u64) -> String {
    scale(bytes).text(signed(bytes))
}

/// The rows, and below them the RSS. `with_shares`: also what is shared with other processes.
pub fn memory_table(file: &MemoryFile, with_shares: bool) -> Table {
    let mut columns = vec![Column::new("RSS"), Column::weighing("RSS%", 2)];
    if with_shares {
        columns.extend([Column::new("PSS"), Column::weighing("shared", 3)]);
    }
    let has_swap = file.total.swap_bytes > 0;
    if has_swap {
        columns.push(Column::weighing("swapped", 1));
    }
    let scale = scale(file.total.rss_bytes);
    let of_total = |it: &Amounts| percent(it.rss_bytes, file.total.rss_bytes);
    let cells = |it: &Amounts| {
        let mut cells = vec![
            scale.text(signed(it.rss_bytes)),
            format!("{:.1}%", of_total(it)),
        ];
        if with_shares {
            cells.extend([it.pss_bytes, it.shared_bytes].map(|bytes| scale.text(signed(bytes))));
        }
        if has_swap {
            cells.push(scale.text(signed(it.swap_bytes)));
        }
        cells
    };
    let mut table = Table::new(columns).with_names("of");
    for row in &file.rows {
        table.push(Row {
            cells: cells(&row.amounts),
            style: Style::of_share(of_total(&row.amounts)),
            name: row.title().into(),
            detail: detail(file, &row.name),
            ..Row::default()
        });
    }
    table.push(Row {
        cells: cells(&file.total),
        style: Some(Style::Bold),
        name: "in all".into(),
        ..Row::default()
    });
    table
}

/// What is known beside a row's bytes.
fn detail(file: &MemoryFile, name: &str) -> String {
    let sum = |of: fn(&MemoryPool) -> u64| file.pools.iter().map(of).fold(0, u64::saturating_add);
    let (live, slots) = (sum(|it| it.live), sum(|it| it.slots));
    match (name, &file.objects) {
        ("heap_live", _) => grouped(live),
        ("heap_free", _) => grouped(slots.saturating_sub(live)),
        ("malloc_objects", Some(objects)) => counted(objects.count, "object"),
        _ => String::new(),
    }
}

/// The rows of two, with what has changed.
pub fn memory_changes(base: &MemoryFile, file: &MemoryFile) -> Table {
    let columns = ["before", "now", "change"].map(Column::new);
    let mut table = Table::new(columns).with_names("of");
    let largest = base.total.rss_bytes.max(file.total.rss_bytes);
    let scale = scale(largest);
    let cells = |before: Amounts, now: Amounts| {
        let change = signed(now.rss_bytes) - signed(before.rss_bytes);
        let cells = vec![
            scale.text(signed(before.rss_bytes)),
            scale.text(signed(now.rss_bytes)),
            format!("{}{}", scale.plus(change), scale.text(change)),
        ];
        (cells, change)
    };
    for row in base.names_of_both(file) {
        let (cells, change) = cells(base.row(&row.name), file.row(&row.name));
        let share = percent(change.unsigned_abs(), largest);
        table.push(Row {
            cells,
            style: match change {
                1.. => Style::of_share(share),
                _ if share >= 5.0 => Some(Style::Good),
                _ => None,
            },
            name: row.title().into(),
            is_text: true,
            ..Row::default()
        });
    }
    table.push(Row {
        cells: cells(base.total, file.total).0,
        style: Some(Style::Bold),
        name: "in all".into(),
        ..Row::default()
    });
    table
}

/// The pools of slots; `None` if there are none.
pub fn slots_table(file: &MemoryFile) -> Option<Table> {
    if file.pools.is_empty() {
        return None;
    }
    let columns = vec![
        Column::new("slot"),
        Column::new("slots"),
        Column::new("live"),
        Column::weighing("live%", 2),
        Column::weighing("RSS", 1),
    ];
    let mut table = Table::new(columns);
    for pool in &file.pools {
        table.push(Row {
            cells: vec![
                format!("{} B", pool.slot_bytes),
                grouped(pool.slots),
                grouped(pool.live),
                format!("{:.1}%", percent(pool.live, pool.slots)),
                bytes_text(pool.rss_bytes),
            ],
            ..Row::default()
        });
    }
    Some(table)
}

/// What is to be known of the rows, in lines.
pub fn memory_notes(file: &MemoryFile) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(malloc) = &file.malloc {
        let (handed_out, untouched) = (malloc.handed_out_bytes, malloc.untouched_bytes);
        if percent(untouched, handed_out) > UNTOUCHED {
            notes.push(format!(
                "malloc has handed out {}, of which {} aren't resident, and in no row: nobody has touched them, or \
                 they are swapped out.",
                bytes_text(handed_out),
                bytes_text(untouched),
            ));
        }
        let free = file.row("malloc_free").rss_bytes;
        if malloc.heaps > HEAPS && percent(free, file.total.rss_bytes) > FREE {
            notes.push(format!(
                "malloc has {} heaps for threads, each of which keeps what is free in it: if these are of many \
                 arenas, MALLOC_ARENA_MAX=2 makes them fewer.",
                malloc.heaps
            ));
        }
    }
    notes.extend(memory_lacks(file));
    notes
}

/// What isn't known, and why, in lines.
pub fn memory_lacks(file: &MemoryFile) -> Vec<String> {
    let lacks = file.lacks.iter();
    lacks.filter_map(|it| lack(file, it)).collect()
}

fn lack(file: &MemoryFile, lack: &Lack) -> Option<String> {
    Some(match lack {
        Lack::Port => "The program has no port, so only it knows what is Ruby's heap and what is malloc's: \
                       start it with RPERF_LISTEN=1 (and rperf in its Gemfile), or call Rperf.listen."
            .into(),
        Lack::Answer(why) => format!("What is Ruby's heap isn't known: {why}."),
        Lack::Pages => "The kernel doesn't tell which pages are resident (/proc/PID/pagemap), so Ruby's heap \
                        and stacks are in other rows."
            .into(),
        Lack::HeapPages => format!(
            "The pages of this garbage collector ({}) aren't known: they are in '{}'.",
            file.facts.collector.as_deref().unwrap_or("unknown"),
            RowKind::HeapAndOther.title()
        ),
        Lack::Malloc => {
            let malloc = file.malloc.as_ref().map_or("", |it| &it.allocator);
            format!("What malloc ({malloc}) has handed out isn't known.")
        }
        Lack::Objects => "This Ruby can't be asked for the sizes of its objects.".into(),
        Lack::Other(_) => return None,
    })
}

fn scale(largest: u64) -> Scale {
    Scale::new(&ValueType::new("memory", "bytes"), signed(largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryMalloc, MemoryRow};
    use crate::table::Surface;

    const MB: u64 = 1 << 20;

    fn file(rows: &[(&str, u64)]) -> MemoryFile {
        let amounts = |mb: u64| Amounts {
            rss_bytes: mb * MB,
            pss_bytes: mb * MB / 2,
            shared_bytes: mb * MB,
            swap_bytes: 0,
        };
        let rows = rows.iter().map(|&(name, mb)| MemoryRow {
            name: name.into(),
            amounts: amounts(mb),
        });
        let rows: Vec<_> = rows.collect();
        let sum = rows.iter().map(|it| it.amounts.rss_bytes / MB).sum();
        MemoryFile {
            total: amounts(sum),
            rows,
            pools: vec![MemoryPool {
                slot_bytes: 40,
                slots: 1600,
                live: 1200,
                rss_bytes: 64 << 10,
            }],
            ..MemoryFile::default()
        }
    }

    #[test]
    fn rows_have_units_and_their_sum() {
        let file = file(&[("heap_live", 30), ("later", 10)]);
        let expected = "     RSS    RSS%       PSS    shared  of
30.00 MB   75.0%  15.00 MB  30.00 MB  Ruby heap: live objects (1,200)
10.00 MB   25.0%   5.00 MB  10.00 MB  later
40.00 MB  100.0%  20.00 MB  40.00 MB  in all
";
        assert_eq!(memory_table(&file, true).render(Surface::PLAIN), expected);
        let slots = slots_table(&file).expect("slots").render(Surface::PLAIN);
        let expected = "\
slot  slots   live  live%      RSS
40 B  1,600  1,200  75.0%  64.0 KB
";
        assert_eq!(slots, expected);
    }

    #[test]
    fn changes_have_signs() {
        let base = file(&[("heap_live", 30), ("other", 10)]);
        let now = file(&[("heap_live", 50), ("files_ruby", 4), ("other", 3)]);
        let expected = "  before       now     change  of
30.00 MB  50.00 MB  +20.00 MB  Ruby heap: live objects
 0.00 MB   4.00 MB   +4.00 MB  files: Ruby
10.00 MB   3.00 MB   -7.00 MB  other anonymous memory
40.00 MB  57.00 MB  +17.00 MB  in all
";
        assert_eq!(memory_changes(&base, &now).render(Surface::PLAIN), expected);
    }

    #[test]
    fn what_is_odd_is_told() {
        let mut file = file(&[("malloc_free", 30), ("other", 10)]);
        assert!(memory_notes(&file).is_empty());
        file.malloc = Some(MemoryMalloc {
            heaps: 9,
            handed_out_bytes: 100 * MB,
            untouched_bytes: 11 * MB,
            ..MemoryMalloc::default()
        });
        file.lacks = vec![Lack::Answer("it is busy".into())];
        let notes = memory_notes(&file);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("100.00 MB, of which 11.00 MB"));
        assert!(notes[1].contains("9 heaps") && notes[2].ends_with("known: it is busy."));
    }
}
