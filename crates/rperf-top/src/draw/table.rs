//! The table of a screen: its columns and the lines that are seen.

use super::page::Page;
use crate::app::{App, Column, Screen};
use crate::line::{Line, Sort, What};
use crate::text::{clock, fitted, fitted_end, fitted_method, percent, share, time};
use ratatui::layout::Rect;
use ratatui::style::Style;
use rperf_watch::sums::{Scope, Sums, Times};
use unicode_width::UnicodeWidthStr;

/// Columns of a number, with the gap in front of it.
const NUMBER: usize = 10;

/// From then on it is told for how long a thread hasn't moved, in ns.
const LONG: u64 = 2_000_000_000;

/// The widest that names get where there is another column behind them.
const NAME: usize = 52;

/// What threads have at least, if there is room: their methods are behind them.
const THREAD: usize = 28;

/// What a method's name has in front of what a thread waits for, and that at least.
const METHOD: usize = 16;

/// From this width on, files are shown, and all numbers.
const WITH_FILES: usize = 78;
const WIDE: usize = 120;

/// The columns that there is room for; the one that is sorted by is among them.
fn shown_columns(app: &App, width: usize) -> Vec<Column> {
    let all: Vec<_> = app.screen.columns(app.has_blame).collect();
    let count = match app.screen {
        _ if width >= WIDE => all.len(),
        Screen::Threads | Screen::Labels if width < WITH_FILES => 3,
        _ => 4,
    };
    let mut shown = all[..count].to_vec();
    let is_sorted = |it: &Column| it.sort() == app.sort();
    if !shown.iter().any(is_sorted)
        && let Some(column) = all.iter().copied().find(is_sorted)
    {
        shown[count - 1] = column;
    }
    shown
}

fn title(column: Column, app: &App, is_sorted: bool) -> String {
    let name = column.sort().heading(app.screen);
    let unit = match (column, app.asked.scope) {
        (Column::Share(_), _) => " %",
        (Column::Time(_), Scope::Rate) => "/s",
        (Column::Time(_), _) => "",
    };
    let mark = if is_sorted { "*" } else { "" };
    format!("{mark}{name}{unit}")
}

pub fn draw(page: &mut Page<'_>, app: &App, sums: &Sums, area: Rect) {
    let columns = shown_columns(app, page.width());
    let before = columns.len() * NUMBER + 2;
    let room = page.width() - before;
    let with_files = page.width() >= WITH_FILES && app.screen != Screen::Labels;
    let name_room = match with_files {
        true if app.screen == Screen::Threads => THREAD.max(room / 3).min(room / 2),
        true => (room * 3 / 5).min(NAME.max(page.width() / 3)),
        false => room,
    };
    let layout = Layout {
        columns,
        before,
        name_room,
        file_room: if with_files { room - name_room - 2 } else { 0 },
    };
    layout.header(page, app, area.y);
    let lines = usize::from(area.height) - 1;
    for ((line, is_chosen), y) in app.seen(lines).zip(area.y + 1..) {
        layout.line(page, app, sums, line, y);
        if is_chosen {
            page.style(y, page.look.chosen());
        }
    }
    if app.table.lines.is_empty() {
        let text = match (app.asked.search.is_empty(), &app.asked.filter) {
            (false, _) => "nothing is found (Esc: all)",
            (_, Some(_)) => "nothing with this label (Esc: all)",
            _ if app.asked.scope == Scope::Rate && sums.is_unknown() && sums.is_stuck() => {
                "a thread keeps the GVL in native code: nothing is known of this interval"
            }
            _ if app.asked.scope == Scope::Rate && sums.is_unknown() => {
                "no Ruby code runs just now: nothing is known of this interval"
            }
            _ => "nothing has run",
        };
        page.put(2, area.y + 1, text, Style::new());
    }
}

/// The line above those of a process.
pub fn heading(page: &mut Page<'_>, sums: &Sums, process: u32, y: u16) {
    let process = &sums.processes[process as usize];
    let end = if process.has_ended { " (ended)" } else { "" };
    let text = format!(" {}{end}", process.title());
    let text = fitted(&text, page.width(), page.look);
    page.put(0, y, &text, page.look.bold());
}

struct Layout {
    columns: Vec<Column>,
    before: usize,
    name_room: usize,
    file_room: usize,
}

impl Layout {
    fn header(&self, page: &mut Page<'_>, app: &App, y: u16) {
        let bold = page.look.bold();
        let is_sorted = |it: &Column| it.sort() == app.sort();
        let sorted = self.columns.iter().position(is_sorted);
        for (place, column) in self.columns.iter().enumerate() {
            let text = format!("{:>NUMBER$}", title(*column, app, sorted == Some(place)));
            page.put(place * NUMBER, y, &text, bold);
        }
        let (name, file) = match app.screen {
            Screen::Methods => ("method", "file"),
            Screen::Tree if app.tree.bottom_up => ("method, and who called it", "file"),
            Screen::Tree => ("method, and what it called", "file"),
            Screen::Threads => ("thread", "where it was most"),
            Screen::Labels | Screen::Memory => ("label", ""),
        };
        let name = fitted(name, self.name_room, page.look);
        page.put(self.before, y, &name, bold);
        if self.file_room > 0 {
            page.put(self.before + self.name_room + 2, y, file, bold);
        }
    }

