//! RPV1, the data of the web viewer: docs/internals/viewer-format.md. Written here, read by the
//! page (`viewer/src/format/`). Called by `format::write`, by the command's viewer and by
//! `Rperf::Viewer`; any thread.

mod changes;
mod columns;
mod interned;
mod latencies;
mod ops;
mod page;
mod requests;
mod suite;
mod tables;
mod timed;

pub use columns::{ColumnEntry, Columns};
pub(crate) use page::write_page;
pub use page::{page, page_of_heap, page_of_server};

use crate::FormatError;
use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_model::{Category, Column, Profile, SamplingStats, Schema, State, ValueType, Weight};
use rperf_report::{CodePaths, Diff, Idle, Sort};
use serde_json::{Map, Value, json};
use std::io::Write;
use tables::{PRUNED, Tables};

/// The first bytes of the data.
pub const MAGIC: &[u8; 4] = b"RPV1";
const VERSION: u32 = 1;

/// The level makes the data nearly as small as it gets: higher ones gain 1 %.
const COMPRESSION: Compression = Compression::new(6);

/// Compressed bytes above which the lightest stacks are left out: 50 MB of base64.
const MAX_BYTES: usize = 50_000_000 / 4 * 3;

/// The share of all below which rows are left out at first, and the factor by which it grows each
/// time that the data is still too large.
const LIGHTEST: f64 = 0.000_01;
const NEXT_LIGHTEST: f64 = 10.0;

/// The profiles that the page shows together, and the comparison of two of them.
#[derive(Debug, Clone, Default)]
pub struct View<'a> {
    /// The profiles; one at least.
    pub profiles: Vec<TitledProfile<'a>>,
    /// If set, the first profile is compared with the second.
    pub comparison: Option<Comparison>,
    /// What has changed between them, as `rperf diff` tells it: one entry for each value type of
    /// the first profile. Without one, the page judges by samples alone.
    pub changes: Vec<Option<Diff>>,
    /// What `changes` are about.
    pub changes_by: Sort,
    /// Files whose text the page can show: path, as in frames of the first profile, and text.
    pub sources: Vec<(String, String)>,
    /// Whether the page shows the time of idle threads as all other.
    pub shows_idle: bool,
}

/// A profile with its title on the page.
#[derive(Debug, Clone, Copy)]
pub struct TitledProfile<'a> {
    /// Usually the name of the file.
    pub title: &'a str,
    /// The profile. Value types that the first one lacks are left out.
    pub profile: &'a Profile,
}

/// How the first profile's values are made comparable.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The factor of its values.
    pub scale: f64,
    /// Why: `none`, `total`, `duration` or `label:KEY`.
    pub normalised: String,
}

impl Comparison {
    /// Snapshots of a program are of times of any length: it matters what a second has in it.
    pub fn by_duration(base: &Profile, target: &Profile) -> Self {
        let [base, target] = [base, target].map(|profile| profile.meta.duration_ns);
        if base == 0 || target == 0 {
            return Comparison {
                scale: 1.0,
                normalised: "none".into(),
            };
        }
        Comparison {
            scale: target as f64 / base as f64,
            normalised: "duration".into(),
        }
    }
}

/// Writes `view`, gzip'd.
pub fn write(view: &View<'_>, output: &mut dyn Write) -> Result<(), FormatError> {
    let bytes = encode_within(view, MAX_BYTES)?;
    output.write_all(&bytes)?;
    Ok(())
}

/// The data in at most `max_bytes`, if that can be had by leaving out what is light.
fn encode_within(view: &View<'_>, max_bytes: usize) -> Result<Vec<u8>, FormatError> {
    let mut least_share = 0.0;
    loop {
        let bytes = encode(view, least_share)?;
        if bytes.len() <= max_bytes || least_share > 0.01 {
            return Ok(bytes);
        }
        least_share = if least_share > 0.0 {
            least_share * NEXT_LIGHTEST
        } else {
            LIGHTEST
        };
    }
}

