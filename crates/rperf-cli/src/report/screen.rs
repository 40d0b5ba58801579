//! Where a page goes: a terminal with its width, colours and pager, or a file or pipe
//! that takes it as it is. Used by all that prints pages; it alone knows the terminal's width.

pub use rperf_format::shorten::columns;
pub use rperf_format::table::Style;

use crate::signals::Actions;
use crate::{NOT_EXECUTABLE, NOT_FOUND};
use rperf_format::shorten::{LEAST, cut, shortened};
use rperf_format::table::{Name, Surface, Table, wrapped};
use rustix::termios::tcgetwinsize;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// What a stream is, as far as pages care.
#[derive(Debug, Clone, Copy, Default)]
pub struct Screen {
    /// Columns of the terminal; `None`: nothing is cut.
    width: Option<usize>,
    /// Its rows, if they are known.
    height: Option<usize>,
    colour: bool,
    pager: bool,
}

/// The code of a style.
fn code(style: Style) -> &'static str {
    match style {
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Hot => "1;31",
        Style::Warm => "33",
        Style::Good => "32",
    }
}

impl Screen {
    /// A terminal of this width.
    #[cfg(test)]
    pub fn of_width(width: usize) -> Self {
        Self {
            width: Some(width),
            ..Self::default()
        }
    }

    /// Stdout as it is.
    pub fn stdout(may_page: bool) -> Self {
        let is_plain = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let stdout = Self::of(&io::stdout());
        let is_terminal = io::stdout().is_terminal();
        Self {
            colour: is_terminal && !is_plain("NO_COLOR") && !is_dumb,
            pager: is_terminal && may_page && !is_dumb,
            ..stdout
        }
    }

    /// Stderr as it is, without colours.
    pub fn stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl AsFd + IsTerminal)) -> Self {
        if !stream.is_terminal() {
            return Self::default();
        }
        // One of the two may be known alone.
        let size = tcgetwinsize(stream).map(|size| (size.ws_col, size.ws_row));
        let (width, height) = size.unwrap_or_default();
        Self {
            width: width_of(env::var("COLUMNS").ok().as_deref(), width),
            height: Some(height.into()).filter(|height| *height > 0),
            ..Self::default()
        }
    }

    /// Columns of the terminal; `None` for files and pipes, and where they aren't known.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Lines of the terminal; `None` for files and pipes, and where they aren't known.
    pub fn height(&self) -> Option<usize> {
        self.height
    }

    /// The lines of a table.
    pub fn table(&self, table: &Table) -> String {
        table.render(Surface {
            width: self.width,
            styled: &|style, text| self.styled(style, text),
        })
    }

    /// `text` in lines that fit, parted between words. Each goes on two columns further in.
    pub fn wrapped(&self, text: &str) -> String {
        match self.width {
            Some(width) => wrapped(text, width, "  "),
            None => text.to_string(),
        }
    }

    /// A name with its path, as `name (path)`, in what is left of a line after `used` columns.
    pub fn named(&self, name: &str, path: &str, used: usize) -> String {
        let name = Name {
            name,
            detail: path,
            ..Name::default()
        };
        let (name, path) = name.fitted(self.room(used));
        name + &path
    }

    /// `text` in this style, where there are colours.
    pub fn styled(&self, style: Option<Style>, text: &str) -> String {
        match style {
            Some(style) if self.colour => format!("\x1b[{}m{text}\x1b[0m", code(style)),
            _ => text.to_string(),
        }
    }

    /// `text` without its end, in what is left of a line after `used` columns. A few columns stay
    /// even on the narrowest terminal.
    pub fn fitted(&self, text: &str, used: usize) -> String {
        match self.room(used) {
            Some(room) => cut(text, room).into_owned(),
            None => text.to_string(),
        }
    }

    /// A name or path without its middle, in what is left of a line after `used` columns.
    pub fn fitted_name(&self, text: &str, used: usize) -> String {
        match self.room(used) {
            Some(room) => shortened(text, room).into_owned(),
            None => text.to_string(),
        }
    }

    fn room(&self, used: usize) -> Option<usize> {
        let width = self.width?;
        Some(width.saturating_sub(used).max(LEAST))
    }

    /// Prints a page, through a pager if it is longer than the terminal. That somebody
    /// has closed stdout, or the pager, is no error.
    pub fn print(&self, page: &str) -> io::Result<()> {
        let is_long = self
            .height
            .is_some_and(|height| page.lines().count() >= height);
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

/// The width of a terminal for which the system says `columns`. As with other programs, COLUMNS has
/// the last word; 0 says that nobody knows.
fn width_of(wanted: Option<&str>, columns: u16) -> Option<usize> {
    let wanted = wanted.and_then(|it| it.trim().parse().ok());
    let width = wanted.filter(|width| *width > 0).unwrap_or(columns.into());
    (width > 0).then_some(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_the_width_of_terminals_only() {
        let narrow = Screen::of_width(40);
        assert_eq!(narrow.fitted(&"a".repeat(30), 10), "a".repeat(30));
        assert_eq!(narrow.fitted(&"a".repeat(31), 10), "a".repeat(29) + "…");
        assert_eq!(narrow.fitted(&"計".repeat(16), 10), "計".repeat(14) + "…");
        assert_eq!(narrow.fitted(&"a".repeat(31), 39), "a".repeat(15) + "…");
        let path = format!("gems/{}計/a.rb:7", "b".repeat(30));
        assert_eq!(narrow.fitted_name(&path, 18), "gems/bbbbbb…b計/a.rb:7");
        assert_eq!(narrow.named("Order#total", "order.rb", 30), "Order#total …");
        let file = Screen::default();
        assert_eq!(file.fitted(&"a".repeat(99), 90), "a".repeat(99));
        assert_eq!(file.fitted_name(&path, 90), path);
        assert_eq!(file.named("a", &path, 90), format!("a ({path})"));
    }

    #[test]
    fn the_width_is_the_terminals_unless_columns_says_another() {
        assert_eq!(width_of(None, 80), Some(80));
        assert_eq!(width_of(None, 0), None);
        assert_eq!(width_of(Some("120"), 80), Some(120));
        assert_eq!(width_of(Some("120"), 0), Some(120));
        for wrong in ["", "0", "-1", "wide"] {
            assert_eq!(width_of(Some(wrong), 80), Some(80), "{wrong}");
        }
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
