//! `rperf help`: the full reference, for people and for programs to read. The
//! options come from the definitions that `--help` shows. Called by `run`.

use crate::args::Args;
use crate::{USAGE, say};
use clap::CommandFactory;
use std::io::{self, Write};

/// Prints the reference, or the help of one command, and returns the exit status.
pub fn print(command: Option<&str>) -> i32 {
    let text = match command {
        None => Some(reference()),
        Some(name) => help_of(name),
    };
    let Some(text) = text else {
        let name = command.unwrap_or_default();
        let names = names().join(", ");
        say(&format!("there is no command '{name}'; there are {names}"));
        return USAGE;
    };
    // Somebody may have closed stdout.
    let _ = io::stdout().write_all(text.as_bytes());
    0
}

fn names() -> Vec<String> {
    let command = Args::command();
    let names = command
        .get_subcommands()
        .map(|it| it.get_name().to_string());
    names.collect()
}

fn help_of(name: &str) -> Option<String> {
    let mut command = Args::command();
    // The lines with "Usage:" then have the whole name.
    command.build();
    let command = command.find_subcommand_mut(name)?;
    Some(command.render_help().to_string())
}

/// A section for each command, then those about what they share.
fn reference() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("rperf {version}: a sampling profiler for Ruby programs\n");
    let overview = Args::command().render_help().to_string();
    section(&mut text, "OVERVIEW", &overview);
    for name in names() {
        if let Some(help) = help_of(&name) {
            section(&mut text, &format!("RPERF {}", name.to_uppercase()), &help);
        }
    }
    for (title, body) in SECTIONS {
        section(&mut text, title, body);
    }
    let variables: Vec<String> = VARIABLES
        .iter()
        .map(|(name, values, meaning)| format!("  {name:<20} {values:<24} {meaning}\n"))
        .collect();
    let intro = "\
RPERF_ENABLED=1 profiles a Ruby without the rperf command, from the moment when
it loads rperf to its end:

  RPERF_ENABLED=1 RPERF_OUTPUT=app.pb.gz RUBYOPT=-rrperf ruby app.rb

The other variables go with it. The rperf command pays no attention to them; its
options say the same.

";
    let body = format!("{intro}{}", variables.concat());
    section(&mut text, "ENVIRONMENT VARIABLES", &body);
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    text.push_str(&format!("\n== {title} ==\n\n{}\n", body.trim_end()));
}

/// Name, values and meaning. lib/rperf/autostart/settings.rb reads them.
const VARIABLES: [(&str, &str, &str); 15] = [
    ("RPERF_ENABLED", "1", "profile this program as a whole"),
    (
        "RPERF_OUTPUT",
        "path",
        "file to write [rperf.data; none with RPERF_STAT=1]",
    ),
    ("RPERF_FREQUENCY", "1 to 10000", "samples per second [1000]"),
    (
        "RPERF_MODE",
        "cpu, wall",
        "what to measure [cpu; wall with RPERF_STAT=1]",
    ),
    (
        "RPERF_FORMAT",
        "as --format",
        "format of the file [by its extension]",
    ),
    ("RPERF_VERBOSE", "1", "print sampling statistics to stderr"),
    ("RPERF_STAT", "1", "print where the time went to stderr"),
    ("RPERF_STAT_REPORT", "1", "add tables of methods"),
    (
        "RPERF_STAT_COMMAND",
        "text",
        "the command to name there [the program's name]",
    ),
    (
        "RPERF_AGGREGATE",
        "1, 0",
        "0: keep samples one by one until the end [1]",
    ),
    (
        "RPERF_SIGNAL",
        "number, false",
        "the timer's signal, as --signal",
    ),
    (
        "RPERF_INHERIT",
        "0, fork, 1",
        "also profile forked, or all Ruby children [0]",
    ),
    ("RPERF_LINES", "1, 0", "as --lines, --no-lines"),
    ("RPERF_CAPTURE", "tick, safepoint", "as --capture"),
    (
        "RPERF_SESSION",
        "path",
        "set by rperf for the children of what it profiles",
    ),
];

