//! The answers of rperf-report as plain data, in the schema of docs/guide/json.md. Called by the
//! JSON and Markdown formats, by the command's pages, and by the Ruby API, which makes Hashes and
//! Arrays of the data. Any thread.

mod data;
mod gc;
mod ops;
mod suite;
mod why;

pub use data::Data;
pub use gc::collections;
pub use ops::ops;
pub use suite::tests;
pub use why::{ENDPOINTS_TOLD, endpoint, endpoints};

use rperf_model::{Profile, ValueType};
use rperf_report::{
    Boot, By, Diff, DiffRow, Direction, Function, Idle, Methods, NamePattern, Neighbour,
    Neighbours, Place, Sort, StateRow, Top, Totals, Tree, TreeLimits,
};

/// Rows of [`top`] unless asked for otherwise.
pub const ROWS: usize = 50;
/// The least share of a branch of [`tree`], in percent, unless asked for otherwise.
pub const LEAST_PERCENT: f64 = 0.5;

/// An answer with rows in an order, so many at most, such as [`methods()`] or [`tests()`].
pub type Rows = fn(FilteredProfile<'_>, Sort, Option<usize>) -> Data;

/// The profile that is asked. All values are of its default column.
#[derive(Debug, Clone, Copy)]
pub struct FilteredProfile<'a> {
    /// The profile after filters.
    pub profile: &'a Profile,
    /// Its sum before them.
    pub whole: i64,
    /// The time of idle threads.
    pub idle: IdleTime,
}

/// The time of idle threads, in the values that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleTime {
    /// The profile has so much of it.
    Kept(i64),
    /// So much was left out before all else.
    LeftOut(i64),
}

impl IdleTime {
    /// How much there is.
    pub fn value(self) -> i64 {
        match self {
            IdleTime::Kept(value) | IdleTime::LeftOut(value) => value,
        }
    }

    /// How much is left out of what is shown.
    pub fn left_out(self) -> i64 {
        match self {
            IdleTime::Kept(_) => 0,
            IdleTime::LeftOut(value) => value,
        }
    }
}

impl<'a> FilteredProfile<'a> {
    /// All of `profile`.
    pub fn all(profile: &'a Profile) -> Self {
        Self {
            profile,
            whole: profile.sum(profile.schema.default_column()),
            idle: IdleTime::Kept(Idle::of(profile).value()),
        }
    }

    /// All of `profile`, from which so much time of idle threads was left out.
    pub fn all_but_idle(profile: &'a Profile, idle: i64) -> Self {
        Self {
            idle: IdleTime::LeftOut(idle),
            whole: profile.sum(profile.schema.default_column()),
            profile,
        }
    }
}

/// The sums of the profile, and its losses.
pub fn totals(filtered: FilteredProfile<'_>) -> Vec<(&'static str, Data)> {
    let profile = filtered.profile;
    let (schema, meta) = (&profile.schema, &profile.meta);
    let totals = Totals::of(profile, schema.default_column());
    let states = StateRow::ALL.map(|row| (row, totals.row(row)));
    let is_shown = |(row, value): &(StateRow, i64)| matches!(row, StateRow::Of(_)) || *value != 0;
    let states = states.into_iter().filter(is_shown);
    let states = states.map(|(row, value)| (row.name(), value.into()));
    let counters = &meta.counters;
    let losses = [
        ("dropped_samples", counters.dropped_samples.into()),
        ("dropped_ns", counters.dropped_ns.into()),
        ("truncated_samples", counters.truncated_samples.into()),
        ("folded_samples", counters.folded_samples.into()),
        ("folded_ns", counters.folded_ns.into()),
        ("unlabelled_samples", counters.unlabelled_samples.into()),
    ];
    vec![
        ("type", value_type(schema.default_type())),
        ("types", Data::list(schema.types().iter().map(value_type))),
        ("total", filtered.whole.into()),
        ("left", totals.value.into()),
        ("idle", filtered.idle.value().into()),
        ("samples", profile.sample_count().into()),
        ("duration_ns", meta.duration_ns.into()),
        ("frequency", u64::from(meta.frequency).into()),
        (
            "roots",
            Data::list(meta.roots.iter().map(|root| root.as_str().into())),
        ),
        ("states", Data::fields(states)),
        ("losses", Data::fields(losses)),
    ]
}

