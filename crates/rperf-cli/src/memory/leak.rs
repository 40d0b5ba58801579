//! `rperf leak`: which classes and sites of a running program grow, by several looks at it, or in files. Called by
//! `run`, on the main thread.

mod page;
mod watch;

use crate::memory::kept_rows::{self, is_number, refused};
use crate::refusal::{FAILURE, Refusal};
use crate::report::screen::Screen;
use crate::shared_args::checked::{size, time};
use rperf_format::{LeakFile, NoLeakFile};
use rperf_heap::file::HeapFile;
use rperf_model::Order;
use rperf_report::growth::LEAST_LOOKS;
use rperf_watch::leak::looks_of;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;
use watch::{LEAST_EVERY, Plan};

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf leak 4711                              looks each minute, for 10 minutes
  rperf leak 4711 --every 10m --for 8h -o night.json
  rperf leak night.json                        shows what was found
  rperf leak 4711 --limit 2G                   and when the RSS reaches 2 GB
  rperf leak mon.json tue.json wed.json        files of 'rperf heap -o' of one process

Each look stops the program for the time of a fork. Classes are known of any program with a
port; the lines that make what grows only if its session measures heap (--measure heap).

Exit status: 0, whether something grows or not; 1 if the program can't be looked at, or the
output not be written; 2 for wrong options and files that can't be read.

Run 'rperf help leak' for more.";

/// Bytes of a file at most.
const MOST: u64 = 64 << 20;

/// Rows of each table unless asked for otherwise.
const ROWS: usize = 20;

/// Looks at most: each is compared with each.
const MOST_LOOKS: u128 = 500;

/// The least time between two looks with `--force`.
const LEAST_FORCED: Duration = Duration::from_millis(100);

/// The least time between two files.
const LEAST_APART: Duration = Duration::from_secs(1);

/// Options of `rperf leak`.
#[derive(Debug, clap::Args)]
pub struct LeakArgs {
    /// The program's process, a file of 'rperf leak -o', or three and more of 'rperf heap -o'
    #[arg(value_name = "PID|FILE", required = true)]
    pub targets: Vec<OsString>,
    /// Time from one look to the next: 30s, 10m, 1h [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub every: Option<String>,
    /// Time of all looks; Ctrl-C ends it earlier [default: 10m]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// The RSS that the program may have: 500M, 2G [default: the limit of its control group]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub limit: Option<String>,
    /// Rows of each table; 0: all [default: 20]
    #[arg(short = 'n', value_name = "ROWS", allow_hyphen_values = true)]
    pub rows: Option<String>,
    /// File to write what was found to, as JSON, instead of printing it ('-': stdout)
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Look more often than each 10 s, and however little memory is free
    #[arg(long)]
    pub force: bool,
    /// Leave the main thread alone where all threads wait: then looks may fail
    #[arg(long)]
    pub no_wake: bool,
}

/// Prints or writes what grows. Returns the exit status.
pub fn run(args: &LeakArgs) -> Result<i32, Refusal> {
    let rows = rows(args)?;
    let limit = args.limit.as_deref().map(|it| size("--limit", it));
    let limit = limit.transpose()?;
    let is_to_stdout = args.output.as_deref().is_some_and(|it| it == "-");
    let output = kept_rows::output("leak", args.output.as_deref(), args.json)?;
    let (mut file, end) = match &args.targets[..] {
        [target] if is_number(target) => watch::watch(target, &plan(args)?)?,
        targets => (of_files(targets, args)?, None),
    };
    if let Some(limit) = limit {
        (file.limit_bytes, file.limit_is_of_group) = (Some(limit), false);
    }
    if file.looks.len() < LEAST_LOOKS {
        let why = end.map(|it| format!("{it}: ")).unwrap_or_default();
        return Err(Refusal {
            message: format!(
                "{}: {why}{LEAST_LOOKS} looks are needed to tell what grows, not {}",
                file.pid,
                file.looks.len()
            ),
            status: FAILURE,
        });
    }
    if let Some(end) = &end {
        crate::say(&format!("{} {end}: this is of the time before", file.pid));
    }
    if let Some(path) = &output {
        let what = format!("{} looks", file.looks.len());
        return kept_rows::write(path, &file.to_json(), &what);
    }
    let screen = Screen::stdout(true);
    let text = match args.json || is_to_stdout {
        true => file.to_json(),
        false => page::of(&file, rows, screen),
    };
    screen.print(&text).map(|()| 0).map_err(|error| Refusal {
        message: format!("can't write the rows: {error}"),
        status: FAILURE,
    })
}