/// The data without rows that have less than `least_share` of their profile's default
/// column.
fn encode(view: &View<'_>, least_share: f64) -> Result<Vec<u8>, FormatError> {
    let mut columns = Columns::default();
    let mut tables = Tables::default();
    let mut profiles = Vec::new();
    for (index, titled) in view.profiles.iter().enumerate() {
        let least = least_value(titled.profile, least_share);
        let (kept, pruned) = rows(titled.profile, least);
        let idle = match view.shows_idle {
            true => vec![false; titled.profile.weights.len()],
            false => Idle::of(titled.profile).rows().to_vec(),
        };
        let is_idle: Vec<bool> = kept.iter().map(|&(row, _)| idle[row]).collect();
        let kept: Vec<Weight<'_>> = kept.into_iter().map(|(_, weight)| weight).collect();
        let rows = tables.add_profile(titled.profile, &kept, &is_idle, pruned.any());
        let types = columns_for(value_types(view), &titled.profile.schema);
        write_rows(&mut columns, index, &rows, &types, &pruned);
        latencies::write(index, titled.profile, &mut tables, &mut columns);
        requests::write(index, titled.profile, &mut tables, &mut columns);
        ops::write(index, titled.profile, &mut tables, &mut columns);
        suite::write(index, titled.profile, &mut tables, &mut columns);
        profiles.push(meta(titled, &pruned));
    }
    if let Some(first) = view.profiles.first() {
        let paths = CodePaths::of(first.profile);
        for (path, text) in &view.sources {
            tables.add_source(&paths.short(path), text);
        }
    }
    changes::write(&view.changes, &mut tables, &mut columns);
    tables.write(&mut columns);
    let header = header(view, profiles, &columns).to_string();
    let mut encoder = GzEncoder::new(Vec::new(), COMPRESSION);
    encoder.write_all(MAGIC)?;
    encoder.write_all(&(header.len() as u32).to_le_bytes())?;
    encoder.write_all(header.as_bytes())?;
    encoder.write_all(&columns.body)?;
    Ok(encoder.finish()?)
}

/// Rows that were left out.
#[derive(Debug, Default)]
struct Pruned {
    rows: u64,
    /// Their sums, one for each column.
    values: Vec<i64>,
}

impl Pruned {
    fn any(&self) -> bool {
        self.rows > 0
    }
}

fn least_value(profile: &Profile, share: f64) -> u64 {
    let column = profile.schema.default_column();
    let values = profile.weights.iter().map(|row| row.value(column));
    let total: f64 = values.map(|value| value.unsigned_abs() as f64).sum();
    (total * share) as u64
}

/// The rows with at least `least` in the default column, each with its place, and what the others
/// have.
fn rows(profile: &Profile, least: u64) -> (Vec<(usize, Weight<'_>)>, Pruned) {
    let column = profile.schema.default_column();
    let is_kept = |row: &Weight<'_>| least == 0 || row.value(column).unsigned_abs() >= least;
    let mut pruned = Pruned {
        rows: 0,
        values: vec![0; profile.schema.len()],
    };
    for row in profile.weights.iter().filter(|row| !is_kept(row)) {
        pruned.rows += 1;
        for (sum, value) in pruned.values.iter_mut().zip(row.values) {
            *sum = sum.saturating_add(*value);
        }
    }
    let rows = profile.weights.iter().enumerate();
    (rows.filter(|(_, row)| is_kept(row)).collect(), pruned)
}

/// The column that `schema` has for each of these types.
pub fn columns_for(types: &[ValueType], schema: &Schema) -> Vec<Option<Column>> {
    let mut is_taken = vec![false; schema.len()];
    let find = |wanted: &ValueType| {
        let mut types = schema.types().iter().zip(&is_taken);
        let found = types.position(|(found, taken)| !taken && found == wanted)?;
        is_taken[found] = true;
        Some(Column(found))
    };
    types.iter().map(find).collect()
}

fn write_rows(
    columns: &mut Columns,
    index: usize,
    rows: &tables::Rows<'_>,
    types: &[Option<Column>],
    pruned: &Pruned,
) {
    let name = |column: &str| format!("profiles/{index}/{column}");
    columns.deltas(&name("node"), rows.all().map(|row| row.node));
    columns.unsigned(&name("thread"), rows.all().map(|row| row.thread));
    columns.unsigned(&name("label_set"), rows.all().map(|row| row.label_set));
    columns.unsigned(&name("state"), rows.all().map(|row| row.state));
    if rows.all().any(|row| row.is_idle) {
        columns.unsigned(&name("idle"), rows.all().map(|row| u32::from(row.is_idle)));
    }
    for (number, column) in types.iter().enumerate() {
        let Some(column) = *column else { continue };
        let values = rows.all().map(|row| match row.weight {
            Some(weight) => weight.value(column),
            None => pruned.values[column.0],
        });
        columns.signed(&name(&format!("value/{number}")), values);
    }
}

/// The value types of the first profile.
fn value_types<'a>(view: &View<'a>) -> &'a [ValueType] {
    let first = view.profiles.first();
    first.map_or(&[], |first| first.profile.schema.types())
}

