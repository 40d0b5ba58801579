//! `rperf top`: where the time of running programs goes, interval by interval. Called by `run`, on
//! the main thread.

mod askings;
mod group;
mod launched;
mod memory_facts;
mod options;
mod page;
mod rates;
mod screens;
mod short_paths;
mod thread_facts;

use super::words::of_failure;
use crate::report::screen::Screen;
use crate::{FAILURE, Installation, Refusal, say};
use group::{Group, Silent, empty_sums_of_tables};
use launched::Launched;
pub use options::TopArgs;
use options::{REST, SILENCE, Subject};
use page::{Page, table_of_several};
use rates::Interval;
use rperf_watch::failure::AskError;
use rperf_watch::patience::AGAIN;
use rperf_watch::sums::{LockedSums, lock};
use short_paths::shorten;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the port may wait for the VM: a busy thread may have to end its time slice.
const WAIT: Duration = Duration::from_secs(1);

/// How often it is looked whether the program has ended that we have started.
const NAP: Duration = Duration::from_millis(50);

/// Shows the screens, or prints the tables. Returns the exit status.
pub fn run(args: &TopArgs, installation: &Installation) -> Result<i32, Refusal> {
    let wants_tables = args.once || args.json || args.count.is_some();
    let has_screens = !wants_tables && screens::are_possible();
    let choice = match args.subject()? {
        Subject::Files(files) if has_screens => return screens::look_at(args, &files),
        Subject::Files(_) => {
            let message =
                "saved profiles are shown on a terminal only: 'rperf report --top' prints a table";
            return Err(Refusal::usage(message));
        }
        Subject::Command(words) => {
            let launched = Launched::start(&words, installation.library()?, has_screens)?;
            let was_seen = match has_screens {
                true => screens::run_launched(args, &launched),
                false => print_launched(args, &launched),
            };
            // What nobody has waited for may still come.
            let runs_on = !launched.has_ended();
            return launched.finish(was_seen || runs_on);
        }
        Subject::Programs(choice) if has_screens => return screens::run(args, &choice),
        Subject::Programs(choice) => choice,
    };
    let sums = empty_sums_of_tables();
    let group = Group::connect(&choice, &sums)?;
    let mut tables = Tables::new(args, group, sums, None);
    let end = tables.follow();
    tables.say_lines();
    match end {
        Ok(()) => Ok(0),
        // What it was asked for is printed already: that the program ends isn't its failure.
        Err(End::Asking(pid, error @ AskError::Closed)) if tables.printed > 0 => {
            say(&of_failure(pid, &error.into()).message);
            Ok(0)
        }
        Err(End::Asking(pid, error)) => Err(of_failure(pid, &error.into())),
        Err(End::Silent(lines)) => Err(Refusal {
            message: format!("{lines}: so there are no rows"),
            status: FAILURE,
        }),
        Err(End::Printing(error)) => Err(Refusal {
            message: format!("can't write to stdout: {error}"),
            status: FAILURE,
        }),
    }
}

/// Prints tables of the program that was started. Returns whether it was seen.
fn print_launched(args: &TopArgs, launched: &Launched) -> bool {
    let sums = empty_sums_of_tables();
    let group = Group::of_family(launched.pid, &sums);
    let mut tables = Tables::new(args, group, sums, Some(launched));
    let end = tables.follow();
    tables.say_lines();
    match end {
        Err(End::Silent(lines)) => say(&format!("{lines}: so there are no rows")),
        Err(End::Printing(error)) => say(&format!("can't write to stdout: {error}")),
        _ if tables.was_seen && tables.printed == 0 => say(
            "the program ended before the first table: --interval 0.1 has one sooner, and rperf record all \
             of its time",
        ),
        _ => {}
    }
    tables.was_seen
}

/// Why it ends before there are enough tables.
enum End {
    /// The last program can't be watched any more.
    Asking(i32, AskError),
    /// Nothing runs, and rows were asked for: what is known of each program.
    Silent(String),
    /// Nothing can be printed.
    Printing(io::Error),
}

/// The tables that are printed.
struct Tables<'a> {
    args: &'a TopArgs,
    group: Group,
    sums: LockedSums,
    printed: u64,
    /// The program, if we have started it.
    launched: Option<&'a Launched>,
    /// There was a program.
    was_seen: bool,
}

impl<'a> Tables<'a> {
    fn new(
        args: &'a TopArgs,
        group: Group,
        sums: LockedSums,
        launched: Option<&'a Launched>,
    ) -> Self {
        Tables {
            args,
            group,
            sums,
            printed: 0,
            launched,
            was_seen: false,
        }
    }

    fn is_over(&self) -> bool {
        self.launched.is_some_and(Launched::has_ended)
    }

