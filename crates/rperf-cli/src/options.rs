//! Checked options of the commands that run another one, made from the clap types. Called by `run`
//! before anything is started, so that no program runs for a profile that can't be written.

use crate::Refusal;
use crate::args::flags::PushFlags;
use crate::args::{PageArgs, RecordArgs, TraceArgs};
use crate::shared_args::checked::{refuse_reports_file, size};
use rperf_model::SessionMode;
use rperf_protocol::ask::Sampling;
use rperf_protocol::measure::{Measure, Objects};
use rperf_session::settings::{FORMAT, MODE, OUTPUT, STAT, Setting, Settings, quoted};
use std::ffi::OsString;
use std::path::Path;

/// What to show when the program has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether the tables of methods are wanted too.
    pub report: bool,
    /// Whether the time of idle threads counts as all other.
    pub idle: bool,
}

/// All that is known before the command runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The command and its arguments; empty if a running program is asked.
    pub command: Vec<OsString>,
    /// The session's settings.
    pub settings: Settings,
    /// Whether, and how, the page of `rperf stat` is printed.
    pub stat: Option<Stat>,
    /// The peak RSS in bytes from which on the command has failed.
    pub max_rss: Option<u64>,
}

impl Options {
    /// The options of `rperf record`.
    pub fn for_record(args: RecordArgs) -> Result<Self, Refusal> {
        let max_rss = max_rss(args.run.max_rss.as_deref())?;
        let options = Self::for_file(args.settings.given, args.print, false, args.run.command)?;
        Ok(Options { max_rss, ..options })
    }

    /// The options of `rperf trace`.
    pub fn for_trace(args: TraceArgs) -> Result<Self, Refusal> {
        let max_rss = max_rss(args.run.max_rss.as_deref())?;
        let options = Self::for_file(args.settings.given, args.print, true, args.run.command)?;
        Ok(Options { max_rss, ..options })
    }

