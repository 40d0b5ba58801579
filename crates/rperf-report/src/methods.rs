//! All that is known of each method at once: its own time and that of its callees, calls, waits,
//! garbage collection, objects. Used by `rperf report --methods` and JSON; any thread.

use crate::rows::in_ops::op_texts;
use crate::rows::states::state_rows;
use crate::rows::tags::tag_texts;
use crate::rows::threads::thread_texts;
use crate::stack::groups::{FrameKey, Function, Groups};
use crate::stack::walk::{OnceSums, Values, Visitor, add, walk_summing};
use crate::text::code_paths::CodePaths;
use crate::top::{By, Sort};
use rperf_model::{Column, Histogram, Node, NodeId, Order, OwnColumn, Profile, State, Weight};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;

/// What is summed: the value that is asked for, of it what passed in states, and the columns of
/// calls, CPU time and objects.
const SUMS: usize = 9;
const VALUE: usize = 0;
const WAIT: usize = 1;
const BLOCKED: usize = 2;
const GC: usize = 3;
const CALLS: usize = 4;
const BLOCK_CALLS: usize = 5;
const CPU: usize = 6;
const OBJECTS: usize = 7;
const BYTES: usize = 8;

/// The columns that are shown beside the value, in the order of the sums from [`CALLS`] on.
const COLUMNS: [OwnColumn; 5] = [
    OwnColumn::Calls,
    OwnColumn::BlockCalls,
    OwnColumn::Cpu,
    OwnColumn::Objects,
    OwnColumn::Bytes,
];

/// What is known of a method, or of whatever else the rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// The method.
    pub function: Function,
    /// Its calls; `None` if they weren't counted.
    pub calls: Option<i64>,
    /// The calls of its blocks; `None` if they weren't counted.
    pub block_calls: Option<i64>,
    /// Value of the stacks whose leaf it is, while their threads ran.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each stack once.
    pub total_value: i64,
    /// The part of `total_value` in which a thread waited for the GVL.
    pub wait: i64,
    /// In which it had no GVL and didn't wait for it.
    pub blocked: i64,
    /// In which it collected garbage.
    pub gc: i64,
    /// CPU time of these stacks.
    pub cpu: i64,
    /// Objects that were made in the method itself.
    pub self_objects: i64,
    /// Objects that were made in these stacks.
    pub objects: i64,
    /// Their bytes.
    pub bytes: i64,
    /// How long its calls took that have ended, with all that passed in them.
    pub latency: Option<Latency>,
    /// Whether the method calls itself, directly or through others; known only where calls are
    /// counted.
    pub is_recursive: bool,
}

/// How long calls took, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// Half of the calls took no longer, or nearly so.
    pub p50: u64,
    /// 99 of 100 took no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Latency {
    fn of(durations: &Histogram) -> Option<Self> {
        (durations.count() > 0).then(|| Self {
            p50: durations.quantile(50),
            p99: durations.quantile(99),
            max: durations.max(),
        })
    }
}

impl Method {
    /// The value of all that it calls, and of its own waits.
    pub fn children(&self) -> i64 {
        self.total_value.saturating_sub(self.self_value)
    }

    /// The value that rows are ranked by.
    pub fn value(&self, sort: Sort) -> i64 {
        match sort {
            Sort::SelfValue => self.self_value,
            Sort::TotalValue => self.total_value,
        }
    }
}

/// The methods of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Methods {
    /// The methods with any value, the largest first.
    pub rows: Vec<Method>,
    /// The profile counts calls.
    pub has_calls: bool,
    /// The values are times, and it has CPU time beside them.
    pub has_cpu: bool,
    /// Whether the profile counts objects.
    pub has_objects: bool,
    /// Whether the rows are methods, and the profile tells how long all calls took.
    pub has_latency: bool,
}

impl Methods {
    /// The methods of `profile`, or what else `by` says, for the values in `column`.
    pub fn of(profile: &Profile, column: Column, by: &By, sort: Sort) -> Self {
        let columns = COLUMNS.map(|it| profile.schema.find_own(it));
        let values = |row: Weight<'_>| values(row, column, &columns);
        let mut rows = match by {
            By::Function => by_frames(profile, FrameKey::Function, values),
            By::Class => by_frames(profile, FrameKey::Class, values),
            By::File => by_frames(profile, FrameKey::File, values),
            By::Directory => by_frames(profile, FrameKey::Directory, values),
            By::Gem(core) => by_frames(profile, FrameKey::Gem(*core), values),
            By::Thread => {
                let text = thread_texts(profile);
                by_weight(profile, values, |row| text(row.key))
            }
            By::State => {
                let state = state_rows(profile);
                by_weight(profile, values, |row| state(row.key).name().into())
            }
            By::Label(key) => {
                let mut text = tag_texts(profile, key);
                by_weight(profile, values, |row| text(row.key))
            }
            By::Op => {
                let text = op_texts(profile);
                by_weight(profile, values, |row| text(row.key))
            }
        };
        let has_latency = *by == By::Function && !profile.latencies.is_empty();
        if has_latency {
            add_latencies(profile, &mut rows);
        }
        rows.order_by(|a, b| a.function.cmp(&b.function));
        rows.order_by_key(|row| {
            let rank = |sort| row.value(sort).unsigned_abs();
            Reverse((rank(sort), rank(sort.other()), row.calls))
        });
        let has = |sum: usize| columns[sum - CALLS].is_some();
        let is_time = profile.schema.types()[column.0].unit == "nanoseconds";
        Self {
            rows,
            has_calls: has(CALLS),
            has_cpu: columns[CPU - CALLS].is_some_and(|cpu| cpu != column) && is_time,
            has_objects: has(OBJECTS),
            has_latency,
        }
    }
}

