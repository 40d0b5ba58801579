//! The verdicts of `rperf diff` in RPV1: columns for each value type, and the totals for the
//! header. Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use rperf_report::{Change, Diff};
use serde_json::{Value, json};

/// Writes a table for each value type that has one.
pub(super) fn write(changes: &[Option<Diff>], tables: &mut Tables, columns: &mut Columns) {
    for (number, diff) in changes.iter().enumerate() {
        let Some(Diff { rows, .. }) = diff else {
            continue;
        };
        let name = |column: &str| format!("changes/{number}/{column}");
        let mut strings = |texts: Vec<&str>| -> Vec<u32> {
            let texts = texts.into_iter();
            texts.map(|text| tables.string(text)).collect()
        };
        let names = strings(rows.iter().map(|row| &*row.function.name).collect());
        let files = strings(rows.iter().map(|row| &*row.function.short_path).collect());
        columns.unsigned(&name("name"), names.into_iter());
        columns.unsigned(&name("file"), files.into_iter());
        columns.signed(&name("base"), rows.iter().map(|row| row.base));
        columns.signed(&name("target"), rows.iter().map(|row| row.target));
        let verdicts = rows.iter().map(|row| verdict(row.change));
        columns.unsigned(&name("verdict"), verdicts);
    }
}

/// For the header: one entry for each value type.
pub(super) fn totals(changes: &[Option<Diff>]) -> Vec<Value> {
    let totals = changes.iter().map(|diff| {
        let Some(Diff { total, runs, .. }) = diff else {
            return Value::Null;
        };
        json!({
            "runs": runs,
            "base": total.base,
            "target": total.target,
            "verdict": verdict(total.change),
        })
    });
    totals.collect()
}

fn verdict(change: Change) -> u32 {
    match change {
        Change::Unknown => 0,
        Change::Noise => 1,
        Change::More => 2,
        Change::Less => 3,
    }
}