/// The rows with the most.
pub fn top(filtered: FilteredProfile<'_>, by: &By, sort: Sort, limit: Option<usize>) -> Data {
    let column = filtered.profile.schema.default_column();
    let top = Top::of(filtered.profile, column, by);
    let rows = top.sorted(sort).into_iter();
    Data::list(rows.take(limit.unwrap_or(usize::MAX)).map(|row| {
        let [name, path, short_path] = function(&row.function);
        Data::fields([
            name,
            path,
            short_path,
            category(filtered.profile, &row.function),
            ("self", row.self_value.into()),
            ("total", row.total_value.into()),
            ("self_samples", row.self_samples.into()),
            ("total_samples", row.total_samples.into()),
        ])
    }))
}

/// All that is known of each method; null if the profile counts neither calls nor objects.
pub fn methods(filtered: FilteredProfile<'_>, sort: Sort, limit: Option<usize>) -> Data {
    let column = filtered.profile.schema.default_column();
    let found = Methods::of(filtered.profile, column, &By::Function, sort);
    if !found.has_calls && !found.has_objects {
        return Data::Null;
    }
    let known = |is_known: bool, value: i64| match is_known {
        true => value.into(),
        false => Data::Null,
    };
    let rows = found.rows.iter().take(limit.unwrap_or(usize::MAX));
    Data::list(rows.map(|row| {
        let [name, path, short_path] = function(&row.function);
        Data::fields([
            name,
            path,
            short_path,
            category(filtered.profile, &row.function),
            ("calls", row.calls.into()),
            ("block_calls", row.block_calls.into()),
            ("self", row.self_value.into()),
            ("total", row.total_value.into()),
            ("children", row.children().into()),
            ("wait", row.wait.into()),
            ("blocked", row.blocked.into()),
            ("gc", row.gc.into()),
            ("cpu", known(found.has_cpu, row.cpu)),
            ("objects", known(found.has_objects, row.objects)),
            ("self_objects", known(found.has_objects, row.self_objects)),
            ("bytes", known(found.has_objects, row.bytes)),
            ("p50_ns", row.latency.map(|it| it.p50).into()),
            ("p99_ns", row.latency.map(|it| it.p99).into()),
            ("max_ns", row.latency.map(|it| it.max).into()),
            ("recursive", Data::Bool(row.is_recursive)),
        ])
    }))
}

/// Whose code the function is; null for rows that aren't of one file.
fn category(profile: &Profile, function: &Function) -> (&'static str, Data) {
    let category = match &*function.path {
        "" => Data::Null,
        path => profile
            .meta
            .origin(&function.name, path)
            .category
            .name()
            .into(),
    };
    ("category", category)
}

/// The call tree, without branches of less than `least_percent` of the whole.
pub fn tree(filtered: FilteredProfile<'_>, direction: Direction, least_percent: f64) -> Data {
    let limits = TreeLimits {
        least: (filtered.whole.unsigned_abs() as f64 * least_percent / 100.0).ceil() as u64,
        ..TreeLimits::default()
    };
    let column = filtered.profile.schema.default_column();
    let tree = Tree::of(filtered.profile, column, direction, limits);
    Data::list(tree.branches.iter().map(|branch| {
        let [name, path, short_path] = function(&tree.functions[branch.function]);
        Data::fields([
            name,
            path,
            short_path,
            ("depth", branch.depth.into()),
            ("self", branch.self_value.into()),
            ("total", branch.total_value.into()),
            ("left_out", branch.left_out.into()),
        ])
    }))
}

/// The methods that `pattern` chooses, each with its callers and callees.
pub fn callers(filtered: FilteredProfile<'_>, pattern: &NamePattern) -> Data {
    let column = filtered.profile.schema.default_column();
    let found = Neighbours::of(filtered.profile, column, pattern);
    Data::list(found.iter().map(|neighbours| {
        let [name, path, short_path] = function(&neighbours.function);
        Data::fields([
            name,
            path,
            short_path,
            ("self", neighbours.self_value.into()),
            ("total", neighbours.total_value.into()),
            ("callers", Data::list(neighbours.callers.iter().map(side))),
            ("callees", Data::list(neighbours.callees.iter().map(side))),
        ])
    }))
}

