//! Which running programs a command is about: those that the user names by PID, or those of some
//! users whose program, as `rperf ps` shows it, matches an expression. Used by `ps`, `top`, `attach`
//! and what watches a fleet, on the main thread and on others of theirs.

use super::users::UserArgs;
use crate::shared_args::checked::pid;
use crate::{FAILURE, Refusal};
use rperf_model::Order;
use rperf_report::numbers::counted;
use rperf_report::regex;
use rperf_report::terminal_text::shown;
use rperf_session::process_id::ProcessId;
use rperf_watch::failure::Failure;
use rperf_watch::programs::{Found, Listing, all, in_turn};
use rperf_watch::users::Users;

/// The options that name programs.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// The programs' processes
    #[arg(
        value_name = "PID",
        required_unless_present = "matching",
        conflicts_with = "matching",
        value_parser = pid
    )]
    pub pids: Vec<i32>,
    /// All programs that match this regular expression in the last column of 'rperf ps'
    #[arg(long = "match", id = "matching", value_name = "REGEX")]
    pub matching: Option<String>,
    /// Whose programs may match.
    #[command(flatten)]
    pub users: UserArgs,
}

impl Choice {
    /// Programs that match, if there is an expression.
    pub fn selection(&self) -> Result<Option<Selection>, Refusal> {
        if self.matching.is_none() {
            self.users.refuse_with("PIDs")?;
            return Ok(None);
        }
        Selection::of(self.matching.as_deref(), &self.users).map(Some)
    }

    /// The processes that are there now, each once, at most `most`: of more that match, each user's
    /// have their turn. It is an error if there is none, or if more are named.
    pub fn processes(&self, most: usize) -> Result<Chosen, Refusal> {
        let mut processes = match self.selection()? {
            Some(selection) => selection.expect_processes()?,
            None => self.named(most)?,
        };
        let left_out = processes.split_off(processes.len().min(most)).len();
        processes.order_by_key(|it| it.pid);
        Ok(Chosen {
            processes,
            left_out: (left_out > 0).then(|| of_left_out(left_out, most)),
        })
    }

    fn named(&self, most: usize) -> Result<Vec<ProcessId>, Refusal> {
        let mut pids = self.pids.clone();
        pids.sort_unstable();
        pids.dedup();
        if pids.len() > most {
            let message = format!("at most {most} programs at a time");
            return Err(Refusal::usage(message));
        }
        Ok(pids.into_iter().map(ProcessId::named).collect())
    }
}

/// Processes that a command is about.
#[derive(Debug)]
pub struct Chosen {
    /// The processes, in the order of their numbers.
    pub processes: Vec<ProcessId>,
    /// A line about those that match and are too many.
    pub left_out: Option<String>,
}

/// The line about `count` programs beyond the `most` at a time.
pub fn of_left_out(count: usize, most: usize) -> String {
    let programs = counted(count as i64, "more program");
    format!("left out: {programs}; at most {most} at a time")
}

/// Programs of some users, and an expression for them.
#[derive(Debug, Clone)]
pub struct Selection {
    users: Users,
    /// The user of the command has named them.
    are_named: bool,
    pattern: Option<Pattern>,
}

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    regex: regex::Regex,
}

impl Selection {
    /// Programs of these users that match the expression; all of theirs if there is none.
    pub fn of(expression: Option<&str>, users: &UserArgs) -> Result<Self, Refusal> {
        let pattern = expression.map(|text| {
            let regex = regex(text).map_err(|error| Refusal::usage(format!("--match: {error}")))?;
            let text = text.into();
            Ok::<_, Refusal>(Pattern { text, regex })
        });
        Ok(Selection {
            users: users.resolved()?,
            are_named: users.are_given(),
            pattern: pattern.transpose()?,
        })
    }

