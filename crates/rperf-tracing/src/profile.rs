//! From what was traced to a profile: nodes with names, times without the cost of tracing, and
//! lines about the run. Outside of hooks, on the thread that asks for the profile.

use crate::clock::TraceClock;
use crate::clock::session_time::CountedTime;
use crate::cost::{Bodies, Calibration, Rounding, ThreadTimes, compensate};
use crate::event::{CallKind, TracedKind};
use crate::timed_calls::TimedCallsSnapshot;
use crate::tree::folds::{Exclusion, Folds, exclusion};
use crate::tree::snapshot::TreeSnapshot;
use crate::tree::thread::{CountedThread, ThreadSums};
use crate::tree::{ROOT, TracedNode};
#[cfg(feature = "measure")]
use check::StackCheck;
use label_sets::{LabelsSnapshot, add_label_sets};
use rows::{COLUMNS, ThreadRows};
use rperf_model::frame_kind::{C_METHOD, FrameKind, OWN_FRAME, TRUNCATED_FRAME};
use rperf_model::numbers::{grouped, milliseconds};
use rperf_model::{
    LabelSetId, Meta, Node, NodeId, Note, OwnColumn, Profile, Schema, State, TraceLevel, Traced,
};
use rperf_vm::{AllocationSums, ResolvedFrame};

#[cfg(feature = "measure")]
pub(crate) mod check;
pub(crate) mod label_sets;
pub(crate) mod rows;

/// Everything up to a moment, still with frames as the VM gives them.
#[derive(Debug)]
pub struct TraceSnapshot {
    pub(crate) level: TraceLevel,
    pub(crate) time: CountedTime,
    pub(crate) tree: TreeSnapshot,
    /// By number.
    pub(crate) threads: Vec<CountedThread>,
    pub(crate) labels: LabelsSnapshot,
    pub(crate) events: u64,
    pub(crate) bodies: Bodies,
    /// CPU time was measured.
    pub(crate) with_cpu: bool,
    /// Objects, if they were counted.
    pub(crate) objects: Option<AllocationSums>,
    #[cfg(feature = "measure")]
    pub(crate) check: Option<StackCheck>,
    pub(crate) timed_calls: TimedCallsSnapshot,
}

/// Sums over a profile, for its head.
#[derive(Debug, Default)]
struct Sums {
    calls: u64,
    block_calls: u64,
    running_ns: u64,
    overhead_ns: u64,
    /// By state; none of running.
    state_ns: [u64; State::ALL.len()],
    truncated_calls: u64,
    /// Calls of excluded frames; `deep_calls`: of frames below the depth limit. Both with blocks.
    excluded_calls: u64,
    deep_calls: u64,
    uncovered_ns: f64,
    /// By row: frames whose calls aren't all told.
    is_uncounted: Vec<bool>,
    uncounted_methods: usize,
}

impl Sums {
    /// Adds the calls of a thread that are not shown in their place.
    fn add_folded(
        &mut self,
        nodes: &[TracedNode],
        folds: &Folds,
        excluded: &[Exclusion],
        counted: &ThreadSums,
    ) {
        for (node, count) in counted.counts.iter() {
            match exclusion(excluded, nodes[node as usize].row) {
                Exclusion::Asked => self.excluded_calls += count.calls,
                _ if folds.is_excluded(node) => {}
                _ if folds.home(node) != node => self.deep_calls += count.calls,
                _ => {}
            }
        }
    }
}

impl TraceSnapshot {
    /// How many ns a tick has had.
    pub fn ns_per_tick(&self) -> f64 {
        self.time.ns_per_tick()
    }

    /// How long a pair of events of each kind kept the hook busy, in ns; 0 if it isn't known.
    pub fn bodies_ns(&self) -> [f64; CallKind::ALL.len()] {
        let ns = |kind| self.bodies.of_pair(kind).unwrap_or(0.0) * self.ns_per_tick();
        CallKind::ALL.map(ns)
    }