/// The loading of files: up to `limit` files, or lines that load some.
pub fn boot(filtered: FilteredProfile<'_>, sort: Sort, limit: Option<usize>) -> Data {
    let column = filtered.profile.schema.default_column();
    let boot = Boot::of(filtered.profile, column, sort);
    let files = boot.files.iter().take(limit.unwrap_or(usize::MAX));
    let files = files.map(|file| {
        let from = file.from.as_ref().map(|it| Data::fields(place(it)));
        let values = [
            ("own", file.own.into()),
            ("load", file.load.into()),
            ("total", file.total.into()),
            ("from", from.unwrap_or(Data::Null)),
        ];
        Data::Fields(place(&file.place).into_iter().chain(values).collect())
    });
    let gems = boot.gems.iter().map(|gem| {
        Data::fields([
            ("name", (&*gem.name).into()),
            ("files", gem.files.into()),
            ("self", gem.own.into()),
            ("total", gem.total.into()),
        ])
    });
    let initializers = boot.initializers.iter().map(|it| {
        let name = [("name", (&*it.name).into())].into_iter();
        let fields = name.chain(place(&it.place));
        Data::Fields(fields.chain([("total", it.total.into())]).collect())
    });
    Data::fields([
        ("total", boot.total.into()),
        ("program", boot.program.into()),
        ("row_count", boot.files.len().into()),
        ("files", Data::list(files)),
        ("gems", Data::list(gems)),
        ("initializers", Data::list(initializers)),
    ])
}

/// A file, or a line that loads files.
fn place(place: &Place) -> [(&'static str, Data); 4] {
    [
        ("kind", place.kind.name().into()),
        ("path", (&*place.path).into()),
        ("short_path", (&*place.short_path).into()),
        ("line", u64::from(place.line).into()),
    ]
}

fn side(neighbour: &Neighbour) -> Data {
    let [name, path, short_path] = function(&neighbour.function);
    let lines = neighbour.lines.iter().map(|&(line, value)| {
        Data::fields([("line", u64::from(line).into()), ("value", value.into())])
    });
    Data::fields([
        name,
        path,
        short_path,
        ("value", neighbour.value.into()),
        ("lines", Data::list(lines)),
    ])
}

/// The changes: up to `limit` rows.
pub fn diff(diff: &Diff, limit: Option<usize>) -> Data {
    let [base_runs, target_runs] = diff.runs;
    let [base_idle, target_idle] = diff.idle;
    let rows = diff.rows.iter().take(limit.unwrap_or(usize::MAX));
    let fields = [
        ("version", 1_u64.into()),
        ("type", value_type(&diff.value_type)),
        ("base_runs", base_runs.into()),
        ("target_runs", target_runs.into()),
        ("row_count", diff.rows.len().into()),
        ("total", Data::fields(change(diff, &diff.total))),
        (
            "idle",
            Data::fields([("base", base_idle.into()), ("target", target_idle.into())]),
        ),
        (
            "rows",
            Data::list(rows.map(|row| {
                let base_path = row.base_path.as_deref().map_or(Data::Null, Data::from);
                let matched = row.matched.map_or(Data::Null, |it| it.name().into());
                let fields = function(&row.function).into_iter();
                let fields = fields.chain([("base_path", base_path), ("matched", matched)]);
                Data::Fields(fields.chain(change(diff, row)).collect())
            })),
        ),
    ];
    let rows_are = diff.is_of_tests.then(|| ("rows_are", "tests".into()));
    Data::fields(fields.into_iter().chain(rows_are).chain(requests(diff)))
}

/// How many requests each side has, if the values are scaled by them.
fn requests(diff: &Diff) -> Option<(&'static str, Data)> {
    let per = diff.per_request?;
    let [base, target] = per.requests;
    let fields = [
        ("base", base),
        ("target", target),
        ("scaled_to", per.scaled_to),
    ];
    let fields = fields.map(|(name, count)| (name, count.into()));
    Some(("requests", Data::fields(fields)))
}

fn change(diff: &Diff, row: &DiffRow) -> Vec<(&'static str, Data)> {
    let values = [
        ("base", row.base),
        ("target", row.target),
        ("delta", row.delta()),
    ];
    let per_request = diff.per_request.map(|per| {
        let values = values.map(|(name, value)| (name, Data::Number(per.of_one(value))));
        ("per_request", Data::fields(values))
    });
    let values = values.map(|(name, value)| (name, value.into()));
    let more = [
        ("percent", row.percent().map_or(Data::Null, Data::Number)),
        ("change", row.change.word(&diff.value_type.unit).into()),
    ];
    values.into_iter().chain(more).chain(per_request).collect()
}

fn value_type(value_type: &ValueType) -> Data {
    Data::fields([
        ("name", value_type.name.as_str().into()),
        ("unit", value_type.unit.as_str().into()),
    ])
}

fn function(function: &Function) -> [(&'static str, Data); 3] {
    [
        ("name", function.name.as_str().into()),
        ("path", function.path.as_str().into()),
        ("short_path", function.short_path.as_str().into()),
    ]
}