    fn for_file(
        given: Vec<(&'static Setting, OsString)>,
        print: bool,
        traced: bool,
        command: Vec<OsString>,
    ) -> Result<Self, Refusal> {
        let is_about_the_file = |name| name == OUTPUT.name || name == FORMAT.name;
        if print && given.iter().any(|(it, _)| is_about_the_file(it.name)) {
            let message = "-p prints text to stdout: it can't be combined with -o or --format";
            return Err(Refusal::usage(message));
        }
        check_file(&given)?;
        let print = print.then(|| Path::new("/dev/stdout"));
        Ok(Options {
            command,
            settings: Settings::for_file(given, print, traced)?,
            stat: None,
            max_rss: None,
        })
    }

    /// The options of commands that have a running program's profile.
    pub fn for_attach(
        given: Vec<(&'static Setting, OsString)>,
        print: bool,
    ) -> Result<Self, Refusal> {
        check_page_mode(&given)?;
        Self::for_file(given, print, false, Vec::new())
    }

    /// The options of `rperf stat`, and of `rperf exec`, which is a stat with report.
    pub fn for_page(args: PageArgs, report: bool) -> Result<Self, Refusal> {
        let max_rss = max_rss(args.run.max_rss.as_deref())?;
        check_page_mode(&args.settings.given)?;
        check_file(&args.settings.given)?;
        // Its processes tell what the page needs beside a profile.
        let mut given = args.settings.given;
        given.push((&STAT, "1".into()));
        let settings = Settings::from_flags(given, true)?;
        Ok(Options {
            command: args.run.command,
            settings,
            stat: Some(Stat {
                report,
                idle: args.idle,
            }),
            max_rss,
        })
    }

    /// The command as the user typed it, or nearly so.
    pub fn shown_command(&self) -> String {
        let words: Vec<_> = self
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }
}

fn max_rss(text: Option<&str>) -> Result<Option<u64>, Refusal> {
    text.map(|it| size("--max-rss", it)).transpose()
}

/// What `rperf push` profiles with.
pub fn for_push(flags: &PushFlags) -> Result<Settings, Refusal> {
    check_page_mode(&flags.given)?;
    // Like a page, it writes no file.
    Ok(Settings::from_flags(flags.given.iter().cloned(), true)?)
}

/// How ports are asked to sample.
pub fn sampling_of(settings: &Settings) -> Sampling {
    Sampling {
        mode: settings.mode().sampling().unwrap_or_default(),
        frequency: settings.frequency(),
        measure: Measure {
            objects: match (settings.samples_objects(), settings.follows_objects()) {
                (_, true) => Objects::InUse,
                (true, false) => Objects::Made,
                (false, false) => Objects::No,
            },
            requests: settings.measures_requests(),
            ops: settings.measures_ops(),
        },
    }
}

/// A file is named as what it will be, unless the format is given apart from it.
fn check_file(given: &[(&'static Setting, OsString)]) -> Result<(), Refusal> {
    let of = |name| given.iter().find(|(it, _)| it.name == name);
    match (of(OUTPUT.name), of(FORMAT.name)) {
        (Some((_, path)), None) => refuse_reports_file(Path::new(path)),
        _ => Ok(()),
    }
}

/// A page is about samples.
fn check_page_mode(given: &[(&'static Setting, OsString)]) -> Result<(), Refusal> {
    let mode = given.iter().find(|(it, _)| it.name == MODE.name);
    let Some((_, mode)) = mode else {
        return Ok(());
    };
    let remedy = match mode.to_str().and_then(SessionMode::from_name) {
        Some(SessionMode::Sampling(_)) => return Ok(()),
        Some(SessionMode::Trace) => ": 'rperf trace' traces calls",
        None => "",
    };
    let mode = quoted(mode);
    let message = format!("-m must be cpu or wall, not {mode}{remedy}");
    Err(Refusal::usage(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Subcommand};
    use clap::Parser;
    use rperf_format::Format;
    use rperf_session::settings::{Capture, Inherit, Signal};

    fn options(line: &[&str]) -> Result<Options, Refusal> {
        let args = Args::try_parse_from(["rperf"].iter().chain(line)).expect("clap takes it");
        match args.subcommand {
            Subcommand::Record(args) => Options::for_record(args),
            Subcommand::Stat(args) => Options::for_page(args.page, args.report),
            Subcommand::Exec(args) => Options::for_page(args, true),
            Subcommand::Trace(args) => Options::for_trace(args),
            Subcommand::Report(_)
            | Subcommand::Diff(_)
            | Subcommand::Why(_)
            | Subcommand::Attach(_)
            | Subcommand::Snapshot(_)
            | Subcommand::Ps(_)
            | Subcommand::Stacks(_)
            | Subcommand::Memory(_)
            | Subcommand::Heap(_)
            | Subcommand::Leak(_)
            | Subcommand::Top(_)
            | Subcommand::Serve(_)
            | Subcommand::Push(_)
            | Subcommand::Help(_) => {
                panic!("runs no command")
            }
        }
    }

    #[test]
    fn running_programs_are_profiled_by_rows_of_their_own() {
        let parsed = |line: &str| {
            let line = format!("rperf {line}");
            let args = Args::try_parse_from(line.split(' ')).expect("clap takes it");
            match args.subcommand {
                Subcommand::Attach(args) => {
                    let options = Options::for_attach(args.settings.given, false);
                    options.map(|options| options.settings)
                }
                Subcommand::Push(args) => for_push(&args.settings),
                _ => panic!("asks no program"),
            }
        };
        for (command, frequency) in [("attach 1", 1000), ("push --to http://h", 100)] {
            let usual = parsed(command).expect("defaults are allowed");
            assert_eq!(
                (usual.mode().name(), usual.frequency()),
                ("wall", frequency)
            );
            let given = parsed(&format!("{command} -m cpu -f 99")).expect("allowed");
            assert_eq!((given.mode().name(), given.frequency()), ("cpu", 99));
            for (flags, message) in [
                (
                    "-f 5000",
                    "-f must be a whole number from 1 to 1000 (samples per second), not '5000'",
                ),
                (
                    "-f -1",
                    "-f must be a whole number from 1 to 1000 (samples per second), not '-1'",
                ),
                ("-m foo", "-m must be cpu or wall, not 'foo'"),
                (
                    "-m trace",
                    "-m must be cpu or wall, not 'trace': 'rperf trace' traces calls",
                ),
            ] {
                let refusal = parsed(&format!("{command} {flags}")).expect_err("refused");
                assert_eq!((refusal.status, &*refusal.message), (2, message));
            }
        }
    }

    fn page(report: bool) -> Stat {
        Stat {
            report,
            idle: false,
        }
    }

    fn message(line: &[&str]) -> String {
        let refusal = options(line).expect_err("it is refused");
        assert_eq!(refusal.status, 2);
        refusal.message
    }

    #[test]
    fn record_measures_cpu_time_into_rperf_data() {
        let options = options(&["record", "ruby", "x.rb"]).expect("valid");
        assert_eq!(options.command, ["ruby", "x.rb"]);
        let settings = &options.settings;
        assert_eq!(
            (settings.frequency(), settings.mode().name()),
            (1000, "cpu")
        );
        assert!(
            options
                .settings
                .output()
                .is_some_and(|path| path.is_absolute() && path.ends_with("rperf.data"))
        );
        assert_eq!((options.settings.format(), options.stat), (None, None));
    }

    #[test]
    fn stat_measures_wall_time_and_writes_no_file() {
        let options = options(&["stat", "ruby", "x.rb"]).expect("valid");
        assert_eq!(
            (options.settings.mode().name(), options.settings.output()),
            ("wall", None)
        );
        assert_eq!(options.stat, Some(page(false)));
    }

    #[test]
    fn trace_traces_calls_into_rperf_data_and_stat_does_not() {
        let options = options(&["trace", "--calls", "count-all", "ruby"]).expect("valid");
        let settings = &options.settings;
        assert!(settings.is_traced() && settings.traces_c_methods() && !settings.times_calls());
        assert!(
            settings
                .output()
                .is_some_and(|path| path.ends_with("rperf.data"))
        );
        let message = message(&["stat", "-m", "trace", "ruby"]);
        assert!(message.contains("'rperf trace' traces calls"), "{message}");
    }

    #[test]
    fn exec_is_stat_with_tables() {
        let exec = options(&["exec", "-f", "9", "-m", "cpu", "ruby"]).expect("valid");
        let stat = options(&["stat", "--report", "-f", "9", "-m", "cpu", "ruby"]);
        assert_eq!(exec, stat.expect("valid"));
        assert_eq!(exec.stat, Some(page(true)));
    }

    #[test]
    fn the_timer_children_and_single_samples_have_options() {
        let usual = options(&["record", "ruby"]).expect("valid");
        assert_eq!(
            (
                usual.settings.signal(),
                usual.settings.aggregate(),
                usual.settings.inherit()
            ),
            (None, true, Inherit::All)
        );
        let line = [
            "exec",
            "--signal",
            "false",
            "--no-aggregate",
            "--no-inherit",
            "ruby",
        ];
        let changed = options(&line).expect("valid");
        assert_eq!(
            (changed.settings.aggregate(), changed.settings.inherit()),
            (false, Inherit::None)
        );
        assert_eq!(changed.settings.signal(), Some(Signal::None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_timer_takes_real_time_signals_only() {
        let number = (libc::SIGRTMIN() + 3).to_string();
        let signal = options(&["stat", "--signal", &number, "ruby"])
            .expect("valid")
            .settings
            .signal();
        assert_eq!(signal, Some(Signal::Number(libc::SIGRTMIN() + 3)));
        for signal in ["0", "9", "true", "-1", "65", ""] {
            let message = message(&["stat", "--signal", signal, "ruby"]);
            assert!(message.contains(&format!("not '{signal}'")), "{message}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn stacks_are_taken_at_the_tick_or_at_a_safepoint() {
        for (words, expected) in [
            (vec![], None),
            (vec!["--capture", "tick"], Some(Capture::Tick)),
            (vec!["--capture=safepoint"], Some(Capture::Safepoint)),
            (
                vec!["--capture", "safepoint", "--signal", "false"],
                Some(Capture::Safepoint),
            ),
        ] {
            for command in ["record", "stat"] {
                let line = [&[command], &*words, &["ruby"]].concat();
                assert_eq!(
                    options(&line).expect("valid").settings.capture(),
                    expected,
                    "{line:?}"
                );
            }
        }
        let message = message(&["stat", "--capture", "tick", "--signal", "false", "ruby"]);
        assert_eq!(
            message,
            "--signal false goes with --capture safepoint, not with --capture tick"
        );
    }

    #[test]
    fn options_after_the_command_are_the_commands() {
        let options = options(&["stat", "-f", "50", "ruby", "-v", "--", "-o"]).expect("valid");
        assert_eq!(options.command, ["ruby", "-v", "--", "-o"]);
        assert!(!options.settings.verbose());
        assert_eq!(options.settings.frequency(), 50);
    }

    #[test]
    fn two_dashes_end_our_options() {
        let options = options(&["record", "--", "-odd-", "-p"]).expect("valid");
        assert_eq!(options.command, ["-odd-", "-p"]);
    }

    #[test]
    fn print_is_text_on_stdout_and_nothing_else() {
        let options = options(&["record", "-p", "ruby"]).expect("valid");
        assert_eq!(options.settings.output(), Some(Path::new("/dev/stdout")));
        assert_eq!(options.settings.format(), Some(Format::Text));
        assert!(message(&["record", "-p", "-o", "x", "ruby"]).contains("-p prints text"));
    }

    #[test]
    fn of_a_switch_and_its_opposite_the_last_one_counts() {
        for (line, expected) in [
            (vec![], None),
            (vec!["--lines"], Some(true)),
            (vec!["--lines", "--no-lines"], Some(false)),
            (vec!["--no-lines", "--lines", "--lines"], Some(true)),
        ] {
            for command in ["record", "stat"] {
                let line = [&[command], &*line, &["ruby"]].concat();
                let options = options(&line).expect("valid");
                assert_eq!(options.settings.lines(), expected, "{line:?}");
            }
        }
    }

    #[test]
    fn profiles_are_not_named_as_reports() {
        for (path, start) in [
            (
                "a/x.html",
                "a/x.html: a profile is no .html: record into a/x.pb.gz, then ",
            ),
            ("x.MD", "x.MD: a profile is no .md: "),
            ("x.svg", "x.svg: a profile is no .svg: "),
            ("x.PNG", "x.PNG: rperf writes no .png: "),
        ] {
            for command in ["record", "stat", "exec", "trace"] {
                let message = message(&[command, "-o", path, "ruby"]);
                assert!(message.starts_with(&format!("-o {start}")), "{message}");
            }
        }
        let html = message(&["record", "-o", "x.HTML", "ruby"]);
        assert!(html.ends_with("'rperf report x.pb.gz -o x.html'"), "{html}");
        for path in ["x", "x.data", "x.pb.gz", "x.txt", "callgrind.out.7"] {
            options(&["record", "-o", path, "ruby"]).expect("a profile's file");
        }
        options(&["record", "--format", "html", "-o", "x.html", "ruby"]).expect("valid");
    }

    #[test]
    fn what_only_samples_have_is_refused_by_the_command_for_traces() {
        for (measure, mode) in [("ops", "cpu or wall"), ("requests", "wall")] {
            assert_eq!(
                message(&["trace", "--measure", measure, "ruby"]),
                format!(
                    "--measure {measure} goes with 'rperf record -m {mode}', not with traced calls"
                )
            );
        }
    }

    #[test]
    fn wrong_values_are_named_with_what_is_allowed() {
        for frequency in ["0", "10001", "1e3", "", "-5", "-v"] {
            let message = message(&["record", "-f", frequency, "ruby"]);
            assert!(message.contains("1 to 10000") && message.contains(&format!("'{frequency}'")));
        }
        assert!(message(&["stat", "-m", "gpu", "ruby"]).ends_with("cpu or wall, not 'gpu'"));
        assert!(message(&["record", "-m", "gpu", "ruby"]).contains("wall or trace, not 'gpu'"));
        for capture in ["ticks", "", "-v"] {
            let message = message(&["stat", "--capture", capture, "ruby"]);
            assert!(message.ends_with(&format!("must be tick or safepoint, not '{capture}'")));
        }
        assert!(message(&["record", "--format", "svg", "ruby"]).contains("not 'svg'"));
        assert!(
            message(&["record", "-o", "/no/such/x", "ruby"])
                .contains("-o must be in a directory that exists, not '/no/such/x'")
        );
        assert!(
            message(&["record", "-o", "/", "ruby"])
                .contains("-o must be a file, and that is a directory")
        );
        assert!(
            message(&["stat", "-o", "", "ruby"]).contains("-o must be the path of a file, not ''")
        );
        assert!(message(&["stat", "-m", "-1", "ruby"]).contains("not '-1'"));
        assert!(
            message(&["record", "-o", "/dev/fd/987", "ruby"])
                .contains("-o must be open for writing")
        );
    }
}