fn plan(args: &LeakArgs) -> Result<Plan, Refusal> {
    let every = time("--every", args.every.as_deref().unwrap_or("1m"))?;
    let time = time("--for", args.time.as_deref().unwrap_or("10m"))?;
    if every < LEAST_EVERY && !args.force {
        return Err(Refusal::usage(
            "--every must be 10s or more, because each look stops the program for a fork; \
             --force allows less",
        ));
    }
    if every < LEAST_FORCED {
        return Err(Refusal::usage("--every must be 0.1s or more"));
    }
    if time < every * (LEAST_LOOKS as u32 - 1) {
        return Err(Refusal::usage(format!(
            "--for must be twice --every or more, because {LEAST_LOOKS} looks are needed to tell what grows"
        )));
    }
    if time.as_nanos() / every.as_nanos() >= MOST_LOOKS {
        return Err(Refusal::usage(format!(
            "{MOST_LOOKS} looks at most: make --every longer, or --for shorter"
        )));
    }
    Ok(Plan {
        every,
        time,
        force: args.force,
        may_wake: !args.no_wake,
    })
}

fn rows(args: &LeakArgs) -> Result<usize, Refusal> {
    let Some(text) = &args.rows else {
        return Ok(ROWS);
    };
    if args.json || args.output.is_some() {
        return Err(Refusal::usage("JSON always has all rows: leave -n out"));
    }
    kept_rows::rows(text)
}

/// What is in a file of this command, or what grows over several files of `rperf heap`.
fn of_files(targets: &[OsString], args: &LeakArgs) -> Result<LeakFile, Refusal> {
    let options = [
        (args.every.is_some(), "--every"),
        (args.time.is_some(), "--for"),
        (args.force, "--force"),
        (args.no_wake, "--no-wake"),
    ];
    if let Some((_, option)) = options.iter().find(|it| it.0) {
        return Err(Refusal::usage(format!(
            "{option} is for a program that is asked, not for a file: leave it out"
        )));
    }
    if targets.iter().any(|it| is_number(it)) {
        return Err(Refusal::usage(
            "give one process, or files: each program has looks of its own",
        ));
    }
    if let [target] = targets {
        let bytes = bytes_of(target)?;
        let file = LeakFile::read(&bytes);
        if file.is_err() && HeapFile::read(&bytes).is_ok() {
            return Err(refused(
                Path::new(target),
                &"one look tells nothing of growth: give three or more files of 'rperf heap -o'",
            ));
        }
        return file.map_err(|error| refused(Path::new(target), &error));
    }
    if args.limit.is_some() {
        return Err(Refusal::usage(
            "--limit is for the RSS, which files of 'rperf heap -o' don't have: leave it out",
        ));
    }
    let files = targets.iter().map(|target| {
        let file = HeapFile::read(&bytes_of(target)?);
        file.map_err(|error| refused(Path::new(target), &error))
    });
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    let times = files.iter().map(|it| it.facts.time_ns);
    let times: Vec<(u64, &OsString)> = times.zip(targets).collect();
    files.order_by_key(|it| it.facts.time_ns);
    let first = files.first().map(|it| it.facts.clone()).unwrap_or_default();
    let is_other = |it: &&HeapFile| !it.facts.is_of_process_of(&first);
    if let Some(other) = files.iter().find(is_other) {
        let (one, other) = (first.pid, other.facts.pid);
        let which = match one == other {
            true => format!("two processes with the number {one}"),
            false => format!("processes {one} and {other}"),
        };
        return Err(Refusal::usage(format!(
            "the files are of {which}: what grows in one says nothing of the other"
        )));
    }
    if let Some([one, other]) = too_near(&times) {
        return Err(Refusal::usage(format!(
            "{} and {} are looks at the same time, or less than a second apart: leave one out",
            Path::new(one).display(),
            Path::new(other).display()
        )));
    }
    let (looks, left_out) = looks_of(&files);
    if left_out > 0 {
        crate::say(&format!(
            "classes left out: {left_out} (not in all files, which have only those with most bytes)"
        ));
    }
    Ok(LeakFile {
        pid: first.pid,
        program: first.program,
        ruby: first.ruby,
        ..LeakFile::of(&looks)
    })
}

