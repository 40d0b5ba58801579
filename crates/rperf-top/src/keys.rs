//! What keys do. Pure: what needs the sums or the terminal is left to the caller.

use crate::app::{App, Input, Screen};
use crate::line::What;
use crate::lines::Opening;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// The user has seen enough.
    Quit,
    /// The shell gets the terminal.
    Suspend,
    /// The terminal is drawn anew.
    Redraw,
    /// The time since now is looked at.
    Mark,
    /// The picture stops, or goes on.
    StopOrGoOn,
    /// What is shown is written to this file.
    Write(String),
}

impl App {
    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Act {
        self.message = None;
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if with_control => return Act::Quit,
            KeyCode::Char('z') if with_control => return Act::Suspend,
            KeyCode::Char('l') if with_control => return Act::Redraw,
            _ if with_control => return Act::Nothing,
            _ => {}
        }
        if let Some(input) = self.input.take() {
            return self.type_key(input, key.code);
        }
        if std::mem::take(&mut self.shows_help) && key.code != KeyCode::Char('q') {
            return Act::Nothing;
        }
        self.command(key.code)
    }

    fn command(&mut self, code: KeyCode) -> Act {
        let (cursor, page) = (self.place().cursor, self.table.page());
        match code {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('p' | 'm') if self.is_saved => {
                self.message = Some(
                    "this is a saved profile: nothing comes that could be marked or stopped".into(),
                );
            }
            KeyCode::Char('p') => return Act::StopOrGoOn,
            KeyCode::Char('m') => return Act::Mark,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.shows_help = true,
            KeyCode::Char(digit @ '1'..='5') => {
                self.show(Screen::ALL[digit as usize - '1' as usize]);
            }
            KeyCode::Tab => self.show_next(1),
            KeyCode::BackTab => self.show_next(Screen::ALL.len() - 1),
            KeyCode::Up | KeyCode::Char('k') => self.go_to(cursor.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.go_to(cursor + 1),
            KeyCode::PageUp => self.go_to(cursor.saturating_sub(page)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.go_to(cursor + page),
            KeyCode::Home => self.go_to(0),
            KeyCode::End => self.go_to(usize::MAX - 1),
            KeyCode::Char('t') => {
                self.asked.scope_by_next(self.is_saved);
                self.renew();
            }
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('g') => {
                self.asked.by_process = !self.asked.by_process;
                self.renew();
            }
            KeyCode::Char('/') => self.input = Some(Input::Search(self.asked.search.clone())),
            KeyCode::Char('w') => self.input = Some(Input::File(String::new())),
            KeyCode::Esc => {
                self.asked.forget();
                self.renew();
            }
            code => self.on_line(code),
        }
        Act::Nothing
    }

    /// The screen that is so many further on.
    fn show_next(&mut self, steps: usize) {
        self.show(Screen::ALL[(self.screen as usize + steps) % Screen::ALL.len()]);
    }

    fn show(&mut self, screen: Screen) {
        self.screen = screen;
        self.renew();
    }

    /// What the keys do with the line of the cursor.
    fn on_line(&mut self, code: KeyCode) {
        match (self.screen, code) {
            (Screen::Tree, KeyCode::Char('i')) => {
                self.tree.bottom_up = !self.tree.bottom_up;
                self.go_to(0);
                self.renew();
            }
            (Screen::Tree, KeyCode::Char('*')) => {
                let line = self
                    .line()
                    .filter(|it| !matches!(it.what, What::Process(_)));
                self.tree.opening = Some(Opening::Hottest(line.map_or(0, |line| line.key)));
                self.renew();
            }
            (Screen::Tree, KeyCode::Enter | KeyCode::Right | KeyCode::Left) => self.open(code),
            (Screen::Labels, KeyCode::Enter) => {
                if let Some(What::Label(name, value)) = self.line().map(|it| it.what.clone()) {
                    self.asked.filter = Some((name, value));
                    self.show(Screen::Methods);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, code: KeyCode) {
        let Some(line) = self.line() else { return };
        let key = line.key;
        match (code, line.opens) {
            (KeyCode::Enter | KeyCode::Right, Some(false)) => {
                self.tree.opening = Some(Opening::Only(key));
            }
            (KeyCode::Enter | KeyCode::Left, Some(true)) => {
                self.tree.close(key);
            }
            (KeyCode::Left, _) => {
                if let Some(caller) = self.table.caller(self.screen) {
                    self.go_to(caller);
                }
            }
            _ => {}
        }
        self.renew();
    }

    /// A key while something is typed.
    fn type_key(&mut self, input: Input, code: KeyCode) -> Act {
        let (mut text, make): (String, fn(String) -> Input) = match input {
            Input::Search(text) => (text, Input::Search),
            Input::File(text) => (text, Input::File),
        };
        let is_search = make(String::new()) == Input::Search(String::new());
        match code {
            KeyCode::Enter if is_search => return Act::Nothing,
            KeyCode::Enter if text.is_empty() => return Act::Nothing,
            KeyCode::Enter => return Act::Write(text),
            KeyCode::Esc => {
                if is_search {
                    self.asked.search.clear();
                    self.renew();
                }
                return Act::Nothing;
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(character) if !character.is_control() && text.len() < 1000 => {
                text.push(character);
            }
            _ => {}
        }
        if is_search && self.asked.search != text {
            self.asked.search.clone_from(&text);
            self.renew();
        }
        self.input = Some(make(text));
        Act::Nothing
    }
}

#[cfg(test)]
mod tests;
