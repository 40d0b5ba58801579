//! From the numbers of chosen methods to columns of a profile, beside its samples or alone, with
//! lines about the run. Outside of hooks, with or without the GVL.

use super::sums::{MethodCalls, Row, SlowCall, Sums};
use crate::clock::{ClockReading, TraceClock};
use crate::profile::add_nodes;
use crate::profile::label_sets::add_label_sets;
use crate::tree::TracedNode;
use rperf_model::Order;
use rperf_model::label_keys::CALL;
use rperf_model::numbers::{grouped, signed};
use rperf_model::{
    LabelSetId, Meta, NodeId, Note, OwnColumn, Profile, Schema, State, Traced, WeightKey,
    WeightTable,
};
use rperf_vm::clock::utc;
use rperf_vm::{LabelTexts, ResolvedFrame};

/// The columns of calls.
const COLUMNS: [OwnColumn; 2] = [OwnColumn::Calls, OwnColumn::CallTime];

/// Methods at most that have a line of their own.
const LINES: usize = 20;

/// Everything up to a moment, still with frames as the VM gives them.
#[derive(Debug)]
pub struct TargetedSnapshot {
    pub(super) clock: TraceClock,
    pub(super) start: ClockReading,
    pub(super) end: ClockReading,
    pub(super) nodes: Vec<TracedNode>,
    pub(super) truncated: Option<u32>,
    /// From number 1.
    pub(super) label_sets: Vec<LabelTexts>,
    /// Calls that went without their labels.
    pub(super) unlabelled: u64,
    pub(super) sums: Sums,
}

impl TargetedSnapshot {
    /// `profile` with the calls. `names` are those of the frames, in the order of their rows;
    /// `notes` are further lines about this process.
    pub fn add_to(self, profile: Profile, names: &[ResolvedFrame], notes: &[String]) -> Profile {
        self.fill(with_more_columns(profile), names, notes)
    }

    /// A profile of the calls alone: `program` and `description` are of the run, and the rest as
    /// above.
    pub fn into_profile(
        self,
        names: &[ResolvedFrame],
        notes: &[String],
        program: String,
        description: Vec<Note>,
    ) -> Profile {
        let schema = Schema::of(COLUMNS, OwnColumn::CallTime).expect("it is one of two");
        let mut profile = Profile::new(schema);
        let (start, end) = (self.start.monotonic_ns, self.end.monotonic_ns);
        profile.meta = Meta {
            start_time_ns: self.start.realtime_ns,
            duration_ns: end.saturating_sub(start),
            program,
            notes: description,
            ..Meta::default()
        };
        self.fill(profile, names, notes)
    }

    /// `profile`, whose last columns are those of calls, with the calls.
    fn fill(self, mut profile: Profile, names: &[ResolvedFrame], notes: &[String]) -> Profile {
        let map = add_nodes(&mut profile, &self.nodes, self.truncated, names, &[]);
        let sets = add_label_sets(&mut profile, &self.label_sets);
        let mut rows = self.sums.rows.clone();
        let mut table = WeightTable::from(&profile.weights);
        for (row, slow) in self.slowest() {
            for part in &slow.parts {
                // A call below can have labels of its own.
                let labels = sets[part.labels.0 as usize];
                let set = self.label_of(&mut profile, labels, slow, &names[row]);
                let Some(whole) = rows.get_mut(&(part.node, part.labels)) else {
                    continue;
                };
                let calls = part.calls.min(whole.calls);
                let ticks = part.ticks.min(whole.ticks);
                (whole.calls, whole.ticks) = (whole.calls - calls, whole.ticks - ticks);
                let key = key(map[part.node as usize], set);
                table.add(
                    key,
                    &self.values(profile.schema.len(), Row { calls, ticks }),
                );
            }
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.order_by_key(|(key, _)| *key);
        for ((node, labels), row) in rows {
            let key = key(map[node as usize], sets[labels.0 as usize]);
            table.add(key, &self.values(profile.schema.len(), row));
        }
        profile.weights = table.into_weights();
        profile.meta.notes.extend(self.head(names, notes));
        profile
    }

    /// The values of a row of so many columns.
    fn values(&self, width: usize, row: Row) -> Vec<i64> {
        let ns = (row.ticks as f64 * self.ns_per_tick()).round() as i64;
        let calls = signed(row.calls);
        let mut values = vec![0; width - COLUMNS.len()];
        values.extend([calls, ns]);
        values
    }

    fn ns_per_tick(&self) -> f64 {
        self.end.ns_per_tick_since(&self.start)
    }

    /// The slowest calls, each with the row of its method's frame.
    fn slowest(&self) -> Vec<(usize, &SlowCall)> {
        let methods = self.methods().into_iter();
        let slowest = methods.map(|(row, calls)| calls.slowest.iter().map(move |it| (row, it)));
        slowest.flatten().collect()
    }

    /// The methods by the rows of their frames, in that order.
    fn methods(&self) -> Vec<(usize, &MethodCalls)> {
        // What found no room in the tree has no frame.
        let methods = self
            .sums
            .methods
            .iter()
            .filter(|(row, _)| **row != u32::MAX);
        let mut methods: Vec<_> = methods.map(|(row, it)| (*row as usize, it)).collect();
        methods.order_by_key(|(row, _)| *row);
        methods
    }

    /// The label set of a part of a slow call: its own, and which call it is.
    fn label_of(
        &self,
        profile: &mut Profile,
        labels: LabelSetId,
        slow: &SlowCall,
        name: &ResolvedFrame,
    ) -> LabelSetId {
        let took = duration(self.ns(slow.ticks));
        let text = format!("{} {took} at {}", name.name, self.time_of(slow.began));
        let mut set = profile.label_sets.get(labels).to_vec();
        set.push((profile.strings.intern(CALL), profile.strings.intern(&text)));
        profile.label_sets.intern(set)
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick()).round() as u64
    }