    /// The raw times of what was called most, and of its caller, in ns: for the calibration.
    pub fn busiest_pair_ns(&self) -> (f64, f64) {
        let sums = || self.threads.iter().flat_map(|it| &it.sums);
        let counts = || sums().flat_map(|(_, it)| it.counts.iter());
        let Some((callee, _)) = counts().max_by_key(|(_, count)| count.calls) else {
            return (0.0, 0.0);
        };
        let caller = self.tree.nodes[callee as usize].parent;
        let ns_of = |wanted: u32| {
            let found = counts().filter(|(node, _)| *node == wanted);
            let ticks: u64 = found.map(|(_, count)| count.running).sum();
            ticks as f64 * self.ns_per_tick()
        };
        (ns_of(callee), ns_of(caller))
    }

    /// The profile. `names` are those of the frames, in the order of their rows, and `excluded` tells
    /// which of them are left out; `classes` are those of objects; `program` and `notes` describe
    /// the run.
    pub fn into_profile(
        mut self,
        names: &[ResolvedFrame],
        excluded: &[Exclusion],
        classes: &[ResolvedFrame],
        calibration: &Calibration,
        program: String,
        mut notes: Vec<Note>,
    ) -> Profile {
        let columns = rows::columns(self.level.timed, self.with_cpu);
        let mut profile = Profile::new(self.schema(columns));
        let sets = add_label_sets(&mut profile, &self.labels.sets);
        let c_pays = self.level.c_methods;
        let folds = Folds::new(&self.tree.nodes, excluded, self.tree.deepest, c_pays);
        let hidden = folds.excluded();
        let (nodes, truncated) = (&self.tree.nodes, self.tree.truncated);
        let mut map = add_nodes(&mut profile, nodes, truncated, names, hidden);
        map.push(add_own_root(&mut self.tree, &mut profile, &folds));
        let nodes = &self.tree.nodes;
        let ns_per_tick = self.time.ns_per_tick();
        let costs = calibration.costs_with(&self.bodies, ns_per_tick);
        let mut sums = Sums {
            is_uncounted: self.uncounted(names),
            ..Sums::default()
        };
        sums.uncounted_methods = sums.is_uncounted.iter().filter(|it| **it).count();
        for (number, thread) in self.threads.iter().enumerate() {
            let (mut rows, mut rounding) = (ThreadRows::default(), Rounding::new(ns_per_tick));
            for (labels, counted) in &thread.sums {
                sums.add_folded(nodes, &folds, excluded, counted);
                let mut times = compensate(nodes, counted, &costs, &folds, c_pays, &mut rounding);
                if self.time.clock == TraceClock::Noted {
                    times.spread_uncovered(nodes);
                }
                let labels = sets[labels.0 as usize];
                self.add_labelled(&mut rows, &times, &map, labels, &mut sums);
            }
            let seq = number as u32 + 1;
            rows.add_to(&mut profile, seq, thread.name.as_deref(), columns);
        }
        if let Some(objects) = &self.objects {
            let numbers = 0..nodes.len() as u32;
            let places: Vec<_> = numbers.map(|it| map[folds.home(it) as usize]).collect();
            objects.add_to_traced(&mut profile, classes, &places, &sets);
        }
        if let Some(spans) = self.timed_calls.spans.take() {
            let line = spans.into_time_line(nodes, hidden, names, &self.time, &program);
            profile.time_lines.push(line);
        }
        if let Some(latencies) = &self.timed_calls.latencies {
            profile.latencies = latencies.named(names, excluded);
        }
        notes.extend(self.head(&sums));
        // Those on objects.
        notes.append(&mut profile.meta.notes);
        profile.meta = Meta {
            start_time_ns: self.time.start.realtime_ns,
            duration_ns: self.time.duration_ns(),
            program,
            notes,
            ..Meta::default()
        };
        profile
    }

