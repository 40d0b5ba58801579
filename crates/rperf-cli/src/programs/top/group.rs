//! The programs that `top` watches together, each asked on a thread of its own; those that match an
//! expression come in by themselves. Used by `top`.

use super::rates::Window;
use crate::Refusal;
use crate::programs::choose::{Choice, Selection, of_left_out};
use crate::programs::words::{of_condition, of_event, of_failure};
use rperf_model::Mode;
use rperf_session::process_id::ProcessId;
use rperf_watch::condition::Condition;
use rperf_watch::failure::AskError;
use rperf_watch::process::State;
use rperf_watch::programs::{family, side_by_side};
use rperf_watch::pull::{News, Pull};
use rperf_watch::sums::{Feed, LockedSums, Purpose, locked};
use std::time::{Duration, Instant};

/// How often programs are looked for; and before there is one.
const SEARCH: Duration = Duration::from_secs(1);
const FIRST_SEARCH: Duration = Duration::from_millis(100);

/// For how long a program that can't be watched isn't tried again.
const LEFT_OUT: Duration = Duration::from_secs(5);

/// Programs at a time.
const MOST: usize = 64;

/// A program with its way into the sums.
pub struct Member {
    /// The program.
    pub program: Pull,
    /// The way into the sums.
    pub feed: Feed,
    /// What of it has not been printed.
    pub window: Window,
    news: Option<Result<News, AskError>>,
    since: Instant,
    has_complained: bool,
}

impl Member {
    /// What came with the last pull.
    pub fn note(&mut self, news: News) {
        self.window.note(&self.feed, news);
    }
}

/// No sums yet.
pub fn empty_sums(shows_idle: bool) -> LockedSums {
    locked(Purpose {
        shows_idle,
        ..Purpose::default()
    })
}

/// No sums yet, for tables. They say themselves what idle threads have had: for them all time is
/// shown, but only that of programs that are there.
pub fn empty_sums_of_tables() -> LockedSums {
    locked(Purpose {
        shows_idle: true,
        forgets_ended: true,
        ..Purpose::default()
    })
}

/// Where programs come from.
enum Source {
    /// The user has named them.
    Named,
    /// Programs that match come in.
    Matching(Selection),
    /// We have started this process: it comes in, and those that it starts.
    Family(i32),
}

/// The programs.
pub struct Group {
    /// The programs that are there.
    pub members: Vec<Member>,
    source: Source,
    /// Processes that couldn't be watched, and when this was tried.
    left_out: Vec<(i32, Instant)>,
    /// Processes whose mode is another one than `mode`, for as long as they are there.
    of_other_modes: Vec<ProcessId>,
    /// The mode of all sessions, once one is watched: wall times and CPU times don't add up.
    mode: Option<Mode>,
    searched: Instant,
    lines: Vec<String>,
    sums: LockedSums,
}

/// A program that can't be watched yet.
pub struct Silent {
    /// What is known of it.
    pub line: String,
    /// A signal has stopped it.
    pub is_stopped: bool,
}