fn values(
    row: Weight<'_>,
    column: Column,
    columns: &[Option<Column>; COLUMNS.len()],
) -> Values<SUMS> {
    let mut values = [0; SUMS];
    values[VALUE] = row.value(column);
    match row.key.state {
        State::Running => {}
        State::GvlWait => values[WAIT] = values[VALUE],
        State::GvlBlocked => values[BLOCKED] = values[VALUE],
        State::GcMarking | State::GcSweeping => values[GC] = values[VALUE],
    }
    for (value, column) in values[CALLS..].iter_mut().zip(columns) {
        *value = column.map_or(0, |column| row.value(column));
    }
    values
}

/// What passed while threads ran.
fn running(values: &Values<SUMS>) -> i64 {
    values[VALUE] - values[WAIT] - values[BLOCKED] - values[GC]
}

fn method(
    function: Function,
    own: Values<SUMS>,
    total: Values<SUMS>,
    is_recursive: bool,
) -> Method {
    let counted = |calls: i64| (calls != 0).then_some(calls);
    Method {
        function,
        calls: counted(own[CALLS]),
        block_calls: counted(own[BLOCK_CALLS]),
        self_value: running(&own),
        total_value: total[VALUE],
        wait: total[WAIT],
        blocked: total[BLOCKED],
        gc: total[GC],
        cpu: total[CPU],
        self_objects: own[OBJECTS],
        objects: total[OBJECTS],
        bytes: total[BYTES],
        latency: None,
        is_recursive,
    }
}

/// A method's calls can be known by several paths that mean the same.
fn add_latencies(profile: &Profile, rows: &mut [Method]) {
    let paths = CodePaths::of(profile);
    let mut known: FxHashMap<(&str, Cow<'_, str>), Histogram> = FxHashMap::default();
    for it in &profile.latencies {
        let durations = known.entry((&it.name, paths.short(&it.path)));
        durations.or_default().merge(&it.durations);
    }
    for row in rows {
        let Function {
            name, short_path, ..
        } = &row.function;
        let durations = known.get(&(name.as_str(), short_path.as_str().into()));
        row.latency = durations.and_then(Latency::of);
    }
}

struct Sums<'a> {
    groups: &'a Groups<'a>,
    profile: &'a Profile,
    own: Vec<Values<SUMS>>,
    sums: OnceSums<SUMS>,
    open: Vec<u32>,
    is_recursive: Vec<bool>,
}

impl Visitor<SUMS> for Sums<'_> {
    fn enter(&mut self, id: NodeId, node: Node) {
        let group = self.groups.of_node(id, node);
        self.sums.enter(group);
        self.open[group] += 1;
    }

    fn row(&mut self, row: Weight<'_>, values: Values<SUMS>) {
        if let Some(&node) = self.profile.tree.get(row.key.node) {
            let group = self.groups.of_node(row.key.node, node);
            add(&mut self.own[group], values);
            // A block below its own method has that one's name, but its calls are none of it.
            self.is_recursive[group] |= self.open[group] > 1 && values[CALLS] > 0;
        }
    }

    fn leave(&mut self, id: NodeId, node: Node, total: Values<SUMS>) {
        let group = self.groups.of_node(id, node);
        self.sums.leave(group, total);
        self.open[group] -= 1;
    }
}