    fn schema(&self, columns: &[usize]) -> Schema {
        let default = if self.level.timed {
            OwnColumn::Wall
        } else {
            OwnColumn::Calls
        };
        let columns = columns.iter().map(|column| COLUMNS[*column]);
        Schema::of(columns, default).expect("the default is one of them")
    }

    /// Ruby's own methods that call nothing, by the rows of their frames: without events of C
    /// methods the VM runs some of them without a frame, all but the first time.
    fn uncounted(&self, names: &[ResolvedFrame]) -> Vec<bool> {
        let is_rubys_own = |name: &ResolvedFrame| FrameKind::of(&name.path) == FrameKind::Internal;
        let mut uncounted: Vec<bool> = names
            .iter()
            .map(|name| !self.level.c_methods && is_rubys_own(name))
            .collect();
        for (known, leads) in uncounted.iter_mut().zip(&self.tree.leads_elsewhere) {
            *known &= !leads;
        }
        for node in &self.tree.nodes {
            let parent = self.tree.nodes.get(node.parent as usize);
            if let Some(known) = parent.and_then(|it| uncounted.get_mut(it.row as usize)) {
                *known = false;
            }
        }
        uncounted
    }

    /// Adds what a thread has under one label set to its rows, and to the sums.
    fn add_labelled(
        &self,
        rows: &mut ThreadRows,
        times: &ThreadTimes,
        map: &[NodeId],
        labels: LabelSetId,
        sums: &mut Sums,
    ) {
        sums.uncovered_ns += times.uncovered_ns();
        for time in &times.nodes {
            let node = self.tree.nodes[time.node as usize];
            let (calls, block_calls) = match node.kind {
                TracedKind::Block => (0, time.calls),
                _ if sums.is_uncounted.get(node.row as usize) == Some(&true) => (0, 0),
                _ => (time.calls, 0),
            };
            sums.calls += calls;
            sums.block_calls += block_calls;
            sums.running_ns += time.running_ns;
            sums.overhead_ns += time.overhead_ns;
            if self.tree.truncated == Some(time.node) {
                sums.truncated_calls += time.calls;
            }
            let running = [
                calls,
                time.running_ns,
                time.overhead_ns,
                block_calls,
                time.cpu_ns,
            ];
            rows.add((map[time.node as usize], labels, State::Running), running);
        }
        for &(node, state, ns) in &times.states {
            sums.state_ns[state as usize] += ns;
            rows.add((map[node as usize], labels, state), [0, ns, 0, 0, 0]);
        }
        for &(node, state, ns) in &times.used_ns {
            rows.add((map[node as usize], labels, state), [0, 0, 0, 0, ns]);
        }
    }

    /// Lines about how it was traced, and what it cost. A profile can be of several processes:
    /// numbers come with the process that they are of.
    fn head(&self, sums: &Sums) -> impl Iterator<Item = Note> {
        let how = Traced::Calls(self.level, self.time.clock.name().into());
        let numbers = self.numbers(sums).into_iter();
        std::iter::once(Note::Traced(how)).chain(numbers.map(Note::traced_here))
    }

