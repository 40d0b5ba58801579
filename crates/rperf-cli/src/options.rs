//! Checked options, made from the clap types. Called by `run` before anything is
//! started, so that no program runs for a profile that can't be written.

use crate::Refusal;
use crate::args::{PageArgs, RecordArgs, SamplingArgs};
use rperf_format::Format;
use rperf_session::output::Descriptor;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const DEFAULT_OUTPUT: &str = "rperf.data";

/// The engine's modes: what can be measured.
const MODES: [&str; 2] = ["cpu", "wall"];

/// What to show when the program has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether the tables of methods are wanted too.
    pub report: bool,
}

/// All that is known before the command runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The command and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Samples per second.
    pub frequency: u32,
    /// What to measure: one of the engine's modes.
    pub mode: &'static str,
    /// The absolute path of the file, if one is to be written.
    pub output: Option<PathBuf>,
    /// A format other than the one of the file's extension.
    pub format: Option<Format>,
    /// Whether line numbers are recorded and shown; `None`: recorded only.
    pub lines: Option<bool>,
    /// When stacks are taken; `None`: at the tick, where a signal may be used.
    pub capture: Option<Capture>,
    /// The timer's signal, if it isn't to be the default one.
    pub signal: Option<Signal>,
    /// Whether samples are summed as they come.
    pub aggregate: bool,
    /// Whether the processes that the program starts are profiled too.
    pub inherit: bool,
    /// Whether sampling statistics are printed.
    pub verbose: bool,
    /// Whether, and how, the page of `rperf stat` is printed.
    pub stat: Option<Stat>,
}

/// What the timer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// A thread that sleeps.
    None,
    /// This real-time signal.
    Number(i32),
}

/// When stacks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// At the timer's tick, by a signal to the thread that runs.
    Tick,
    /// Where the VM next looks for interrupts.
    Safepoint,
}

impl Capture {
    const ALL: [Self; 2] = [Self::Tick, Self::Safepoint];

    /// As it is given, and passed on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Safepoint => "safepoint",
        }
    }
}

impl Options {
    /// The options of `rperf record`.
    pub fn for_record(args: RecordArgs) -> Result<Self, Refusal> {
        if args.print && (args.output.is_some() || args.format.is_some()) {
            let message = "-p prints text to stdout: it can't be combined with -o or --format";
            return Err(Refusal::usage(message));
        }
        let (output, format) = if args.print {
            (PathBuf::from("/dev/stdout"), Some(Format::Text))
        } else {
            let output = args.output.unwrap_or_else(|| DEFAULT_OUTPUT.into());
            (
                writable(&output)?,
                args.format.as_deref().map(parse_format).transpose()?,
            )
        };
        Ok(Options {
            output: Some(output),
            format,
            ..Self::new(args.sampling, &args.mode, None)?
        })
    }

