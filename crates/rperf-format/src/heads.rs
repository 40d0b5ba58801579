//! What is said above tables and beside parts, for people: of the loading of files, of tests, of ops and of slow
//! requests. Used by the pages of `rperf report` and `rperf why`, and by Markdown; any thread.

use rperf_model::{OpSums, ValueType};
use rperf_report::numbers::{counted, percent, signed};
use rperf_report::{
    Boot, Function, Holder, LoadedFile, OpTimes, Part, PlaceKind, Scale, Test, Tests, Why,
};

/// Sums of times in ns, all in the unit that fits the largest one.
#[derive(Debug, Clone)]
pub struct Times(Scale);

impl Times {
    /// The times up to `largest`.
    pub fn up_to(largest: u64) -> Self {
        let wall = ValueType::new("wall", "nanoseconds");
        Self(Scale::new(&wall, signed(largest)))
    }

    /// A time with its unit.
    pub fn text(&self, ns: u64) -> String {
        self.0.text(signed(ns))
    }

    /// The states as a sum.
    fn sum(&self, states: Vec<(&'static str, u64)>) -> String {
        let texts: Vec<_> = states
            .into_iter()
            .map(|(name, ns)| format!("{} {name}", self.text(ns)))
            .collect();
        texts.join(" + ")
    }
}

/// How a page writes names, places and shares.
pub trait Spelling {
    /// A name of the profile's.
    fn name(&self, name: &str) -> String;
    /// A method, and the application's own one that leads to it.
    fn place(&self, method: &Option<Function>, app: &Option<(Function, u32)>) -> String;
    /// A share in percent.
    fn percent(&self, share: f64) -> String;
}

/// A part of slow requests, and whether only one request has most of it.
pub fn part_name(why: &Why<'_>, part: Part) -> String {
    match why.mostly_in(part).filter(|_| why.has_grown(part)) {
        Some(_) => format!("{}, most of it in one request", part.name()),
        None => part.name().into(),
    }
}

/// Why a part of slow requests has grown: who had the GVL, the place, and why collections ran.
pub fn part_detail(why: &Why<'_>, part: Part, spelling: &impl Spelling) -> String {
    if !why.has_grown(part) {
        return String::new();
    }
    if part == Part::GvlWait {
        let of = |it: &Holder| {
            let share = spelling.percent(why.share_of(it));
            let place = spelling.place(&it.method, &it.app);
            format!("{} {share}: {place}", spelling.name(&it.name))
        };
        let held: Vec<_> = why.main_holders().into_iter().map(of).collect();
        let rest = why.rest_of_wait().into_iter();
        let rest: String = rest
            .map(|(share, text)| format!("; {} {text}", spelling.percent(share)))
            .collect();
        return match held.is_empty() {
            true => String::new(),
            false => format!("had by {}{rest}", held.join("; by ")),
        };
    }
    let site = why.sites[part as usize].first();
    let site = site.map_or_else(String::new, |it| spelling.place(&it.method, &it.app));
    match why.main_collections().filter(|_| part == Part::Gc) {
        Some((main, share)) => {
            let share = spelling.percent(share);
            format!("{site}; {share} {}", spelling.name(&main.cause))
        }
        None => site,
    }
}

/// The loading of files, in lines. `total`: all of it, as the page writes values; `amount`: any of them.
pub fn boot_head(boot: &Boot, total: &str, amount: impl Fn(i64) -> String) -> String {
    let is_file = |file: &&LoadedFile| file.place.kind == PlaceKind::File;
    let files = boot.files.iter().filter(is_file).count();
    let program = match boot.program {
        0 => String::new(),
        value => format!(
            ", of which {} are the program's own first file",
            amount(value)
        ),
    };
    let loading = format!(
        "Loading {}: {total}{program}",
        counted(files as u64, "file")
    );
    format!(
        "{loading}\n\
         own: the code of a file itself, with the methods that it calls. load: looking for, reading and compiling it. \
         total: both, with the files that it loads. A line stands for the files that it loads where more isn't \
         known. Files without a sample are left out.\n"
    )
}

/// The tests together, in lines: their states, and how much of it is garbage collection. `name`: how a test is
/// called.
pub fn tests_head(tests: &Tests, name: impl Fn(&Test) -> String) -> String {
    let total = &tests.total;
    let times = Times::up_to(total.wall_ns);
    let objects = total.objects.map_or_else(String::new, |objects| {
        format!("; {}", counted(objects, "object"))
    });
    let mut head = format!(
        "{} in {}: {} = {}{objects}\n",
        counted(total.count, "test"),
        counted(tests.files.len() as u64, "file"),
        times.text(total.wall_ns),
        times.sum(tests.states(total)),
    );
    let most_gc = tests.examples.iter().max_by_key(|it| it.sums.gc_ns);
    if let Some(test) = most_gc.filter(|it| it.sums.gc_ns > 0) {
        head += &format!(
            "GC: {:.1}%, the most in {}: {}\n",
            percent(total.gc_ns, total.wall_ns),
            name(test),
            times.text(test.sums.gc_ns)
        );
    }
    if tests.without_row > 0 {
        head += &format!(
            "{} ran beyond those that have rows of their own; they are told by file.\n",
            counted(tests.without_row, "test")
        );
    }
    head + "Times and objects are exact: those of the threads that run tests, in all processes together.\n"
}

/// The ops together, in lines.
pub fn ops_head(ops: &OpTimes) -> String {
    let total = &ops.total;
    let times = Times::up_to(total.wall_ns);
    let displaced = match total.displaced {
        0 => String::new(),
        calls => format!(
            "{} in requests {} as outside of them, as the request had ended or there was no room.\n",
            counted(calls, "call"),
            if calls == 1 { "counts" } else { "count" },
        ),
    };
    format!(
        "{} of {}: {} = {}\n\
         Times are exact sums of all calls, without the ops inside of them; lines are told by samples.\n\
         {displaced}",
        counted(total.calls, "call"),
        counted(ops.ops.len() as u64, "op"),
        times.text(total.wall_ns),
        times.sum(ops.states(total)),
    )
}

/// The ops that requests call again and again, in a line without its end.
pub fn repeats_head() -> String {
    format!(
        "Called {} times or more in one request, in one request of ten at least: one query for all would do, \
         most likely (N+1)",
        OpSums::REPEATED
    )
}