    fn numbers(&self, sums: &Sums) -> Vec<String> {
        let (calls, block_calls) = (sums.calls, sums.block_calls);
        let (calls, block_calls) = (grouped(calls), grouped(block_calls));
        let mut lines = vec![format!("{calls} calls, {block_calls} calls of blocks")];
        if self.level.timed {
            let per_event = sums.overhead_ns as f64 / self.events.max(1) as f64;
            lines.push(format!(
                "{} ms raw, of which {} ms are the cost of {} events ({per_event:.0} ns each) and \
                 left out",
                milliseconds(sums.running_ns + sums.overhead_ns),
                milliseconds(sums.overhead_ns),
                grouped(self.events),
            ));
            let in_state = |state: State| sums.state_ns[state as usize];
            lines.push(format!(
                "{} ms blocked without the GVL, {} ms waiting for it, {} ms in garbage collection",
                milliseconds(in_state(State::GvlBlocked)),
                milliseconds(in_state(State::GvlWait)),
                milliseconds(in_state(State::GcMarking) + in_state(State::GcSweeping)),
            ));
            let paused_ns = self.time.paused_ns();
            if paused_ns >= 5e4 {
                let paused = milliseconds(paused_ns as u64);
                lines.push(format!("{paused} ms paused, in which nothing counts"));
            }
            if sums.uncovered_ns >= 1e5 {
                let uncovered = milliseconds(sums.uncovered_ns as u64);
                lines.push(format!(
                    "{uncovered} ms of cost found no time to be taken from"
                ));
            }
        }
        if sums.uncounted_methods > 0 {
            let methods = grouped(sums.uncounted_methods as u64);
            lines.push(format!(
                "{methods} of Ruby's own methods, which call nothing, have no count: the \
                 VM doesn't tell of all their calls"
            ));
        }
        #[cfg(feature = "measure")]
        lines.extend(self.check.iter().flat_map(StackCheck::lines));
        if self.labels.refused > 0 {
            let times = grouped(self.labels.refused);
            lines.push(format!(
                "{times} times labels were put on for which there was no room: what ran then has none"
            ));
        }
        if sums.excluded_calls > 0 {
            let calls = counted(sums.excluded_calls, "call");
            lines.push(format!("{calls} left out: the time is in the callers"));
        }
        if sums.deep_calls > 0 {
            let calls = counted(sums.deep_calls, "call");
            let frames = counted(self.tree.deepest.into(), "frame");
            lines.push(format!(
                "{calls} deeper than {frames}: the time is in the last frame above"
            ));
        }
        if sums.truncated_calls > 0 {
            let calls = counted(sums.truncated_calls, "call");
            lines.push(format!("{calls} found no room in the tree: [truncated]"));
        }
        lines
    }
}

/// So many of these.
fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(number)),
    }
}

/// The profile's node for each of ours, which is the caller's if it is `excluded`; `names` are those
/// of the frames, in the order of their rows.
pub(crate) fn add_nodes(
    profile: &mut Profile,
    nodes: &[TracedNode],
    truncated: Option<u32>,
    names: &[ResolvedFrame],
    excluded: &[bool],
) -> Vec<NodeId> {
    let unknown = ResolvedFrame::new("(unknown)", C_METHOD);
    let no_room = ResolvedFrame::new(TRUNCATED_FRAME.0, TRUNCATED_FRAME.1);
    let mut map = vec![NodeId::ROOT];
    for (number, node) in nodes.iter().enumerate().skip(1) {
        let parent = map[node.parent as usize];
        if excluded.get(number) == Some(&true) {
            map.push(parent);
            continue;
        }
        let resolved = match truncated == Some(number as u32) {
            true => &no_room,
            false => names.get(node.row as usize).unwrap_or(&unknown),
        };
        map.push(intern(profile, parent, resolved));
    }
    map
}

/// Adds the node of what rperf does of its own accord, if it has done anything.
fn add_own_root(tree: &mut TreeSnapshot, profile: &mut Profile, folds: &Folds) -> NodeId {
    tree.nodes.push(TracedNode {
        level: 1,
        parent: ROOT,
        ..tree.nodes[ROOT as usize]
    });
    match folds.own_root() {
        Some(_) => intern(
            profile,
            NodeId::ROOT,
            &ResolvedFrame::new(OWN_FRAME.0, OWN_FRAME.1),
        ),
        None => NodeId::ROOT,
    }
}

/// The profile's node for a frame below `parent`.
fn intern(profile: &mut Profile, parent: NodeId, resolved: &ResolvedFrame) -> NodeId {
    let frame = resolved.intern(profile);
    profile.tree.intern(Node {
        parent,
        frame,
        line: 0,
    })
}
