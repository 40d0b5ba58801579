//! The lines of the screen, and where the user is among them.

use super::screen::Screen;
use crate::line::Line;

/// Where the user is on a screen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The line with the cursor.
    pub cursor: usize,
    /// The first line that is seen.
    pub top: usize,
    /// The key of the line with the cursor, which it follows.
    pub key: Option<u64>,
}

/// The lines of the screen that is shown, and where the user is on each screen. On the one that is
/// shown, the cursor is on a line, if there are any, and among those that there is room for.
#[derive(Debug, Default)]
pub struct Table {
    /// The lines.
    pub lines: Vec<Line>,
    /// Lines that there is room for.
    room: usize,
    places: [Place; Screen::ALL.len()],
}

impl Table {
    /// Where the user is on this screen.
    pub fn place(&self, screen: Screen) -> Place {
        self.places[screen as usize]
    }

    /// So many lines from the first one that is seen, and whether each has the cursor.
    pub(super) fn seen(&self, screen: Screen, count: usize) -> impl Iterator<Item = (&Line, bool)> {
        let Place { cursor, top, .. } = self.place(screen);
        let lines = self.lines.iter().enumerate().skip(top).take(count);
        lines.map(move |(number, line)| (line, number == cursor))
    }

    /// The cursor goes to this line, or to the last one.
    pub(super) fn go_to(&mut self, screen: Screen, cursor: usize) {
        let cursor = cursor.min(self.lines.len().saturating_sub(1));
        let key = self.lines.get(cursor).map(|line| line.key);
        let room = self.room.max(1);
        let place = &mut self.places[screen as usize];
        // At the top of a table, what comes to the top is looked at.
        place.key = key.filter(|_| cursor > 0 || screen == Screen::Tree);
        place.cursor = cursor;
        place.top = place.top.clamp((cursor + 1).saturating_sub(room), cursor);
    }

    /// How far a page takes the cursor: one of the lines is still seen.
    pub(crate) fn page(&self) -> usize {
        self.room.max(2) - 1
    }

    /// The line under which the one with the cursor is indented.
    pub(crate) fn caller(&self, screen: Screen) -> Option<usize> {
        let cursor = self.place(screen).cursor;
        let depth = self.lines.get(cursor)?.depth;
        self.lines[..cursor].iter().rposition(|it| it.depth < depth)
    }

    /// The screen has these lines from now on; the cursor follows the one that it was on.
    pub(super) fn put(&mut self, screen: Screen, lines: Vec<Line>) {
        self.lines = lines;
        let place = self.place(screen);
        let key = place.key;
        let found = key.and_then(|key| self.lines.iter().position(|line| line.key == key));
        self.go_to(screen, found.unwrap_or(place.cursor));
        if found.is_none() && key.is_some() {
            self.places[screen as usize].key = key;
        }
    }

    /// There is room for so many lines.
    pub(super) fn fit(&mut self, screen: Screen, room: usize) {
        if self.room != room {
            self.room = room;
            self.go_to(screen, self.place(screen).cursor);
        }
    }
}
