//! What the user looks at, and what is shown of it. Without a terminal and without time, so all of
//! it can be tested.

use crate::line::{Line, Question, Sort};
use crate::lines::{self, Opening};
use rperf_watch::sums::{Label, Scope, Sums};
use rustc_hash::FxHashSet;

/// A screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Screen {
    /// Methods.
    #[default]
    Methods,
    /// The call tree.
    Tree,
    /// Threads.
    Threads,
    /// Labels.
    Labels,
    /// What memory is of.
    Memory,
}

impl Screen {
    /// All of them, in the order of their keys.
    pub const ALL: [Screen; 5] = [
        Screen::Methods,
        Screen::Tree,
        Screen::Threads,
        Screen::Labels,
        Screen::Memory,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Methods => "Methods",
            Screen::Tree => "Tree",
            Screen::Threads => "Threads",
            Screen::Labels => "Labels",
            Screen::Memory => "Memory",
        }
    }

    /// By what it can be sorted; blame comes last, if it is known.
    pub fn sorts(self, has_blame: bool) -> &'static [Sort] {
        use Sort::{Blame, Blocked, Gc, Own, Total, Wait};
        let all: &[Sort] = match self {
            Screen::Methods => &[Own, Total, Wait, Blocked, Gc, Blame],
            Screen::Tree => &[Total, Own, Wait, Blocked, Gc, Blame],
            Screen::Threads | Screen::Labels => &[Own, Wait, Blocked, Gc, Blame],
            // Its rows have an order of their own.
            Screen::Memory => &[Own, Blame],
        };
        &all[..all.len() - usize::from(!has_blame)]
    }
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What is looked for.
    Search(String),
    /// The name of a file.
    File(String),
}

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

/// What is looked at.
#[derive(Debug, Default)]
pub struct App {
    /// The screen.
    pub screen: Screen,
    /// The span of time.
    pub scope: Scope,
    /// The label that is looked at.
    pub filter: Option<Label>,
    /// The names that are looked for.
    pub search: String,
    /// With a heading for each process.
    pub by_process: bool,
    /// Trees show callers below their callees.
    pub bottom_up: bool,
    /// What is being typed.
    pub input: Option<Input>,
    /// The keys are explained.
    pub shows_help: bool,
    /// What the user should know.
    pub message: Option<String>,
    /// A profile of the past is looked at: there is no time that could be marked or stopped.
    pub is_saved: bool,
    /// Whether the sums tell for whom others wait.
    pub has_blame: bool,
    /// The lines of the screen.
    pub lines: Vec<Line>,
    pub(crate) opened: FxHashSet<u64>,
    pub(crate) opening: Option<Opening>,
    /// Lines that there is room for.
    pub(crate) room: usize,
    pub(crate) sorts: [usize; 5],
    pub(crate) places: [Place; 5],
    /// The picture as it was when it was stopped.
    pub(crate) frozen: Option<Box<Sums>>,
    /// The version of the picture that the lines show; `None` if they have to be made anew.
    pub(crate) version: Option<u64>,
}

impl App {
    /// What is looked at first.
    pub fn of(sums: &Sums) -> Self {
        App {
            is_saved: sums.is_saved,
            has_blame: sums.has_blame(),
            scope: match sums.is_saved {
                true => Scope::Total,
                false => Scope::default(),
            },
            ..App::default()
        }
    }

    /// By what the screen is sorted.
    pub fn sort(&self) -> Sort {
        let sorts = self.screen.sorts(self.has_blame);
        sorts[self.sorts[self.screen as usize] % sorts.len()]
    }

    /// Sorts by what comes next.
    pub fn sort_by_next(&mut self) {
        let sort = &mut self.sorts[self.screen as usize];
        *sort = (*sort + 1) % self.screen.sorts(self.has_blame).len();
        self.renew();
    }

    /// Sorts by this.
    pub fn sort_by(&mut self, wanted: Sort) {
        let sorts = self.screen.sorts(self.has_blame);
        if let Some(place) = sorts.iter().position(|it| *it == wanted) {
            self.sorts[self.screen as usize] = place;
        }
        self.renew();
    }

    /// Where the user is.
    pub fn place(&self) -> Place {
        self.places[self.screen as usize]
    }

    /// The line with the cursor.
    pub fn line(&self) -> Option<&Line> {
        self.lines.get(self.place().cursor)
    }

    /// The cursor goes to this line, or to the last one.
    pub fn go_to(&mut self, cursor: usize) {
        let cursor = cursor.min(self.lines.len().saturating_sub(1));
        let key = self.lines.get(cursor).map(|line| line.key);
        let room = self.room.max(1);
        let place = &mut self.places[self.screen as usize];
        // At the top of a table, what comes to the top is looked at.
        place.key = key.filter(|_| cursor > 0 || self.screen == Screen::Tree);
        place.cursor = cursor;
        place.top = place.top.clamp((cursor + 1).saturating_sub(room), cursor);
    }

    /// The lines have to be made anew.
    pub fn renew(&mut self) {
        self.version = None;
    }

    /// Whether the picture is stopped.
    pub fn is_stopped(&self) -> bool {
        self.frozen.is_some()
    }

    /// Stops the picture, or lets it go on.
    pub fn stop_or_go_on(&mut self, sums: &mut Sums) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(Box::new(sums.picture())),
        };
        self.renew();
    }

    /// What is shown: the picture as it was when it was stopped, or the present one.
    pub fn shown<'a>(&'a self, sums: &'a Sums) -> &'a Sums {
        self.frozen.as_deref().unwrap_or(sums)
    }

    /// Makes the lines, if there is something new.
    pub fn refresh(&mut self, sums: &Sums, room: usize) {
        let frozen = self.frozen.take();
        let shown = frozen.as_deref().unwrap_or(sums);
        if self.version != Some(shown.version) {
            self.version = Some(shown.version);
            self.has_blame = shown.has_blame();
            self.lines = self.make_lines(shown);
            self.follow();
        }
        self.frozen = frozen;
        if self.room != room {
            self.room = room;
            self.go_to(self.place().cursor);
        }
    }

    fn make_lines(&mut self, sums: &Sums) -> Vec<Line> {
        let mut opened = std::mem::take(&mut self.opened);
        let question = Question {
            scope: self.scope,
            filter: self.filter.as_ref(),
            search: &self.search,
            sort: self.sort(),
            by_process: self.by_process,
        };
        let lines = match self.screen {
            Screen::Methods => lines::methods(sums, &question),
            Screen::Threads => lines::threads(sums, &question),
            Screen::Labels => lines::labels(sums, &question),
            Screen::Memory => lines::memory(sums, &question),
            Screen::Tree => {
                let opening = self.opening;
                lines::tree(sums, &question, self.bottom_up, &mut opened, opening)
            }
        };
        self.opening = None;
        self.opened = opened;
        lines
    }

    fn follow(&mut self) {
        let place = self.place();
        let key = place.key;
        let found = key.and_then(|key| self.lines.iter().position(|line| line.key == key));
        self.go_to(found.unwrap_or(place.cursor));
        if found.is_none() && key.is_some() {
            self.places[self.screen as usize].key = key;
        }
    }
}