    fn line(&self, page: &mut Page<'_>, app: &App, sums: &Sums, line: &Line, y: u16) {
        if let What::Process(process) = line.what {
            heading(page, sums, process, y);
            return;
        }
        let is_tree = app.screen == Screen::Tree;
        let part = share(line.value(app.sort(), is_tree), whole(line, app.sort()));
        let style = page.look.of_share(part);
        for (place, column) in self.columns.iter().enumerate() {
            let text = match *column {
                Column::Time(sort) => time(line.value(sort, is_tree)),
                Column::Share(sort) => percent(share(line.value(sort, is_tree), line.whole)),
            };
            page.put(place * NUMBER, y, &format!("{text:>NUMBER$}"), style);
        }
        let (name, file) = self.texts(page, app, sums, line);
        page.put(self.before, y, &name, style);
        if self.file_room > 0 {
            let dim = page.look.dim();
            page.put(self.before + self.name_room + 2, y, &file, dim);
        }
    }

    fn texts(&self, page: &Page<'_>, app: &App, sums: &Sums, line: &Line) -> (String, String) {
        let look = page.look;
        let name = |text: &str| fitted(text, self.name_room, look);
        match &line.what {
            What::Method(method) => {
                let Some(method) = sums.methods.get(*method as usize) else {
                    return Default::default();
                };
                let front = match app.screen {
                    Screen::Tree => self.front(line),
                    _ => String::new(),
                };
                let room = self.name_room.saturating_sub(front.width());
                let text = front + &fitted_method(&method.name, room, look);
                (text, fitted_end(&method.short_path, self.file_room, look))
            }
            What::Thread(number, node) => {
                let is_of_now = app.asked.scope == Scope::Rate && !sums.is_saved();
                let position = sums.threads.position(*number);
                let long = position.filter(|it| it.node == *node && it.ns >= LONG && is_of_now);
                let facts = sums.threads.facts(*number);
                let thread = sums.threads[*number as usize];
                let top = sums.method(*node).map_or("", |it| &*it.name);
                let stays = long.filter(|_| thread.seq > 0);
                let stays = stays.map_or_else(String::new, |it| format!(" for {}", clock(it.ns)));
                let letter = letter(line.own);
                let call = match (facts, position) {
                    (Some(facts), Some(position)) if app.asked.scope == Scope::Rate => {
                        facts.waits_at(position)
                    }
                    _ => None,
                };
                // A call without its target says less than the method.
                let call = call.filter(|it| letter == 'B' && !it.target.is_empty());
                let stays = match (self.room_for_wait(&stays, top), call) {
                    (Some(room), Some(call)) => {
                        let call = call.to_string();
                        format!("{stays}: {}", fitted(&call, room, look).trim_end())
                    }
                    _ => stays,
                };
                let who = match thread.seq {
                    0 => "threads that have ended".into(),
                    seq if sums.processes.len() > 1 && !app.asked.by_process => {
                        let pid = sums.processes[thread.process as usize].pid;
                        format!("{pid} #{seq}")
                    }
                    seq => format!("thread {seq}"),
                };
                let who = match facts.filter(|it| !it.name.is_empty()) {
                    Some(facts) => format!("{who} \"{}\"", facts.name),
                    None => who,
                };
                match self.file_room {
                    0 => {
                        let room = self.name_room.saturating_sub(stays.width());
                        let text = fitted(&format!("{letter} {who}  {top}"), room, look);
                        (text + &stays, String::new())
                    }
                    room => {
                        let room = room.saturating_sub(stays.width());
                        let file = fitted(top, room, look) + &stays;
                        (name(&format!("{letter} {who}")), file)
                    }
                }
            }
            What::Label(key, value) => (name(&format!("{key}={value}")), String::new()),
            What::NoLabel => (name("(no label)"), String::new()),
            What::Process(_) | What::Memory(..) => Default::default(),
        }
    }

    /// How much room there is for what a thread waits for, behind `stays` and the method's name; `None`
    /// if that is too little.
    fn room_for_wait(&self, stays: &str, method: &str) -> Option<usize> {
        let before = stays.width() + method.width().min(METHOD) + 2;
        let room = self.file_room.checked_sub(before)?;
        (room >= METHOD).then_some(room)
    }

    /// Indentation, as far as there is room for a name behind it.
    fn front(&self, line: &Line) -> String {
        let most = (self.name_room / 2).max(4);
        let (indent, deep) = match line.depth {
            depth if depth <= most => (depth, String::new()),
            depth => {
                let text = format!("({depth}) ");
                (most.saturating_sub(text.len()), text)
            }
        };
        let mark = match line.opens {
            None => "  ",
            Some(true) => "- ",
            Some(false) => "+ ",
        };
        format!("{}{deep}{mark}", " ".repeat(indent))
    }
}

/// What the line's value is a part of, for its colour.
fn whole(line: &Line, sort: Sort) -> u64 {
    match sort {
        Sort::Own | Sort::Total => line.whole,
        _ => 0,
    }
}

/// What a thread has done most: running, waiting for the GVL, blocked, collecting garbage.
fn letter(times: Times) -> char {
    let Times {
        run,
        wait,
        blocked,
        gc,
        blame: _,
    } = times;
    let states = [(run, 'R'), (wait, 'W'), (blocked, 'B'), (gc, 'G')];
    let most = states.iter().rev().max_by_key(|(time, _)| *time);
    most.map_or(' ', |(_, letter)| *letter)
}