const SECTIONS: [(&str, &str); 13] = [
    (
        "MODES",
        "\
cpu   CPU time of each thread. Waiting takes none. Default of record. For what
      computes too much.
wall  All time of each thread: computing, waiting and sleeping. Default of stat
      and exec. For what is slow. A wall profile has CPU time as a second value.

Weights are nanoseconds. In wall mode they add up to the life of every thread
while it was profiled, in cpu mode to the CPU time it used. GC time is wall time
in both.",
    ),
    (
        "FORMATS",
        "\
pprof      default; gzipped protocol buffers, for go tool pprof and other viewers:
           stacks with lines, threads, labels, states
collapsed  .collapsed; one line per stack: frames from the root, joined by ';',
           then the weight. For flamegraph.pl and speedscope. No labels
text       .txt; tables of methods: flat (self) and cumulative, 50 each; with
           --lines a third one of lines
markdown   to paste into a pull request, or to hand to an assistant: where the
           time goes in words, by state, method and path with lines, what is waited
           for, what was lost
json       the same answers for programs: docs/json.md
html       the web viewer with the profile in it

rperf report -o knows .md, .json and .html, too; to rperf record these are pprof files, as
only pprof can be read again.

--format overrides the extension. /dev/stderr, /dev/fd/3 and the like are written
to as they are.",
    ),
    (
        "REPORTS",
        "\
rperf report               the web viewer, on a terminal: a page on a port of this machine,
                           at an address with a token; Ctrl-C ends it. --no-browser only
                           prints the address
rperf report --html        the same page as one file, -o PATH [rperf.html], which needs no
                           network; --source puts the source files in, too
rperf report --top         methods: flat is what a method spends itself, cum with what it
                           calls, each stack once however often it has the method
rperf report --tree        who calls whom, from the root; --bottom-up: from what spends
rperf report --callers X   callers and callees of X, with the lines of the calls
rperf report --annotate X  the source of a method or file: self is at the line itself,
                           total with what it calls
rperf report --text        the tables of text files
rperf report -o PATH       the profile in the format of the extension, or of --format. JSON
                           takes --callers, too

NAME and METHOD are the full name of a method, else a regular expression. Shares are of
the whole profile, also where filters leave less of it. --value chooses among what a
profile has: samples, wall, cpu; in heap profiles alloc_space and so on.

Filters work as in pprof. Methods match by name or path:
  --focus, --ignore         stacks that have, or don't have, a method that matches
  --hide, --show            stacks without, or of nothing but, those that match
  --show-from               stacks from the outermost one that matches
  --tagfocus, --tagignore   samples by label: KEY=REGEX, KEY=A,B (either), KEY=10:20,
                            REGEX (any label, as key:value). The labels thread_seq,
                            thread, %GVL and %GC are there too
  --tagroot, --tagleaf      labels as frames above, or below, all others
  --thread, --pid           a thread by number or name, a process by number",
    ),
    (
        "DIFFS",
        "\
rperf diff BASE TARGET     compares two profiles: delta is target less base
rperf diff --base A1 A2 A3 --target B1 B2 B3
                           compares the means of several runs, each of which is a file

Each difference is marked slower, faster or noise. With one run on a side, noise is told
by the number of samples, and 2 % are allowed for what runs differ by; with several, by
what they differ by. Of all methods called slower or faster, at most 5 % are unchanged.
docs/diff.md has the rule.

--format markdown|json|html, -o PATH
                           to paste into a pull request, for programs, the viewer as a file
--normalize total|duration|label:KEY
                           scales each run as if it had as much of it as the base
--fail-above PERCENT       exit status 3 if something got slower by more than that,
                           beyond the noise",
    ),
    (
        "STATES",
        "\
Where a thread isn't running Ruby code, a frame in brackets ends its stack, and
pprof samples have a label that says the same.

[GVL blocked]   %GVL=blocked  off the GVL: I/O, sleep, C code that let it go (wall)
[GVL wait]      %GVL=wait     ready, while another thread had the GVL (wall)
[GC marking]    %GC=mark      the collector visits live objects
[GC sweeping]   %GC=sweep     the collector frees dead ones
[truncated]     -             stacks that found no room; rare, and counted",
    ),
    (
        "THE STACK AT THE TICK",
        "\
--capture says when a sample's stack is taken:

tick       at the tick: the thread that holds the GVL gets SIGURG, whose handler takes
           the stack. Ruby isn't interrupted, and compiled code stays compiled. An
           extension that keeps the GVL in a system call may see it end with EINTR
safepoint  where Ruby next looks for interrupts; that thread gets no signal. A method
           of straight-line code loses its time to the one that reaches a safepoint
           next, a C method called by compiled code to its caller. Under YJIT and ZJIT
           a tick throws the running call out of compiled code: long loops get up to
           17 times slower

The default is tick, and safepoint where tick can't be: with --signal false, on macOS,
and in a program that traps or ignores SIGURG. There --capture tick is an error.",
    ),
    (
        "CHILD PROCESSES",
        "\
Ruby processes that the command forks or starts, however it does so, are profiled
and merged into one profile. If there was more than one, every sample has the
labels %pid (the process's number) and %process (its $0 when it ended):

  rperf report --tree --tagroot %pid
  rperf report --pid 1234

A program that becomes another Ruby program by exec goes on being profiled. Said
in a line on stderr: processes that still run when the command ends, and such as
were killed by SIGKILL; their samples are not in the profile. Not profiled are
children started with another environment (unsetenv_others), under another user,
from other Ractors than the main one, or forked by C code.

So that children find their session, the program has RPERF_SESSION and a longer
RUBYOPT in its environment (and RUBYLIB, where rperf's path has a blank in it).
--no-inherit profiles the first Ruby only, which then sees its own environment.

Until the end the profiles are in a private folder (mode 700) rperf-UID in
XDG_RUNTIME_DIR or the temporary folder (TMPDIR, /tmp).",
    ),
    (
        "FROM RUBY",
        "\
require \"rperf\"
profile = Rperf.start(mode: :wall, output: \"app.pb.gz\") { work }   # the Hash below

Rperf.start(frequency: 500); work; profile = Rperf.stop
Rperf.save(\"app.txt\", profile)

Rperf.start(keywords) { }  profiles the block and returns its profile; without a
                           block it returns true, and all is profiled until
Rperf.stop                 returns the profile; nil if nothing was started
Rperf.save(path, profile, format: nil, lines: false)
                           writes it to a file
Rperf.running?             whether profiling is on
Rperf.load(path)           the profile in a pprof file
Rperf.merge(*profiles)     the sum of profiles, or of those in files
Rperf.diff(base, target)   what has changed; each is a profile, a file, or several runs

Keywords of Rperf.start, with their defaults:
  frequency: 1000          samples per second, 1 to 10000
  mode: :cpu               or :wall
  output: nil              file to write when profiling ends
  format: nil              :pprof, :collapsed, :text, :markdown, :json, :html; nil: by the
                           file's extension
  verbose: false           true prints sampling statistics to stderr
  signal: nil              the timer's real-time signal; false: none, as --signal
  aggregate: true          false keeps every sample with its time
  lines: nil               false records no lines; true adds a table of them to text
  capture: nil             :tick, :safepoint; nil: :tick where a signal may be used
  defer: false             true profiles only what runs in blocks of Rperf.profile
  inherit: false           :fork profiles forked children too, true spawned Rubies as
                           well; Rperf.stop merges what has ended

Wrong arguments raise ArgumentError, all else that goes wrong Rperf::Error.",
    ),
    (
        "THE PROFILE",
        "\
A profile is a Hash. Its keys:
  samples:                 rows [frames, weight, thread, label set, count, CPU time]:
                           frames are [path, name], deepest first, weight and CPU
                           time nanoseconds, threads numbered from 1
  aggregated_samples:      the same array; with aggregate: false it is raw_samples:,
                           and its rows end with the sample's time
  label_sets:              Hashes of labels, to which the rows' fourth column points;
                           there only if there are labels
  mode:, frequency:        as given
  start_time_ns:           since 1970
  duration_ns:             time on the clock
  trigger_count:           ticks of the timer
  sampling_count:, sampling_time_ns:
                           samples taken, and what that cost
  detected_thread_count:   threads seen
  unique_frames:, unique_stacks:
                           of samples that were summed up
  dropped_samples:, dropped_ns:, truncated_samples:, unlabelled_samples:
                           what could not be kept
  tick_stacks:, safepoint_stacks:, safepoint_calls:
                           stacks taken at the tick, and at a safepoint, and how often
                           one was asked for
  unreadable_stacks:, hidden_frames:
                           ticks whose stack couldn't be read, and compiled methods
                           that had to be learned at a safepoint

It answers questions with plain Hashes and Arrays, which have the fields of
rperf report --format json (docs/json.md) as Symbols:
  profile.totals           what it adds up to, by state, and what was lost
  profile.top(limit: nil, sort: :flat, by: :function)
                           the methods with the most; sort: :cum, by: :file, :dir, :gem,
                           :thread, :state, \"label:KEY\"
  profile.tree(least: 0.5, bottom_up: false)
                           the call tree, without branches of less than so many percent
  profile.callers(name)    who calls a method, and whom it calls
  profile.diff(target, sort: :flat, normalize: :none, limit: nil)
                           what has changed, told from noise
  profile.filter(...)      a profile of what is left
  profile.save(path)       writes it; knows .md, .json and .html, too

All take filters as rperf report has them: focus:, ignore:, hide:, show:, show_from:,
tagfocus:, tagignore:, tagroot:, tagleaf:, thread:, pid:, and value:. A spec can so hold
a method to its share of the time:

  totals = profile.totals(focus: /\\AOrder#total\\z/)
  totals[:left] < totals[:total] / 10",
    ),
    (
        "LABELS, SNAPSHOTS, SECTIONS",
        "\
Rperf.label(endpoint: \"/users\") { work }  labels for the samples of the block
Rperf.label(phase: \"warm\")                for all that follow, until changed
Rperf.label(phase: nil)                   takes one away
Rperf.labels                              those in force, as a Hash

They add to those that are there, and are as before when a block ends, however it
does. They belong to a thread, and in it to a fiber; a fiber begins with those of
the fiber that made it, a thread with none. When profiling is off the block just
runs. In reports they are labels: rperf report --by label:endpoint app.pb.gz

Rperf.snapshot                            the profile so far; nil if profiling is off
Rperf.snapshot(clear: true)               and the next one begins from here

Rperf.start(defer: true, mode: :wall)
Rperf.profile(endpoint: \"/users\") { work }
                                          time counts, that of all threads, while such
                                          a block runs; its labels are as those of
                                          Rperf.label
profile = Rperf.stop",
    ),
    (
        "MIDDLEWARE",
        "\
It labels the samples of each request or job, and profiles them in a session with
defer: true. It starts no session: use rperf record, or call Rperf.start.

require \"rperf/rack\"                      # or \"rperf/middleware\"
use Rperf::RackMiddleware                 # or Rperf::Middleware
use Rperf::RackMiddleware, label_key: :route
use Rperf::RackMiddleware, label: ->(env) { env[\"HTTP_HOST\"] }

  label_key: :endpoint     the label's name
  label: nil               gives the value for a Rack environment; nil: the method and
                           the route, as \"GET /users/:id\"

require \"rperf/active_job\"
class ApplicationJob < ActiveJob::Base
  include Rperf::ActiveJobMiddleware      # job: the name of the job's class
end

require \"rperf/sidekiq\"
Sidekiq.configure_server do |config|
  config.server_middleware { |chain| chain.add Rperf::SidekiqMiddleware }
end",
    ),
    (
        "THE VIEWER IN AN APP",
        "\
require \"rperf/viewer\"
use Rperf::Viewer, auth: ->(env) { env[\"rack.session\"][\"admin\"] }   # above RackMiddleware
mount Rperf::Viewer.new(auth: ...), at: \"/rperf\"                     # or in Rails' routes

The page of rperf report at /rperf/: takes snapshots of the process that answers, keeps
the last ones, shows, compares, saves and deletes them. A snapshot is of the time since
the last one; under rperf record, of all time since the start. It starts no session.

  path: \"/rperf\"           where it is
  max_snapshots: 24        so many are kept; older ones are dropped
  max_bytes: 64_000_000    and so many bytes of them
  auth: nil                returns whether a Rack environment's request is allowed; nil:
                           in development (RAILS_ENV, RACK_ENV, APP_ENV) those from
                           private addresses are, elsewhere none

Rperf::Viewer.instance.take_snapshot!      takes one, from any thread
Rperf::Viewer.instance.add_snapshot(data)  keeps one that Rperf.snapshot has returned",
    ),
    (
        "WHAT TO LOOK FOR",
        "\
CPU is high               record (cpu mode): methods with much flat time
it is slow                exec (wall mode): methods with much cumulative time
[GVL blocked] is high     it waits for I/O or sleeps: see which methods lead there
[GVL wait] is high        threads compete for the GVL: fewer of them, or processes
[GC marking] is high      too many objects are kept alive
[GC sweeping] is high     too many short-lived objects: allocated objects in stat
CPU execution >> user     native threads wait for a CPU: the machine is busy
few samples               run longer, or raise -f; 100 samples at a place tell
                          its share to about a tenth
samples dropped           the profiler could not keep up; the time is counted",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_every_option_of_every_command() {
        let text = reference();
        for command in Args::command().get_subcommands() {
            assert!(text.contains(&format!("Usage: rperf {}", command.get_name())));
            for argument in command.get_arguments() {
                if let Some(long) = argument.get_long() {
                    assert!(text.contains(&format!("--{long}")), "{long}");
                }
            }
        }
        for (name, ..) in VARIABLES {
            assert!(text.contains(name));
        }
    }

    #[test]
    fn its_lines_fit_a_terminal() {
        let own = |line: &&str| !line.starts_with("      --") && !line.starts_with("  -");
        for line in reference().lines().filter(own) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn a_command_has_its_own_help() {
        let help = help_of("record").expect("a command");
        assert!(help.contains("Usage: rperf record [OPTIONS] <COMMAND>"));
        assert!(help_of("rekord").is_none());
    }
}
