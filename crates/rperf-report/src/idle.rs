//! Which time is that of idle threads: they wait for work, and not within it. Told by the stack, the
//! thread and the labels of each row. Used by filters, reports and the viewer's file; any thread.
//!
//! In doubt nothing is idle: a wait that is hidden by mistake is worse than one that is shown. Idle is
//! only what is blocked without the GVL, in something that people wait for work with (`waiting`), if
//!
//! - no label says that it belongs to a request, a job or whatever else the program labels,
//! - the code that the thread belongs to waits itself: a gem's or Ruby's own thread, with no code of
//!   the program in its stack, or a thread of the program in its outermost method or block,
//! - and it isn't the main thread, unless that is in a server's code.

mod waiting;

use crate::stack::walk::add;
use crate::text::units::Scale;
use rperf_model::frame_kind::{is_main, method_of};
use rperf_model::{
    Category, Column, DisplayFrame, FrameId, FrameKind, LabelSetId, NodeId, Origin, OwnColumn,
    Profile, State, StringId, Weight, WeightKey,
};
use rustc_hash::{FxHashMap, FxHashSet};
use waiting::Waiting;

/// The labels that rperf's middleware puts on requests and jobs, also where it covers all that there
/// is in a profile.
const WORK_LABELS: [&str; 2] = ["endpoint", "job"];

/// What rperf's middleware is called with, inside of which there is a request or a job.
const MIDDLEWARE: [&str; 4] = [
    "Rperf::RackMiddleware#call",
    "Rperf::SidekiqMiddleware#call",
    "Rperf::ActiveJobMiddleware",
    "Rperf::Work.run",
];

/// Gems whose main thread waits for work.
const SERVERS: [&str; 17] = [
    "delayed_job",
    "good_job",
    "iodine",
    "karafka",
    "passenger",
    "pitchfork",
    "puma",
    "que",
    "rackup",
    "resque",
    "shoryuken",
    "sidekiq",
    "sneakers",
    "solid_queue",
    "thin",
    "unicorn",
    "webrick",
];

/// The name that a main thread has.
const MAIN: &str = "main";

/// The time of idle threads in a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    rows: Vec<bool>,
    value: i64,
}

impl Idle {
    /// The idle time of `profile`. There is none where the values aren't times on the clock, nor if
    /// all is idle: then a view without it would be empty.
    pub fn of(profile: &Profile) -> Self {
        let column = profile.schema.default_column();
        let rows = match profile.schema.default_own() {
            Some(OwnColumn::Wall) => idle_rows(profile),
            _ => Vec::new(),
        };
        let value = value_of(profile, &rows, column);
        if value == 0 || value >= profile.sum(column) {
            return Self {
                rows: vec![false; profile.weights.len()],
                value: 0,
            };
        }
        Self { rows, value }
    }

    /// Whether the time of each row of weights is idle.
    pub fn rows(&self) -> &[bool] {
        &self.rows
    }

    /// All of it, in the profile's default values.
    pub fn value(&self) -> i64 {
        self.value
    }
}

/// For people: that the time of idle threads is left out of what is shown of `profile`.
pub fn idle_line(profile: &Profile, idle: i64) -> Option<String> {
    let text = || Scale::new(profile.schema.default_type(), idle).text(idle);
    (idle > 0).then(|| format!("Idle threads: {} hidden, --idle shows them", text()))
}

fn value_of(profile: &Profile, rows: &[bool], column: Column) -> i64 {
    let mut sum = [0];
    for (weight, is_idle) in profile.weights.iter().zip(rows) {
        if *is_idle {
            add(&mut sum, [weight.value(column)]);
        }
    }
    sum[0]
}

fn idle_rows(profile: &Profile) -> Vec<bool> {
    let frames: Vec<_> = {
        let frames = profile.frames.iter();
        frames.map(|(frame, _)| facts(profile, frame)).collect()
    };
    let stacks = stacks(profile, &frames);
    let mains = main_threads(profile, &stacks);
    let labelled = labelled_sets(profile);
    let is_idle = |key: WeightKey| {
        key.state == State::GvlBlocked
            && !labelled[key.labels.0 as usize]
            && match stacks[key.node.0 as usize].verdict(&frames) {
                Verdict::Work => false,
                Verdict::IdleIfNotMain => !mains.contains(&key.thread),
                Verdict::Idle => true,
            }
    };
    profile.weights.iter().map(|row| is_idle(row.key)).collect()
}