    /// Whether there is an expression.
    pub fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Whether a program is meant that calls itself so.
    pub fn matches(&self, program: &str) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.regex.is_match(program))
    }

    /// The programs with ports that match and whose process `is_meant`. One that doesn't answer is
    /// matched by its command line.
    pub fn listing(&self, is_meant: impl Fn(i32) -> bool) -> Listing {
        let mut listing = all(&self.users, is_meant);
        listing.programs.retain(|it| self.matches(&it.name()));
        listing
    }

    /// What is said of programs that weren't asked, because they are of users that nobody has named.
    pub fn hint(&self, listing: &Listing) -> Option<String> {
        let shows = "--user NAME or --all-users";
        match listing.of_others {
            _ if self.are_named => None,
            0 => None,
            1 => Some(format!(
                "1 program with a port is another user's: see {shows}"
            )),
            count => Some(format!(
                "{count} programs with a port are other users': see {shows}"
            )),
        }
    }

    /// The processes that match now and are none of `known`, the first of each user, then the second of
    /// each, and so on. Those that don't answer now, but for stopped ones, and our own, are left out.
    pub fn processes(&self, known: &[i32]) -> Vec<ProcessId> {
        let found = self.listing(|pid| pid != own() && !known.contains(&pid));
        let is_meant = |it: &Found| matches!(it.program, Ok(_) | Err(Failure::Stopped));
        let found = in_turn(
            found.programs.into_iter().filter(is_meant).collect(),
            |it| it.uid,
        );
        found.iter().map(|it| it.process).collect()
    }

    /// Also those that don't answer, after all that do: whoever asks them says why. It is an error if
    /// there is none.
    pub fn expect_processes(&self) -> Result<Vec<ProcessId>, Refusal> {
        let listing = self.listing(|pid| pid != own());
        if !listing.programs.is_empty() {
            let mut programs = in_turn(listing.programs, |it| it.uid);
            programs.order_by_key(|it| it.program.is_err());
            return Ok(programs.iter().map(|it| it.process).collect());
        }
        let text = self.pattern.as_ref().map_or("", |it| &it.text);
        let hint = self.hint(&listing);
        let hint = hint.unwrap_or_else(|| "'rperf ps' lists those that have one".into());
        Err(Refusal {
            message: format!("no program with a port matches '{}'; {hint}", shown(text)),
            status: FAILURE,
        })
    }
}

fn own() -> i32 {
    std::process::id() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn choice(words: &[&str]) -> Option<Choice> {
        let command = Choice::augment_args(clap::Command::new("x"));
        let words = std::iter::once(&"x").chain(words);
        let matches = command.try_get_matches_from(words).ok()?;
        Choice::from_arg_matches(&matches).ok()
    }

    fn selection(expression: &str) -> Result<Selection, Refusal> {
        Selection::of(Some(expression), &UserArgs::default())
    }

    #[test]
    fn programs_have_numbers_or_an_expression() {
        let pids = |words: &[&str]| {
            let chosen = choice(words)?.processes(2).ok()?;
            Some(chosen.processes.iter().map(|it| it.pid).collect::<Vec<_>>())
        };
        assert_eq!(pids(&["7", "5", "7"]), Some(vec![5, 7]));
        assert_eq!(pids(&["7", "5", "6"]), None);
        assert!(choice(&["--match", "puma", "--user", "root"]).is_some());
        for words in [
            &[][..],
            &["0"],
            &["puma"],
            &["7", "--match", "puma"],
            &["--match", "puma", "--user", "root", "--all-users"],
        ] {
            assert!(choice(words).is_none(), "{words:?}");
        }
        let named = choice(&["7", "--all-users"]).expect("clap takes it");
        assert_eq!(named.processes(2).expect_err("refused").status, 2);
    }

    #[test]
    fn an_expression_is_looked_for_anywhere_in_the_program() {
        let selected = selection("cluster worker").expect("an expression");
        assert!(selected.matches("puma: cluster worker 0: 4690 [shop]"));
        assert!(!selected.matches("puma 7.1.0 [shop]"));
        let refusal = selection("(").expect_err("refused");
        assert_eq!(refusal.status, 2);
        assert!(refusal.message.starts_with("--match: '(' is no valid"));
        let none = selection("^no such program $").expect("an expression");
        let refusal = none.expect_processes().expect_err("none");
        assert_eq!(refusal.status, 1);
    }
}