fn by_frames(
    profile: &Profile,
    key: FrameKey,
    values: impl Fn(Weight<'_>) -> Values<SUMS>,
) -> Vec<Method> {
    let groups = Groups::new(profile, key);
    let mut sums = Sums {
        groups: &groups,
        profile,
        own: vec![[0; SUMS]; groups.len()],
        sums: OnceSums::new(groups.len()),
        open: vec![0; groups.len()],
        is_recursive: vec![false; groups.len()],
    };
    walk_summing(profile, values, &mut sums);
    let rows = (0..groups.len()).filter(|group| sums.sums.totals[*group] != [0; SUMS]);
    rows.map(|group| {
        let (own, total) = (sums.own[group], sums.sums.totals[group]);
        method(groups.function(group), own, total, sums.is_recursive[group])
    })
    .collect()
}

fn by_weight(
    profile: &Profile,
    values: impl Fn(Weight<'_>) -> Values<SUMS>,
    mut name: impl FnMut(Weight<'_>) -> String,
) -> Vec<Method> {
    let mut sums: FxHashMap<String, Values<SUMS>> = FxHashMap::default();
    for row in profile.weights.iter() {
        add(sums.entry(name(row)).or_default(), values(row));
    }
    let rows = sums
        .into_iter()
        .map(|(name, sum)| method(Function::named(name), sum, sum, false));
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{LabelSetId, Latencies, WeightKey, WeightTable};

    const MAIN: TestFrame<'_> = ("<main>", "app.rb", 1, 0);
    const WORK: TestFrame<'_> = ("Work#run", "work.rb", 2, 0);
    const LEAF: TestFrame<'_> = ("Work#leaf", "work.rb", 9, 0);

    fn profile() -> Profile {
        let types = [
            ("calls", "count"),
            ("wall", "nanoseconds"),
            ("block_calls", "count"),
            ("cpu", "nanoseconds"),
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
        ];
        let mut profile = Profile::new(test_support::schema(&types, 1));
        let mut table = WeightTable::new(types.len());
        let stacks: [(&[TestFrame<'_>], State, [i64; 6]); 8] = [
            (&[MAIN], State::Running, [0, 5, 0, 4, 0, 0]),
            (&[MAIN, WORK], State::Running, [10, 40, 3, 30, 7, 280]),
            (&[MAIN, WORK], State::GvlBlocked, [0, 100, 0, 1, 0, 0]),
            (&[MAIN, WORK, WORK], State::Running, [2, 8, 0, 8, 0, 0]),
            (&[MAIN, WORK, WORK], State::GvlWait, [0, 6, 0, 0, 0, 0]),
            (&[MAIN, WORK, LEAF], State::Running, [4, 20, 0, 20, 1, 40]),
            (
                &[MAIN, WORK, LEAF, LEAF],
                State::Running,
                [0, 0, 5, 0, 0, 0],
            ),
            (&[MAIN, WORK, LEAF], State::GcSweeping, [0, 9, 0, 9, 0, 0]),
        ];
        for (frames, state, values) in stacks {
            let key = WeightKey {
                node: test_support::node(&mut profile, frames),
                thread: 0,
                labels: LabelSetId(0),
                state,
            };
            table.add(key, &values);
        }
        profile.weights = table.into_weights();
        profile
    }

    #[test]
    fn a_method_has_its_own_and_what_it_calls_once() {
        let methods = Methods::of(&profile(), Column(1), &By::Function, Sort::SelfValue);
        assert!(methods.has_calls && methods.has_cpu && methods.has_objects);
        for other in [0, 3, 5] {
            let methods = Methods::of(&profile(), Column(other), &By::Function, Sort::SelfValue);
            assert!(
                !methods.has_cpu,
                "not beside calls, CPU time itself, and bytes"
            );
        }
        let names = methods.rows.iter().map(|row| row.function.name.as_str());
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["Work#run", "Work#leaf", "<main>"]
        );
        let run = &methods.rows[0];
        assert_eq!((run.calls, run.block_calls), (Some(12), Some(3)));
        assert_eq!(
            (run.self_value, run.total_value, run.children()),
            (48, 183, 135)
        );
        assert_eq!((run.blocked, run.wait, run.gc, run.cpu), (100, 6, 9, 68));
        assert_eq!((run.self_objects, run.objects, run.bytes), (7, 8, 320));
        assert!(run.is_recursive && !methods.rows[1].is_recursive);
        assert_eq!(methods.rows[2].calls, None);
    }

    #[test]
    fn methods_have_the_durations_of_their_calls_if_they_were_kept() {
        let mut profile = profile();
        let mut durations = Histogram::default();
        (1..=1_000).for_each(|ns| durations.add(ns));
        profile.latencies.push(Latencies {
            name: "Work#run".into(),
            path: "work.rb".into(),
            durations,
        });
        let found = |by| Methods::of(&profile, Column(1), &by, Sort::SelfValue);
        let methods = found(By::Function);
        assert!(methods.has_latency);
        let run = methods.rows[0].latency.expect("it was called");
        assert!((450..550).contains(&run.p50) && (900..=1_000).contains(&run.p99));
        assert_eq!((run.max, methods.rows[1].latency), (1_000, None));
        assert!(!found(By::Class).has_latency);
    }

    #[test]
    fn rows_can_be_classes_files_threads_and_states() {
        let rows = |by: By| {
            let methods = Methods::of(&profile(), Column(1), &by, Sort::TotalValue);
            let rows = methods.rows.into_iter();
            rows.map(|row| (row.function.name, row.calls, row.total_value))
                .collect::<Vec<_>>()
        };
        let all = |name: &str| (name.to_string(), Some(16), 188);
        let own = |name: &str| (name.to_string(), Some(16), 183);
        assert_eq!(rows(By::Class)[1], own("Work"));
        assert_eq!(rows(By::Thread), [all("(ended threads)")]);
        assert_eq!(rows(By::Label("k".into())), [all("(no k)")]);
        assert_eq!(rows(By::Op), [all("(no op)")]);
        assert_eq!(rows(By::State).len(), 4);
    }
}
