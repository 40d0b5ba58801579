//! Where a page goes: a terminal with its width, colours and pager, or a file or pipe
//! that takes it as it is. Used by `rperf report`, `rperf diff` and
//! `rperf help`.

use crate::signals::Actions;
use crate::{NOT_EXECUTABLE, NOT_FOUND};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use terminal_size::{Height, Width};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stdout is, as far as pages care.
#[derive(Debug, Clone, Copy, Default)]
pub struct Screen {
    /// Columns and rows of the terminal; `None` for files and pipes.
    size: Option<(usize, usize)>,
    colour: bool,
    pager: bool,
}

/// A colour or weight of text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Headings.
    Bold,
    /// What matters less: paths.
    Dim,
    /// What has most of the time; something that got slower.
    Hot,
    /// What has much of it.
    Warm,
    /// Something that got faster.
    Good,
}

impl Style {
    /// The style for a row with this share of all, in percent.
    pub fn of_share(percent: f64) -> Option<Self> {
        match percent.abs() {
            share if share >= 20.0 => Some(Style::Hot),
            share if share >= 5.0 => Some(Style::Warm),
            _ => None,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Hot => "1;31",
            Style::Warm => "33",
            Style::Good => "32",
        }
    }
}

impl Screen {
    /// A terminal of this width.
    #[cfg(test)]
    pub fn of_width(width: usize) -> Self {
        Self {
            size: Some((width, 24)),
            ..Self::default()
        }
    }

    /// Stdout as it is.
    pub fn stdout(may_page: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = terminal_size::terminal_size_of(io::stdout());
        let plain = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            size: size
                .filter(|_| is_terminal)
                .map(|(Width(width), Height(height))| (width.into(), height.into()))
                .filter(|(width, _)| *width > 0),
            colour: is_terminal && !plain("NO_COLOR") && !is_dumb,
            pager: is_terminal && may_page && !is_dumb,
        }
    }

    /// Columns of the terminal; `None` for files and pipes.
    pub fn width(&self) -> Option<usize> {
        self.size.map(|(width, _)| width)
    }

    /// Lines of the terminal; `None` for files and pipes.
    pub fn height(&self) -> Option<usize> {
        self.size.map(|(_, height)| height)
    }

    /// `text` in this style, where there are colours.
    pub fn styled(&self, style: Option<Style>, text: &str) -> String {
        match style {
            Some(style) if self.colour => format!("\x1b[{}m{text}\x1b[0m", style.code()),
            _ => text.to_string(),
        }
    }

    /// `text` cut to what is left of a line after `used` columns. Names keep a few
    /// columns even on the narrowest terminal.
    pub fn fitted(&self, text: &str, used: usize) -> String {
        match self.too_little_room(text, used) {
            None => text.to_string(),
            Some(room) => as_fit(text.chars(), room).chain(['…']).collect(),
        }
    }

    /// The same of a path, whose end says more than its beginning.
    pub fn fitted_path(&self, text: &str, used: usize) -> String {
        match self.too_little_room(text, used) {
            None => text.to_string(),
            Some(room) => {
                let mut cut: Vec<_> = as_fit(text.chars().rev(), room).chain(['…']).collect();
                cut.reverse();
                cut.into_iter().collect()
            }
        }
    }

    /// The room that there is for `text`, if it's too little.
    fn too_little_room(&self, text: &str, used: usize) -> Option<usize> {
        const LEAST: usize = 20;
        let (width, _) = self.size?;
        let room = width.saturating_sub(used).max(LEAST);
        (text.width() > room).then_some(room)
    }

    /// Prints a page, through a pager if it is longer than the terminal. That somebody
    /// has closed stdout, or the pager, is no error.
    pub fn print(&self, page: &str) -> io::Result<()> {
        let is_long = self
            .size
            .is_some_and(|(_, height)| page.lines().count() >= height);
        if self.pager && is_long && self.page(page) {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout
            .write_all(page.as_bytes())
            .and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether a pager has taken the page.
    fn page(&self, page: &str) -> bool {
        let Some(mut command) = pager(env::var_os("PAGER").as_deref()) else {
            return false;
        };
        // What `less` needs to pass colours on, if it is the user's own choice.
        if env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let _signals = Actions::leave_keys_to_others();
        let Ok(mut child) = command.stdin(Stdio::piped()).spawn() else {
            return false;
        };
        if let Some(mut stdin) = child.stdin.take() {
            // Who has read enough quits.
            let _ = stdin.write_all(page.as_bytes());
        }
        // What the shell says of a command that can't be run, or isn't there.
        let failures = [Some(NOT_EXECUTABLE), Some(NOT_FOUND)];
        child
            .wait()
            .is_ok_and(|status| !failures.contains(&status.code()))
    }
}

/// The command that pages: the user's own, or else `less`. `None` if pages are to be printed as
/// they are, which an empty name means to other programs, too.
fn pager(own: Option<&OsStr>) -> Option<Command> {
    let Some(own) = own else {
        let mut less = Command::new("less");
        less.arg("-FRX");
        return Some(less);
    };
    if own.as_encoded_bytes().trim_ascii().is_empty() || own == "cat" {
        return None;
    }
    // The terminal's keys must not end the shell that waits for the pager. The pager itself gets
    // the default actions.
    let mut script = OsString::from("trap : INT QUIT\n");
    script.push(own);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script);
    Some(shell)
}

/// As many of the characters as leave room for one more.
fn as_fit(characters: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    let mut columns = 1;
    characters.take_while(move |character| {
        columns += character.width().unwrap_or(0);
        columns <= room
    })
}

/// How many columns `text` takes.
pub fn columns(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_the_width_of_terminals_only() {
        let narrow = Screen {
            size: Some((40, 10)),
            ..Screen::default()
        };
        assert_eq!(narrow.fitted(&"a".repeat(30), 10), "a".repeat(30));
        assert_eq!(narrow.fitted(&"a".repeat(31), 10), "a".repeat(29) + "…");
        assert_eq!(narrow.fitted(&"計".repeat(16), 10), "計".repeat(14) + "…");
        assert_eq!(narrow.fitted(&"a".repeat(31), 39), "a".repeat(19) + "…");
        assert_eq!(narrow.fitted_path("/gems/a.rb:7", 10), "/gems/a.rb:7");
        let long = format!("{}計/a.rb:7", "b".repeat(30));
        assert_eq!(
            narrow.fitted_path(&long, 18),
            format!("…{}計/a.rb:7", "b".repeat(12))
        );
        let file = Screen::default();
        assert_eq!(file.fitted(&"a".repeat(99), 90), "a".repeat(99));
    }

    #[test]
    fn an_empty_pager_is_none() {
        let words = |own: Option<&str>| {
            let command = pager(own.map(OsStr::new))?;
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            Some(words.map(|it| it.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(words(None), Some(vec!["less".into(), "-FRX".into()]));
        for own in ["", " ", "cat"] {
            assert_eq!(words(Some(own)), None, "{own:?}");
        }
        let own = words(Some("more -s")).expect("a command");
        assert_eq!(own, ["sh", "-c", "trap : INT QUIT\nmore -s"]);
    }

    #[test]
    fn colours_are_for_terminals() {
        let text = |colour| {
            let screen = Screen {
                colour,
                ..Screen::default()
            };
            screen.styled(Style::of_share(50.0), "x")
        };
        assert_eq!(text(true), "\x1b[1;31mx\x1b[0m");
        assert_eq!(text(false), "x");
        assert_eq!(Style::of_share(-6.0), Some(Style::Warm));
        assert_eq!(Style::of_share(1.0), None);
    }
}