    /// The options of `rperf stat`, and of `rperf exec`, which is a stat with report.
    pub fn for_page(args: PageArgs, report: bool) -> Result<Self, Refusal> {
        let output = args.output.map(writable).transpose()?;
        Ok(Options {
            output,
            ..Self::new(args.sampling, &args.mode, Some(Stat { report }))?
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

    fn new(args: SamplingArgs, mode: &str, stat: Option<Stat>) -> Result<Self, Refusal> {
        let signal = args.signal.as_deref().map(parse_signal).transpose()?;
        let capture = args.capture.as_deref().map(parse_capture).transpose()?;
        if (capture, signal) == (Some(Capture::Tick), Some(Signal::None)) {
            let message = "--capture tick needs a timer with a signal: it can't be combined with --signal false";
            return Err(Refusal::usage(message));
        }
        Ok(Options {
            command: args.command,
            frequency: parse_frequency(&args.frequency)?,
            mode: parse_mode(mode)?,
            output: None,
            format: None,
            lines: switch(args.lines, args.no_lines),
            capture,
            signal,
            aggregate: !args.no_aggregate,
            inherit: !args.no_inherit,
            verbose: args.verbose,
            stat,
        })
    }
}

/// What two flags say of which the last one given counts.
fn switch(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}

fn parse_frequency(text: &str) -> Result<u32, Refusal> {
    match text.parse() {
        Ok(frequency @ 1..=10_000) => Ok(frequency),
        _ => Err(Refusal::usage(format!(
            "-f must be a whole number from 1 to 10000 (samples per second), not '{text}'"
        ))),
    }
}

/// The other signals have a meaning to programs.
fn parse_signal(text: &str) -> Result<Signal, Refusal> {
    if text == "false" {
        return Ok(Signal::None);
    }
    #[cfg(target_os = "linux")]
    let (range, allowed) = {
        let range = libc::SIGRTMIN()..=libc::SIGRTMAX();
        let allowed = format!(
            "false, or a number from {} to {}",
            range.start(),
            range.end()
        );
        (range, allowed)
    };
    #[cfg(not(target_os = "linux"))]
    #[allow(clippy::reversed_empty_ranges, reason = "no number is allowed")]
    let (range, allowed) = (1..=0, "false: this system has no timer signals");
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(Signal::Number(number)),
        _ => Err(Refusal::usage(format!(
            "--signal must be {allowed}, not '{text}'"
        ))),
    }
}

fn parse_capture(text: &str) -> Result<Capture, Refusal> {
    let known = Capture::ALL.into_iter().find(|it| it.name() == text);
    match known {
        Some(Capture::Tick) if !cfg!(target_os = "linux") => Err(Refusal::usage(
            "--capture must be safepoint: this system has no timer signals, not 'tick'",
        )),
        Some(capture) => Ok(capture),
        None => Err(Refusal::usage(format!(
            "--capture must be tick or safepoint, not '{text}'"
        ))),
    }
}

fn parse_mode(text: &str) -> Result<&'static str, Refusal> {
    MODES
        .into_iter()
        .find(|mode| *mode == text)
        .ok_or_else(|| Refusal::usage(format!("-m must be cpu or wall, not '{text}'")))
}

/// The format with this name.
pub fn parse_format(text: &str) -> Result<Format, Refusal> {
    Format::from_name(text).ok_or_else(|| {
        Refusal::usage(format!(
            "--format must be {}, not '{text}'",
            Format::names()
        ))
    })
}

/// The absolute path of `output`, if a file can be written there.
pub fn writable(output: impl AsRef<Path>) -> Result<PathBuf, Refusal> {
    let output = output.as_ref();
    if output.as_os_str().is_empty() {
        return Err(Refusal::usage("-o needs the path of a file, not ''"));
    }
    let refuse =
        |what: &str| Refusal::usage(format!("can't write to {}: {what}", output.display()));
    let path = std::path::absolute(output)
        .map_err(|_| refuse("the current folder is gone; give -o an absolute path"))?;
    if let Some(descriptor) = Descriptor::named_by(&path) {
        return if descriptor.is_inherited_for_writing() {
            Ok(path)
        } else {
            Err(refuse("it is not open for writing"))
        };
    }
    if path.is_dir() {
        return Err(refuse("it is a folder"));
    }
    // A device or a pipe is opened as it is; a file is made anew next to its old self.
    let is_stream = path.exists() && !path.is_file();
    let folder = path.parent().unwrap_or(&path);
    let must_be_writable = if is_stream { &*path } else { folder };
    if !folder.is_dir() {
        return Err(refuse(&format!("there is no folder {}", folder.display())));
    }
    if !may_write(must_be_writable) || (path.is_file() && !may_write(&path)) {
        return Err(refuse("permission denied"));
    }
    Ok(path)
}

fn may_write(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Subcommand};
    use clap::Parser;

