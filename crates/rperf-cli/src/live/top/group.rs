//! The programs that `top` watches together, each asked on a thread of its own; those that match an
//! expression come in by themselves. Used by `top`.

use super::watched::{News, Take, Watched};
use crate::Refusal;
use crate::live::choose::{Choice, Pattern, side_by_side};
use crate::live::process;
use rperf_live::client::AskError;
use rperf_session::process_id::ProcessId;
use std::time::{Duration, Instant};

/// How often programs are looked for.
const SEARCH: Duration = Duration::from_secs(1);

/// For how long a program that can't be watched isn't tried again.
const LEFT_OUT: Duration = Duration::from_secs(5);

/// Programs at a time.
const MOST: usize = 64;

/// A program with what takes its sums.
pub struct Member<T> {
    /// The program.
    pub program: Watched,
    /// What it is watched with.
    pub sums: T,
    news: Option<Result<News, AskError>>,
    since: Instant,
    has_complained: bool,
}

/// The programs.
pub struct Group<T> {
    /// Those that are there.
    pub members: Vec<Member<T>>,
    pattern: Option<Pattern>,
    /// Those that couldn't be watched, and when they were tried.
    left_out: Vec<(i32, Instant)>,
    /// Those whose mode is another one than `mode`, for as long as they are there.
    of_other_modes: Vec<ProcessId>,
    /// The mode of all sessions, once one is watched: wall times and CPU times don't add up.
    mode: Option<String>,
    searched: Instant,
    lines: Vec<String>,
    make: Box<dyn FnMut(&Watched) -> T + Send>,
}

impl<T: Take + Send> Group<T> {
    /// Those of the choice, whose sums are taken in by what `make` makes.
    pub fn connect(
        choice: &Choice,
        make: impl FnMut(&Watched) -> T + Send + 'static,
    ) -> Result<Self, Refusal> {
        let mut group = Group {
            members: Vec::new(),
            pattern: choice.pattern()?,
            left_out: Vec::new(),
            of_other_modes: Vec::new(),
            mode: None,
            searched: Instant::now(),
            lines: Vec::new(),
            make: Box::new(make),
        };
        let pids = choice.processes()?;
        if pids.len() > MOST {
            let message = format!("at most {MOST} programs can be watched at a time");
            return Err(Refusal::usage(message));
        }
        for pid in pids {
            match Watched::connect(pid) {
                Ok(program) => group.add(program),
                // It may have ended since it was found.
                Err(refusal) if group.pattern.is_some() => group.lines.push(refusal.message),
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(group)
    }

    fn add(&mut self, program: Watched) {
        self.members.push(Member {
            sums: (self.make)(&program),
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
        let is_ready = |it: &Member<T>| it.program.is_watched() || it.since.elapsed() >= patience;
        members.clone().any(|it| it.program.is_watched()) && members.all(is_ready)
    }

    /// Asks all of them, and looks for others. `take` gets the news of each program. Where no others
    /// can come in, the last one that can't be watched any more, with the reason, is the error.
    pub fn round(
        &mut self,
        wait: Duration,
        take: impl FnMut(&mut Member<T>, News),
    ) -> Result<(), (i32, AskError)> {
        self.ask(wait, |_| true, take)
    }

    /// The same, but only those are asked that aren't watched yet.
    pub fn round_of_new(
        &mut self,
        wait: Duration,
        take: impl FnMut(&mut Member<T>, News),
    ) -> Result<(), (i32, AskError)> {
        self.ask(wait, |program| !program.is_watched(), take)
    }

    fn ask(
        &mut self,
        wait: Duration,
        is_due: impl Fn(&Watched) -> bool + Sync,
        mut take: impl FnMut(&mut Member<T>, News),
    ) -> Result<(), (i32, AskError)> {
        self.search();
        side_by_side(&mut self.members, |member| {
            if is_due(&member.program) {
                member.news = Some(member.program.step(wait, &mut member.sums));
            }
        });
        let mut ended = Vec::new();
        for mut member in std::mem::take(&mut self.members) {
            self.lines.extend(member.program.take_lines());
            match member.news.take() {
                None => self.members.push(member),
                Some(Ok(news)) => {
                    take(&mut member, news);
                    self.members.push(member);
                }
                Some(Err(error)) => ended.push((member.program.pid, error)),
            }
        }
        self.leave_out_other_modes();
        let now = Instant::now();
        let pids = ended.iter().map(|(pid, _)| (*pid, now));
        self.left_out.extend(pids);
        let last = match self.members.is_empty() && self.pattern.is_none() {
            true => ended.pop(),
            false => None,
        };
        for (pid, error) in &ended {
            self.lines.push(process::failed(*pid, error).message);
        }
        if self.members.is_empty() && !ended.is_empty() {
            self.lines
                .push("no program is left; waiting for one that matches".into());
        }
        last.map_or(Ok(()), Err)
    }

    /// A program that is there alone may change its mode.
    fn leave_out_other_modes(&mut self) {
        let mode_of = |it: &Member<T>| {
            it.program
                .is_watched()
                .then(|| it.program.mode().to_string())
        };
        let modes: Vec<_> = self.members.iter().map(mode_of).collect();
        let is_kept = self.mode.is_some()
            && modes
                .iter()
                .flatten()
                .any(|it| Some(it) == self.mode.as_ref());
        if !is_kept {
            self.mode = modes.iter().flatten().next().cloned();
        }
        let Some(mode) = self.mode.clone() else {
            return;
        };
        let is_other = |it: &mut Member<T>| it.program.is_watched() && it.program.mode() != mode;
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
            let is_late = !member.program.is_watched() && member.since.elapsed() >= patience;
            if is_late && !std::mem::replace(&mut member.has_complained, true) {
                self.lines.push(format!(
                    "{} runs no Ruby code just now; waiting until it does",
                    member.program.pid
                ));
            }
        }
    }

    fn search(&mut self) {
        let Some(pattern) = &self.pattern else { return };
        if self.searched.elapsed() < SEARCH || self.members.len() >= MOST {
            return;
        }
        self.left_out
            .retain(|(_, since)| since.elapsed() < LEFT_OUT);
        self.of_other_modes.retain(|it| it.is_alive());
        let left_out = self.left_out.iter().map(|(pid, _)| *pid);
        let left_out = left_out.chain(self.of_other_modes.iter().map(|it| it.pid));
        let known = self.members.iter().map(|it| it.program.pid);
        let known: Vec<_> = known.chain(left_out).collect();
        for pid in pattern.processes(&known) {
            match Watched::connect(pid) {
                Ok(program) => {
                    let name = rperf_live::shown(&program.hello.program).into_owned();
                    self.lines.push(format!("{pid} {name} comes in"));
                    self.add(program);
                }
                Err(_) => self.left_out.push((pid, Instant::now())),
            }
        }
        self.searched = Instant::now();
    }
}