/// The label sets that say that something is done: with labels of the program but for those that are
/// on all samples, such as a release.
fn labelled_sets(profile: &Profile) -> Vec<bool> {
    let sets = 0..profile.label_sets.len() as u32;
    let mut used: FxHashSet<u32> = FxHashSet::default();
    used.extend(profile.weights.iter().map(|row| row.key.labels.0));
    let mut counts: FxHashMap<StringId, usize> = FxHashMap::default();
    for &set in &used {
        for (key, _) in profile.label_sets.get(LabelSetId(set)) {
            *counts.entry(*key).or_default() += 1;
        }
    }
    let is_work = |key: StringId| {
        let text = profile.strings.get(key);
        let is_everywhere = counts.get(&key) == Some(&used.len());
        !text.starts_with('%') && (!is_everywhere || WORK_LABELS.contains(&text))
    };
    sets.map(|set| {
        let pairs = profile.label_sets.get(LabelSetId(set)).iter();
        pairs.map(|(key, _)| *key).any(is_work)
    })
    .collect()
}

/// The numbers of main threads, of each process one.
fn main_threads(profile: &Profile, stacks: &[Stack]) -> FxHashSet<u32> {
    let named = profile.threads.iter();
    let named = named.filter(|it| profile.strings.get(it.name) == MAIN);
    let mut mains: FxHashSet<u32> = named.map(|it| it.seq).collect();
    // The stack of what requests have waited for is another thread's.
    let waited_for = profile.schema.find_own(OwnColumn::GvlWaitedFor);
    let is_of_others = |row: &Weight<'_>| waited_for.is_some_and(|it| row.value(it) != 0);
    let rows = profile.weights.iter().filter(|row| !is_of_others(row));
    let in_main = rows.filter(|row| stacks[row.key.node.0 as usize].is_main);
    mains.extend(in_main.map(|row| row.key.thread));
    mains
}

/// What a stack says of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The time is a part of some work.
    Work,
    /// The thread waits for work, if it isn't a main thread.
    IdleIfNotMain,
    /// The thread waits for work.
    Idle,
}

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner<'a> {
    /// The program's.
    Program,
    /// A gem's, by its name without the version.
    Gem(&'a str),
    /// Ruby's standard library.
    Library,
    /// Methods of Ruby itself, in C or not.
    Ruby,
}

/// What is known of a frame.
#[derive(Debug, Clone, Copy)]
struct FrameFacts<'a> {
    owner: Owner<'a>,
    /// The method that it is, or is a block in, with its file.
    method: (&'a str, &'a str),
    waiting: Option<Waiting>,
    is_middleware: bool,
    is_loop: bool,
    is_main: bool,
}

/// What is known of a stack, from its root to a node. There may be a million of them.
#[derive(Debug, Clone, Copy)]
struct Stack {
    /// Its outermost frame that isn't Ruby's own: whose thread it is.
    base: Option<FrameId>,
    /// The innermost such frame; the standard library counts if there is nothing else.
    innermost: Option<FrameId>,
    /// Frames of the program are those of the base only.
    is_base_only: bool,
    /// Frames of others lie below those of the program.
    is_through_others: bool,
    /// How it waits, by the frames of Ruby itself at its end.
    waiting: Option<Waiting>,
    /// Whether a method of the stack fetches work, with no frame of the program after it.
    is_fetching: bool,
    /// Whether the stack is in a server's code, with no frame of the program after it.
    is_in_server: bool,
    is_in_middleware: bool,
    has_loop: bool,
    is_main: bool,
}

impl Stack {
    const EMPTY: Stack = Stack {
        base: None,
        innermost: None,
        is_base_only: true,
        is_through_others: false,
        waiting: None,
        is_fetching: false,
        is_in_server: false,
        is_in_middleware: false,
        has_loop: false,
        is_main: false,
    };