fn header(view: &View<'_>, profiles: Vec<Value>, columns: &Columns) -> Value {
    let schema = view.profiles.first().map(|first| &first.profile.schema);
    let types: Vec<_> = value_types(view)
        .iter()
        .map(|it| json!({"name": it.name, "unit": it.unit}))
        .collect();
    let mut header = json!({
        "version": VERSION,
        "value_types": types,
        "default_type": schema.map_or(0, |schema| schema.default_column().0),
        "states": State::ALL.map(state),
        "categories": Category::ALL.map(Category::name),
        "profiles": profiles,
        "columns": columns.directory,
    });
    if let Some(comparison) = &view.comparison {
        header["diff"] = json!({
            "base": 0,
            "target": 1,
            "scale": comparison.scale,
            "normalised": comparison.normalised,
        });
        if !view.changes.is_empty() {
            header["diff"]["changes"] = changes::totals(&view.changes).into();
            header["diff"]["by"] = match view.changes_by {
                Sort::SelfValue => "self",
                Sort::TotalValue => "total",
            }
            .into();
        }
    }
    header
}

fn state(state: State) -> Value {
    let name = match state {
        State::Running => "running",
        State::GvlBlocked => "blocked",
        State::GvlWait => "wait",
        State::GcMarking => "gc_mark",
        State::GcSweeping => "gc_sweep",
    };
    match state.tag() {
        Some((key, value)) => json!({"name": name, "tag": [key, value]}),
        None => json!({"name": name}),
    }
}

/// The facts about a profile. Unknown facts have no key.
fn meta(titled: &TitledProfile<'_>, pruned: &Pruned) -> Value {
    let meta = &titled.profile.meta;
    let mut known = Map::new();
    for (key, text) in [("title", titled.title), ("program", &meta.program)] {
        if !text.is_empty() {
            known.insert(key.into(), text.into());
        }
    }
    for (key, number) in [
        ("start_ms", meta.start_time_ns / 1_000_000),
        ("duration_ns", meta.duration_ns),
        ("frequency", u64::from(meta.frequency)),
    ] {
        if number > 0 {
            known.insert(key.into(), number.into());
        }
    }
    let lines = meta.lines();
    if !lines.is_empty() {
        known.insert("comments".into(), lines.into());
    }
    let losses = losses(&meta.counters, pruned);
    if !losses.is_empty() {
        known.insert("losses".into(), losses.into());
    }
    known.into()
}

fn losses(counters: &SamplingStats, pruned: &Pruned) -> Vec<Value> {
    let mut losses: Vec<_> = rperf_report::losses(counters)
        .into_iter()
        .map(|loss| json!({"counter": loss.counter, "value": loss.value, "text": loss.text}))
        .collect();
    if pruned.any() {
        let text = format!(
            "{} of the lightest stacks are together as {PRUNED}, or this page would be too large",
            rperf_report::numbers::grouped(pruned.rows)
        );
        losses.push(json!({"counter": "pruned_stacks", "value": pruned.rows, "text": text}));
    }
    losses
}

#[cfg(test)]
mod tests;