    fn options(line: &[&str]) -> Result<Options, Refusal> {
        let args = Args::try_parse_from(["rperf"].iter().chain(line)).expect("clap takes it");
        match args.subcommand {
            Subcommand::Record(args) => Options::for_record(args),
            Subcommand::Stat(args) => Options::for_page(args.page, args.report),
            Subcommand::Exec(args) => Options::for_page(args, true),
            Subcommand::Report(_) | Subcommand::Diff(_) | Subcommand::Help(_) => {
                panic!("runs no command")
            }
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
        assert_eq!((options.frequency, options.mode), (1000, "cpu"));
        assert!(
            options
                .output
                .is_some_and(|path| path.is_absolute() && path.ends_with("rperf.data"))
        );
        assert_eq!((options.format, options.stat), (None, None));
    }

    #[test]
    fn stat_measures_wall_time_and_writes_no_file() {
        let options = options(&["stat", "ruby", "x.rb"]).expect("valid");
        assert_eq!((options.mode, options.output), ("wall", None));
        assert_eq!(options.stat, Some(Stat { report: false }));
    }

    #[test]
    fn exec_is_stat_with_tables() {
        let exec = options(&["exec", "-f", "9", "-m", "cpu", "ruby"]).expect("valid");
        let stat = options(&["stat", "--report", "-f", "9", "-m", "cpu", "ruby"]);
        assert_eq!(exec, stat.expect("valid"));
        assert_eq!(exec.stat, Some(Stat { report: true }));
    }

    #[test]
    fn the_timer_children_and_single_samples_have_options() {
        let usual = options(&["record", "ruby"]).expect("valid");
        assert_eq!(
            (usual.signal, usual.aggregate, usual.inherit),
            (None, true, true)
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
        assert_eq!((changed.aggregate, changed.inherit), (false, false));
        assert_eq!(changed.signal, Some(Signal::None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_timer_takes_real_time_signals_only() {
        let number = (libc::SIGRTMIN() + 3).to_string();
        let signal = options(&["stat", "--signal", &number, "ruby"])
            .expect("valid")
            .signal;
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
                assert_eq!(options(&line).expect("valid").capture, expected, "{line:?}");
            }
        }
        let message = message(&["stat", "--capture", "tick", "--signal", "false", "ruby"]);
        assert!(message.contains("--capture tick needs a timer with a signal"));
    }

    #[test]
    fn options_after_the_command_are_the_commands() {
        let options = options(&["stat", "-f", "50", "ruby", "-v", "--", "-o"]).expect("valid");
        assert_eq!(options.command, ["ruby", "-v", "--", "-o"]);
        assert!(!options.verbose);
        assert_eq!(options.frequency, 50);
    }

    #[test]
    fn two_dashes_end_our_options() {
        let options = options(&["record", "--", "-odd-", "-p"]).expect("valid");
        assert_eq!(options.command, ["-odd-", "-p"]);
    }

    #[test]
    fn print_is_text_on_stdout_and_nothing_else() {
        let options = options(&["record", "-p", "ruby"]).expect("valid");
        assert_eq!(options.output, Some("/dev/stdout".into()));
        assert_eq!(options.format, Some(Format::Text));
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
                assert_eq!(options.lines, expected, "{line:?}");
            }
        }
    }

    #[test]
    fn wrong_values_are_named_with_what_is_allowed() {
        for frequency in ["0", "10001", "1e3", "", "-5", "-v"] {
            let message = message(&["record", "-f", frequency, "ruby"]);
            assert!(message.contains("1 to 10000") && message.contains(&format!("'{frequency}'")));
        }
        assert!(message(&["stat", "-m", "gpu", "ruby"]).contains("cpu or wall, not 'gpu'"));
        for capture in ["ticks", "", "-v"] {
            let message = message(&["stat", "--capture", capture, "ruby"]);
            assert!(message.ends_with(&format!("must be tick or safepoint, not '{capture}'")));
        }
        assert!(message(&["record", "--format", "svg", "ruby"]).contains("not 'svg'"));
        assert!(message(&["record", "-o", "/no/such/x", "ruby"]).contains("no folder /no/such"));
        assert!(message(&["record", "-o", "/", "ruby"]).contains("a folder"));
        assert!(message(&["stat", "-o", "", "ruby"]).contains("-o needs the path"));
        assert!(message(&["stat", "-m", "-1", "ruby"]).contains("not '-1'"));
        assert!(message(&["record", "-o", "/dev/fd/987", "ruby"]).contains("not open for writing"));
    }
}
