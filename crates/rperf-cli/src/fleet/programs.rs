//! The programs that are there now. On threads of the command's.

use crate::Refusal;
use crate::live::choose::{Found, Pattern, all, side_by_side};
use crate::live::process::{command_line, is_stopped};
use rperf_protocol::hello::Hello;
use std::time::Duration;

/// How long a program may take to say what it is: a port answers without the VM.
const PATIENCE: Duration = Duration::from_millis(1000);

/// Which are meant.
pub struct Programs {
    pattern: Option<Pattern>,
}

/// The programs that are running, and those that don't answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Their processes, and what they call themselves.
    pub programs: Vec<(i32, String)>,
    /// A line about each that doesn't answer.
    pub silent: Vec<String>,
}

struct Asked {
    found: Found,
    is_stopped: bool,
    hello: Option<Hello>,
}

impl Asked {
    fn new(found: Found) -> Self {
        Asked {
            found,
            is_stopped: false,
            hello: None,
        }
    }
}

impl Programs {
    /// Programs whose name matches the expression; all if there is none.
    pub fn matching(expression: Option<&str>) -> Result<Self, Refusal> {
        let pattern = expression.map(Pattern::new).transpose()?;
        Ok(Programs { pattern })
    }

    /// The programs that are running now, without this one.
    pub fn now(&self) -> Present {
        let own = std::process::id() as i32;
        let others = all().into_iter().filter(|it| it.pid != own);
        let mut asked: Vec<_> = others.map(Asked::new).collect();
        side_by_side(&mut asked, |it: &mut Asked| {
            it.is_stopped = is_stopped(it.found.pid);
            if !it.is_stopped {
                it.hello = it.found.client.hello_within(PATIENCE).ok();
            }
        });
        let mut present = Present::default();
        for it in asked {
            let (pid, hello) = (it.found.pid, it.hello);
            match hello {
                Some(hello) if self.are_matched_by(&hello.program) => {
                    present.programs.push((pid, hello.program));
                }
                Some(_) => {}
                None => {
                    let program = command_line(pid);
                    if self.are_matched_by(&program) {
                        let why = match it.is_stopped {
                            true => "was stopped (SIGSTOP)",
                            false => "its port doesn't answer",
                        };
                        present.silent.push(format!("{pid} ({program}): {why}"));
                    }
                }
            }
        }
        present
    }

    fn are_matched_by(&self, program: &str) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(program))
    }
}