    fn with(mut self, id: FrameId, frames: &[FrameFacts<'_>], is_root: bool) -> Self {
        let frame = frames[id.0 as usize];
        self.is_main |= is_root && frame.is_main;
        self.is_in_middleware |= frame.is_middleware;
        self.has_loop |= frame.is_loop;
        self.waiting = match frame.owner {
            Owner::Ruby => self.waiting.max(frame.waiting),
            Owner::Program => None,
            Owner::Gem(_) | Owner::Library => frame.waiting,
        };
        match frame.owner {
            Owner::Ruby => return self,
            Owner::Gem(_) | Owner::Library if frame.waiting.is_some_and(Waiting::is_rubys) => {
                return self;
            }
            Owner::Program => {
                let base = frames[self.base.get_or_insert(id).0 as usize];
                self.is_base_only &= base.method == frame.method && !self.is_through_others;
                (self.is_fetching, self.is_in_server) = (false, false);
                self.innermost = Some(id);
            }
            Owner::Gem(name) => {
                self.base.get_or_insert(id);
                self.is_in_server |= SERVERS.contains(&name);
                self.is_through_others = true;
                self.innermost = Some(id);
            }
            Owner::Library => {
                self.base.get_or_insert(id);
                self.is_through_others = true;
                self.innermost.get_or_insert(id);
            }
        }
        self.is_fetching |= frame.waiting == Some(Waiting::Fetch);
        self
    }

    fn verdict(&self, frames: &[FrameFacts<'_>]) -> Verdict {
        if self.is_in_middleware {
            return Verdict::Work;
        }
        if self.is_fetching {
            return Verdict::IdleIfNotMain;
        }
        let (Some(base), Some(innermost), Some(waiting)) =
            (self.base, self.innermost, self.waiting)
        else {
            return Verdict::Work;
        };
        let [base, innermost] = [base, innermost].map(|id| frames[id.0 as usize].owner);
        let is_servers = matches!(innermost, Owner::Gem(name) if SERVERS.contains(&name));
        if is_servers && self.is_in_server {
            return Verdict::Idle;
        }
        let is_for_work = match waiting {
            Waiting::ForWork => true,
            Waiting::Sleep => base != Owner::Program || self.has_loop,
            Waiting::ForEnd | Waiting::ForData | Waiting::Fetch => false,
        };
        let waits_itself = match base {
            Owner::Program => self.is_base_only && !self.is_through_others,
            owner => owner == innermost,
        };
        match is_for_work && waits_itself {
            true => Verdict::IdleIfNotMain,
            false => Verdict::Work,
        }
    }
}

/// What is known of each stack, by node.
fn stacks(profile: &Profile, frames: &[FrameFacts<'_>]) -> Vec<Stack> {
    let mut stacks = vec![Stack::EMPTY];
    for (_, node) in profile.tree.iter() {
        let caller = stacks[node.parent.0 as usize];
        let is_root = node.parent == NodeId::ROOT;
        stacks.push(caller.with(node.frame, frames, is_root));
    }
    stacks
}

fn facts(profile: &Profile, frame: FrameId) -> FrameFacts<'_> {
    let text = profile.frame_text(DisplayFrame::Real { frame, line: 0 });
    let (name, path) = (text.name, text.path);
    let method = method_of(name);
    let owner = owner(profile.meta.origin(name, path), path);
    FrameFacts {
        owner,
        method: (method, path),
        waiting: Waiting::of(method, matches!(owner, Owner::Ruby | Owner::Library)),
        is_middleware: MIDDLEWARE.iter().any(|it| method.starts_with(it)),
        is_loop: method == "Kernel#loop",
        is_main: is_main(name),
    }
}

fn owner<'a>(origin: Origin<'a>, path: &'a str) -> Owner<'a> {
    match origin.category {
        Category::C => Owner::Ruby,
        Category::Stdlib if FrameKind::of(path) == FrameKind::Internal => Owner::Ruby,
        Category::Gem | Category::Rperf => Owner::Gem(without_version(origin.library)),
        Category::Stdlib => packaged(path).map_or(Owner::Library, Owner::Gem),
        _ => Owner::Program,
    }
}

/// `puma` of `puma-6.4.2` and of `puma-0a1b2c3d`.
fn without_version(library: &str) -> &str {
    match library.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|it: char| it.is_ascii_hexdigit()) => name,
        _ => library,
    }
}

/// What a package of the system has put beside Ruby's own library.
fn packaged(path: &str) -> Option<&str> {
    let of = |directory: &str| path.split_once(directory).map(|(_, rest)| rest);
    let rest = of("/vendor_ruby/").or_else(|| of("/site_ruby/"))?;
    let mut parts = rest.split('/');
    let name = parts.find(|part| !part.starts_with(|it: char| it.is_ascii_digit()))?;
    Some(name.strip_suffix(".rb").unwrap_or(name))
}

#[cfg(test)]
mod tests;
