//! What the user looks at, and what is shown of it. Without a terminal and without time, so all of
//! it can be tested.

mod asked;
mod picture;
mod screen;
mod table;

pub use asked::Asked;
pub use screen::{Column, Screen};
pub use table::{Place, Table};

use crate::line::{Line, Sort};
use crate::lines::{self, Tree};
use picture::Picture;
use rperf_watch::sums::{Scope, Sums};

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What is looked for.
    Search(String),
    /// The name of a file.
    File(String),
}

/// What is looked at.
#[derive(Debug, Default)]
pub struct App {
    /// The screen.
    pub screen: Screen,
    /// What is asked of the sums.
    pub asked: Asked,
    /// What is opened of the call tree.
    pub tree: Tree,
    /// The lines of the screen, and where the user is.
    pub table: Table,
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
    /// By what each screen is sorted: places in what [`Screen::sorts`] has.
    pub(crate) sorts: [usize; Screen::ALL.len()],
    /// The picture that the lines are of.
    pub(crate) picture: Picture,
}

impl App {
    /// What is looked at first.
    pub fn of(sums: &Sums) -> Self {
        let is_saved = sums.is_saved();
        App {
            is_saved,
            has_blame: sums.has_blame(),
            asked: Asked {
                scope: match is_saved {
                    true => Scope::Total,
                    false => Scope::default(),
                },
                ..Asked::default()
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
        self.table.place(self.screen)
    }

    /// The line with the cursor.
    pub fn line(&self) -> Option<&Line> {
        self.table.lines.get(self.place().cursor)
    }

    /// So many lines from the first one that is seen, and whether each has the cursor.
    pub fn seen(&self, count: usize) -> impl Iterator<Item = (&Line, bool)> {
        self.table.seen(self.screen, count)
    }

    /// The cursor goes to this line, or to the last one.
    pub fn go_to(&mut self, cursor: usize) {
        self.table.go_to(self.screen, cursor);
    }

    /// The lines have to be made anew.
    pub fn renew(&mut self) {
        self.picture.renew();
    }

    /// Whether the picture is stopped.
    pub fn is_stopped(&self) -> bool {
        self.picture.is_stopped()
    }

    /// Stops the picture, or lets it go on.
    pub fn stop_or_go_on(&mut self, sums: &mut Sums) {
        self.picture.stop_or_go_on(sums);
    }

    /// What is shown: the picture as it was when it was stopped, or the present one.
    pub fn shown<'a>(&'a self, sums: &'a Sums) -> &'a Sums {
        self.picture.shown(sums)
    }

    /// Makes the lines, if there is something new.
    pub fn refresh(&mut self, sums: &Sums, room: usize) {
        let mut picture = std::mem::take(&mut self.picture);
        if let Some(new) = picture.take_new(sums) {
            self.has_blame = new.has_blame();
            let lines = self.make_lines(new);
            self.table.put(self.screen, lines);
        }
        self.picture = picture;
        self.table.fit(self.screen, room);
    }

    fn make_lines(&mut self, sums: &Sums) -> Vec<Line> {
        let question = self.asked.question(self.sort());
        let lines = match self.screen {
            Screen::Methods => lines::methods(sums, &question),
            Screen::Threads => lines::threads(sums, &question),
            Screen::Labels => lines::labels(sums, &question),
            Screen::Memory => lines::memory(sums, &question),
            Screen::Tree => lines::tree(sums, &question, &mut self.tree),
        };
        self.tree.opening = None;
        lines
    }
}