impl Group {
    /// The programs that `choice` names, whose sums come into `sums`.
    pub fn connect(choice: &Choice, sums: &LockedSums) -> Result<Self, Refusal> {
        let source = choice.selection()?;
        let source = source.map_or(Source::Named, Source::Matching);
        let mut group = Self::empty(source, sums);
        let chosen = choice.processes(MOST)?;
        group.lines.extend(chosen.left_out);
        for process in chosen.processes {
            let connected = Pull::connect(process);
            match connected.map_err(|failure| of_failure(process.pid, &failure)) {
                Ok(program) => group.add(program),
                // It may have ended since it was found.
                Err(refusal) if choice.matching.is_some() => group.lines.push(refusal.message),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(group)
    }

    /// Nobody yet: the process `pid`, which we have started, comes in when it has a port, and so do
    /// those that it starts.
    pub fn of_family(pid: i32, sums: &LockedSums) -> Self {
        Self::empty(Source::Family(pid), sums)
    }

    fn empty(source: Source, sums: &LockedSums) -> Self {
        Group {
            members: Vec::new(),
            source,
            left_out: Vec::new(),
            of_other_modes: Vec::new(),
            mode: None,
            searched: Instant::now(),
            lines: Vec::new(),
            sums: LockedSums::clone(sums),
        }
    }

    fn add(&mut self, program: Pull) {
        self.members.push(Member {
            feed: Feed::new(&self.sums, program.pid, &program.hello),
            window: Window::default(),
            program,
            news: None,
            since: Instant::now(),
            has_complained: false,
        });
    }

    /// What the user should know since this was last asked.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Whether one of them is watched, and none of the others has been here for less than `patience`
    /// without being watched.
    pub fn is_ready(&self, patience: Duration) -> bool {
        let mut members = self.members.iter();
        let is_ready = |it: &Member| it.program.is_watched() || it.since.elapsed() >= patience;
        members.clone().any(|it| it.program.is_watched()) && members.all(is_ready)
    }

    /// The programs that haven't been watched, though each has been here for `patience`.
    pub fn silent(&self, patience: Duration) -> Vec<Silent> {
        let members = self.members.iter();
        let late = members.filter(|it| !it.program.is_watched() && it.since.elapsed() >= patience);
        let silent = |it: &Member| {
            let program = &it.program;
            let condition = match (program.state(), program.condition()) {
                (State::Stopped, _) => Condition::Stopped,
                (_, stuck @ Condition::Stuck(_)) => stuck.clone(),
                _ => program.quiet(),
            };
            let name = rperf_report::terminal_text::shown(&program.hello.program);
            Silent {
                line: format!("{} {name} {}", program.pid, of_condition(&condition)),
                is_stopped: condition == Condition::Stopped,
            }
        };
        late.map(silent).collect()
    }

    /// Asks all of them, and looks for others. `take` gets the news of each program. Where no others
    /// can come in, the last one that can't be watched any more, with the reason, is the error.
    pub fn round(
        &mut self,
        wait: Duration,
        take: impl FnMut(&mut Member, News),
    ) -> Result<(), (i32, AskError)> {
        self.ask(wait, |_| true, take)
    }

    /// A round that asks only the programs that aren't watched yet.
    pub fn round_of_new(
        &mut self,
        wait: Duration,
        take: impl FnMut(&mut Member, News),
    ) -> Result<(), (i32, AskError)> {
        self.ask(wait, |program| !program.is_watched(), take)
    }

    fn ask(
        &mut self,
        wait: Duration,
        is_due: impl Fn(&Pull) -> bool + Sync,
        mut take: impl FnMut(&mut Member, News),
    ) -> Result<(), (i32, AskError)> {
        self.search();
        side_by_side(&mut self.members, |member| {
            if is_due(&member.program) {
                member.news = Some(member.program.step(wait, &member.feed));
            }
        });
        let mut ended = Vec::new();
        for mut member in std::mem::take(&mut self.members) {
            let (pid, events) = (member.program.pid, member.program.take_events());
            let lines = events.iter().map(|event| of_event(pid, event));
            self.lines.extend(lines);
            match member.news.take() {
                None => self.members.push(member),
                Some(Ok(news)) => {
                    take(&mut member, news);
                    self.members.push(member);
                }
                Some(Err(error)) => ended.push((pid, error)),
            }
        }
        self.leave_out_other_modes();
        let now = Instant::now();
        let pids = ended.iter().map(|(pid, _)| (*pid, now));
        self.left_out.extend(pids);
        let last = match (&self.source, self.members.is_empty()) {
            (Source::Named, true) => ended.pop(),
            _ => None,
        };
        let is_any = !ended.is_empty();
        for (pid, error) in ended {
            // Whoever has started it sees how it ends.
            if matches!(self.source, Source::Family(first) if first == pid) {
                continue;
            }
            self.lines.push(of_failure(pid, &error.into()).message);
        }
        let waits = matches!(self.source, Source::Matching(_));
        if waits && self.members.is_empty() && is_any {
            self.lines
                .push("no program is left; waiting for one that matches".into());
        }
        last.map_or(Ok(()), Err)
    }

    /// A program that is there alone may change its mode.
    fn leave_out_other_modes(&mut self) {
        let watched = self.members.iter().map(|it| &it.program);
        let watched = watched.filter(|it| it.is_watched());
        let modes: Vec<Mode> = watched.map(|it| it.mode()).collect();
        if !self.mode.is_some_and(|mode| modes.contains(&mode)) {
            self.mode = modes.first().copied();
        }
        let Some(mode) = self.mode else {
            return;
        };
        let is_other = |it: &mut Member| it.program.is_watched() && it.program.mode() != mode;
        for member in self.members.extract_if(.., is_other) {
            let (pid, other) = (member.program.pid, member.program.mode());
            self.lines.push(format!(
                "{pid} is left out: its session is in {other} mode, that of the first program in {mode} mode"
            ));
            self.of_other_modes.extend(ProcessId::present(pid));
        }
    }

    /// Says once of each program that has been here for `patience` that it waits for it.
    pub fn complain(&mut self, patience: Duration) {
        for member in &mut self.members {
            let program = &member.program;
            let is_late = !program.is_watched() && member.since.elapsed() >= patience;
            if !is_late || member.has_complained || program.state() == State::Stopped {
                continue;
            }
            member.has_complained = true;
            let (pid, quiet) = (program.pid, of_condition(&program.quiet()));
            self.lines
                .push(format!("{pid} {quiet}; waiting until Ruby code runs"));
        }
    }

    fn search(&mut self) {
        let interval = match (&self.source, self.members.is_empty()) {
            (Source::Named, _) => return,
            (Source::Family(_), true) => FIRST_SEARCH,
            _ => SEARCH,
        };
        if self.searched.elapsed() < interval || self.members.len() >= MOST {
            return;
        }
        self.left_out
            .retain(|(_, since)| since.elapsed() < LEFT_OUT);
        self.of_other_modes.retain(|it| it.is_alive());
        let left_out = self.left_out.iter().map(|(pid, _)| *pid);
        let left_out = left_out.chain(self.of_other_modes.iter().map(|it| it.pid));
        let known = self.members.iter().map(|it| it.program.pid);
        let known: Vec<_> = known.chain(left_out).collect();
        let (found, first) = match &self.source {
            Source::Named => (Vec::new(), None),
            Source::Matching(selection) => (selection.processes(&known), None),
            Source::Family(first) => (family(*first, &known), Some(*first)),
        };
        let room = MOST.saturating_sub(self.members.len());
        if found.len() > room {
            self.lines.push(of_left_out(found.len() - room, MOST));
        }
        for process in found.into_iter().take(room) {
            let pid = process.pid;
            match Pull::connect(process) {
                Ok(program) => {
                    if first != Some(pid) {
                        let name =
                            rperf_report::terminal_text::shown(&program.hello.program).into_owned();
                        self.lines.push(format!("{pid} {name} comes in"));
                    }
                    self.add(program);
                }
                Err(_) => self.left_out.push((pid, Instant::now())),
            }
        }
        self.searched = Instant::now();
    }
}
