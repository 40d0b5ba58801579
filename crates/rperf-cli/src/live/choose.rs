//! Which running programs a command is about: those that the user names by PID, or those whose
//! program, as `rperf ps` shows it, matches an expression. Used by `ps`, `top` and `attach`, on
//! the main thread and on those of `top`.

use crate::checked::pid;
use crate::{FAILURE, Refusal};
use rperf_report::regex;
use rperf_watch::failure::Failure;
use rperf_watch::programs::{Found, all};

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
}

impl Choice {
    /// The expression, if there is one.
    pub fn pattern(&self) -> Result<Option<Pattern>, Refusal> {
        self.matching.as_deref().map(Pattern::new).transpose()
    }

    /// The processes that are there now, each once. It is an error if there is none.
    pub fn processes(&self) -> Result<Vec<i32>, Refusal> {
        let mut pids = match self.pattern()? {
            Some(pattern) => pattern.expect_processes()?,
            None => self.pids.clone(),
        };
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }
}

/// An expression for programs.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: regex::Regex,
}

impl Pattern {
    /// The expression that the user has given.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let regex = regex(text).map_err(|error| Refusal::usage(format!("--match: {error}")))?;
        Ok(Pattern {
            text: text.into(),
            regex,
        })
    }

    /// Whether a program is meant that calls itself so.
    pub fn matches(&self, program: &str) -> bool {
        self.regex.is_match(program)
    }

    /// The processes with ports that match now and are none of `known`; those that don't answer
    /// now, but for stopped ones, and our own, are left out.
    pub fn processes(&self, known: &[i32]) -> Vec<i32> {
        self.matching(known, |it| {
            matches!(it.program, Ok(_) | Err(Failure::Stopped))
        })
    }

    /// The processes that match and for which `is_meant` is true. One that doesn't answer is
    /// matched by its command line.
    fn matching(&self, known: &[i32], is_meant: impl Fn(&Found) -> bool) -> Vec<i32> {
        let own = std::process::id() as i32;
        let mut found = all(|pid| pid != own && !known.contains(&pid));
        found.retain(|it| is_meant(it) && self.matches(&it.name()));
        found.iter().map(|it| it.pid).collect()
    }

    /// Also those that don't answer: whoever asks them says why. It is an error if there is none.
    pub fn expect_processes(&self) -> Result<Vec<i32>, Refusal> {
        let found = self.matching(&[], |_| true);
        if !found.is_empty() {
            return Ok(found);
        }
        let text = rperf_report::terminal_text::shown(&self.text);
        Err(Refusal {
            message: format!(
                "no program with a port matches '{text}'; 'rperf ps' lists those that have one"
            ),
            status: FAILURE,
        })
    }
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

    #[test]
    fn programs_have_numbers_or_an_expression() {
        let pids = |words: &[&str]| choice(words)?.processes().ok();
        assert_eq!(pids(&["7", "5", "7"]), Some(vec![5, 7]));
        assert!(choice(&["--match", "puma"]).is_some());
        for words in [&[][..], &["0"], &["puma"], &["7", "--match", "puma"]] {
            assert!(choice(words).is_none(), "{words:?}");
        }
    }

    #[test]
    fn an_expression_is_looked_for_anywhere_in_the_program() {
        let pattern = Pattern::new("cluster worker").expect("an expression");
        assert!(pattern.matches("puma: cluster worker 0: 4690 [shop]"));
        assert!(!pattern.matches("puma 7.1.0 [shop]"));
        let refusal = Pattern::new("(").expect_err("refused");
        assert_eq!(refusal.status, 2);
        assert!(refusal.message.starts_with("--match: '(' is no valid"));
        let none = Pattern::new("^no such program $").expect("an expression");
        let refusal = none.expect_processes().expect_err("none");
        assert_eq!(refusal.status, 1);
    }
}