/// Two files of looks that are too near to each other for growth in between.
fn too_near<'a>(times: &[(u64, &'a OsString)]) -> Option<[&'a OsString; 2]> {
    let mut times = times.to_vec();
    times.order_by_key(|it| it.0);
    let mut pairs = times.windows(2);
    let near = pairs.find(|it| it[1].0 - it[0].0 < LEAST_APART.as_nanos() as u64)?;
    Some([near[0].1, near[1].1])
}

fn bytes_of(target: &OsStr) -> Result<Vec<u8>, Refusal> {
    let path = Path::new(target);
    kept_rows::read(path, MOST)?.ok_or_else(|| refused(path, &NoLeakFile::Other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(targets: &[&str]) -> LeakArgs {
        LeakArgs {
            targets: targets.iter().map(OsString::from).collect(),
            every: None,
            time: None,
            limit: None,
            rows: None,
            output: None,
            json: false,
            force: false,
            no_wake: false,
        }
    }

    #[test]
    fn times_fit_together() {
        let with = |every: &str, time: &str, force| {
            let (every, time) = (Some(every.into()), Some(time.into()));
            plan(&LeakArgs {
                every,
                time,
                force,
                ..args(&["7"])
            })
            .map_err(|it| it.message)
        };
        let usual = plan(&args(&["7"])).expect("a plan");
        assert_eq!((usual.every.as_secs(), usual.time.as_secs()), (60, 600));
        assert!(with("10s", "20s", false).is_ok());
        assert!(with("0.5s", "2s", true).is_ok());
        for (every, time, force, word) in [
            ("9s", "1h", false, "--force"),
            ("0.01s", "1h", true, "0.1s"),
            ("10m", "19m", false, "twice"),
            ("10s", "1d", false, "500 looks"),
            ("x", "1h", false, "'x'"),
            ("1m", "-1h", false, "'-1h'"),
        ] {
            let message = with(every, time, force).expect_err("refused");
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn files_of_the_same_time_are_found() {
        let names = ["a.json", "b.json", "c.json"].map(OsString::from);
        let near = |times: [u64; 3]| {
            let times: Vec<_> = times.into_iter().zip(&names).collect();
            too_near(&times).map(|it| it.map(|it| it.to_str().expect("a name").to_owned()))
        };
        let second = 1_000_000_000;
        assert_eq!(near([5 * second, 3 * second, 4 * second]), None);
        let [a, b, c] = ["a.json", "b.json", "c.json"].map(String::from);
        assert_eq!(
            near([5 * second, 3 * second, 5 * second]),
            Some([a, c.clone()])
        );
        assert_eq!(near([7 * second, 2, 1]), Some([c, b]));
    }

    #[test]
    fn options_of_looks_are_for_programs() {
        let with = |change: fn(&mut LeakArgs)| {
            let mut args = args(&["a.json"]);
            change(&mut args);
            of_files(&args.targets.clone(), &args)
                .expect_err("refused")
                .message
        };
        for message in [
            with(|it| it.every = Some("1m".into())),
            with(|it| it.time = Some("1m".into())),
            with(|it| it.force = true),
            with(|it| it.no_wake = true),
        ] {
            assert!(message.ends_with("leave it out"), "{message}");
        }
        let message = with(|it| {
            it.limit = Some("2G".into());
            it.targets.push("b.json".into());
        });
        assert!(message.starts_with("--limit is for the RSS"), "{message}");
        let message = with(|it| it.targets.push("7".into()));
        assert!(message.starts_with("give one process"), "{message}");
    }
}