    /// Prints until there are enough tables, or nobody reads them.
    fn follow(&mut self) -> Result<(), End> {
        loop {
            let round = self
                .group
                .round_of_new(WAIT, |member, news| member.note(news));
            // The one table says it itself.
            if !self.args.once {
                self.group.complain(SILENCE);
            }
            self.say_lines();
            round.map_err(|(pid, error)| End::Asking(pid, error))?;
            self.was_seen |= !self.group.members.is_empty();
            if self.is_over() {
                return Ok(());
            }
            if self.group.is_ready(SILENCE) {
                break;
            }
            // A program that only waits lets no session begin.
            if self.args.once {
                let silent = self.group.silent(SILENCE + self.args.interval);
                if !silent.is_empty() && silent.len() == self.group.members.len() {
                    return self.print_silent(&silent);
                }
            }
            sleep(AGAIN);
        }
        if self.args.once {
            for it in self.group.silent(SILENCE) {
                say(&format!("{}: so it has no rows", it.line));
            }
        }
        // What came before isn't shown.
        self.take_intervals();
        let mut next = Instant::now();
        loop {
            next = (next + self.args.interval).max(Instant::now());
            if !self.rest_until(next)? {
                return Ok(());
            }
            let intervals = self.take_intervals();
            if intervals.is_empty() {
                continue;
            }
            let is_read = self.print(&intervals).map_err(End::Printing)?;
            if !is_read || self.is_enough() {
                return Ok(());
            }
        }
    }

    /// Prints that no Ruby code runs.
    fn print_silent(&mut self, silent: &[Silent]) -> Result<(), End> {
        let lines: Vec<_> = silent.iter().map(|it| &*it.line).collect();
        if self.args.json {
            return Err(End::Silent(lines.join("; ")));
        }
        let hint = match silent.iter().any(|it| it.is_stopped) {
            true => ".",
            false => ": 'rperf stacks' shows where threads are.",
        };
        let text = Screen::stdout(false).wrapped(&format!(
            "{}\n\nNo Ruby code runs, so there are no rows{hint}\n",
            lines.join("\n")
        ));
        self.write(&text).map(|_| ()).map_err(End::Printing)
    }

    /// Returns whether it goes on.
    fn rest_until(&mut self, next: Instant) -> Result<bool, End> {
        let nap = self.launched.map_or(REST, |_| NAP);
        let mut asked = Instant::now();
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            sleep(rest.min(nap));
            if self.is_over() {
                return Ok(false);
            }
            if rest <= nap || asked.elapsed() >= REST {
                self.round()?;
                asked = Instant::now();
            }
            if rest <= nap {
                return Ok(true);
            }
        }
    }

    fn round(&mut self) -> Result<(), End> {
        let round = self.group.round(WAIT, |member, news| member.note(news));
        self.say_lines();
        round.map_err(|(pid, error)| End::Asking(pid, error))
    }

    fn say_lines(&mut self) {
        for line in self.group.take_lines() {
            say(&line);
        }
    }

    /// The place and the interval of each program of which something is known.
    fn take_intervals(&mut self) -> Vec<(usize, Interval)> {
        shorten(&mut lock(&self.sums), &self.args.paths.view());
        let members = self.group.members.iter_mut().enumerate();
        let known = members.filter_map(|(place, member)| {
            let facts = &member.program.facts;
            let interval = member.window.take_interval(&member.feed, facts)?;
            Some((place, interval))
        });
        known.collect()
    }

    /// Returns whether somebody still reads.
    fn print(&mut self, intervals: &[(usize, Interval)]) -> io::Result<bool> {
        let page = |(place, interval): (usize, _)| {
            let program = &self.group.members[place].program;
            Page {
                pid: program.pid,
                program: &program.hello.program,
                facts: &program.facts,
                interval,
                shows_idle: self.args.idle,
                stuck: program.stuck(),
            }
        };
        let pages = intervals.iter().map(|(place, interval)| (*place, interval));
        let pages: Vec<_> = pages.map(page).collect();
        let (screen, follows) = (Screen::stdout(false), self.printed > 0);
        let text = match &*pages {
            pages if self.args.json => {
                let lines = pages.iter().map(|page| format!("{}\n", page.to_json()));
                lines.collect()
            }
            [page] => page.table(&screen, follows),
            pages => {
                let all = Interval::rates(pages.iter().map(|page| page.interval));
                table_of_several(pages, &all, &screen, follows)
            }
        };
        self.write(&text)
    }

    /// Returns whether somebody still reads.
    fn write(&mut self, page: &str) -> io::Result<bool> {
        self.printed += 1;
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(page.as_bytes());
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn is_enough(&self) -> bool {
        let wanted = if self.args.once {
            Some(1)
        } else {
            self.args.count
        };
        wanted.is_some_and(|wanted| self.printed >= wanted)
    }
}