    fn time_of(&self, ticks: u64) -> String {
        let since = ticks as i128 - i128::from(self.start.ticks);
        let ns = i128::from(self.start.realtime_ns) + (since as f64 * self.ns_per_tick()) as i128;
        utc(u64::try_from(ns).unwrap_or_default())
    }

    /// Lines about how it was traced, and of each method. A profile can be of several processes:
    /// numbers come with the process that they are of.
    fn head(&self, names: &[ResolvedFrame], lines: &[String]) -> impl Iterator<Item = Note> {
        let how = Traced::Chosen(self.clock.name().into());
        let numbers = lines.iter().cloned().chain(self.numbers(names));
        std::iter::once(Note::Traced(how)).chain(numbers.map(Note::traced_here))
    }

    fn numbers(&self, names: &[ResolvedFrame]) -> Vec<String> {
        let mut methods = self.methods();
        methods.order_by_key(|(_, it)| std::cmp::Reverse(it.latencies.count()));
        let shown = methods.iter().take(LINES).map(|(row, it)| {
            let at = |percent| duration(self.ns(it.latencies.quantile(percent)));
            let slowest = it.slowest.first();
            let when = slowest.filter(|slow| slow.ticks == it.latencies.max());
            let when = when.map_or_else(String::new, |slow| {
                format!(" (at {})", self.time_of(slow.began))
            });
            let ended = match it.latencies.count() {
                1 => "1 call has ended".to_string(),
                count => format!("{} calls have ended", grouped(count)),
            };
            format!(
                "{}: {ended}, p50 {}, p99 {}, max {}{when}",
                names[*row].name,
                at(50),
                at(99),
                duration(self.ns(it.latencies.max()))
            )
        });
        let mut lines: Vec<_> = shown.collect();
        let more = methods.len().saturating_sub(LINES);
        let told =
            |number: u64, text: &str| (number > 0).then(|| format!("{} {text}", grouped(number)));
        lines.extend(told(more as u64, "further methods"));
        lines.extend(told(
            self.sums.unended,
            "calls have no duration: nothing told of their ends",
        ));
        lines.extend(told(
            self.sums.lost,
            "calls found no room, and are not counted",
        ));
        lines.extend(told(
            self.unlabelled,
            "calls are without their labels, for which there was no room",
        ));
        lines
    }
}

fn key(node: NodeId, labels: LabelSetId) -> WeightKey {
    WeightKey {
        node,
        // Its own threads have numbers of their own.
        thread: 0,
        labels,
        state: State::Running,
    }
}

/// The profile `sampled` with the columns of calls, which are empty still.
fn with_more_columns(sampled: Profile) -> Profile {
    let schema = sampled.schema.with(COLUMNS);
    let mut table = WeightTable::new(schema.len());
    let mut values = vec![0; schema.len()];
    for weight in sampled.weights.iter() {
        values[..weight.values.len()].copy_from_slice(weight.values);
        table.add(weight.key, &values);
    }
    Profile {
        schema,
        weights: table.into_weights(),
        ..sampled
    }
}

/// A time for people.
fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}
