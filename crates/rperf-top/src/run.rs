//! Shows the screens until the user has seen enough. On the command's main thread.

use crate::app::{App, Screen};
use crate::draw::{draw, room};
use crate::keys::Act;
use crate::look::Look;
use crate::terminal::{Guard, has_panicked};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Position, Rect};
use rperf_model::Profile;
use rperf_watch::sums::{Extent, Scope, Sums, lock};
use std::io::{self, stdout};
use std::mem::ManuallyDrop;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a key is waited for before the sums are looked at.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a message of the programs is shown before the next one, or a key, takes its place.
const READING: Duration = Duration::from_secs(2);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To end.
    End,
    /// To let the shell have the terminal.
    Suspend,
    /// Nothing: the process was stopped, and goes on.
    Continued,
}

/// What the screens need of the process around them.
pub trait Surroundings {
    /// Waits until there may be keys. An error means that there is no terminal any more.
    fn wait(&mut self, patience: Duration) -> io::Result<()>;
    /// The next signal that came.
    fn signal(&mut self) -> Option<Signal>;
    /// Stops this process until the shell continues it.
    fn suspend(&mut self);
    /// The user looks at this.
    fn looks_at(&mut self, screen: Screen);
    /// What the user should know next.
    fn line(&mut self) -> Option<String>;
    /// The last of them, if it is known that no more come.
    fn last_line(&mut self) -> Option<String>;
    /// Writes the profile to a file. Returns what is said of that.
    fn write(&mut self, path: &str, profile: Profile) -> String;
}

/// Shows what is in the sums. An error means that there is no terminal any more.
pub fn run(sums: &Mutex<Sums>, look: Look, around: &mut dyn Surroundings) -> io::Result<()> {
    let guard = Guard::new()?;
    // The guard shows the cursor. Where the terminal is gone, ratatui would panic as it says so.
    let backend = CrosstermBackend::new(stdout());
    let mut terminal = ManuallyDrop::new(Terminal::new(backend)?);
    redraw(&mut terminal)?;
    let mut app = App::of(&lock(sums));
    let mut version = None;
    let mut said = Instant::now();
    let mut is_of_programs = false;
    // One read of the terminal can bring several keys.
    let mut patience = Duration::ZERO;
    loop {
        if has_panicked() {
            return Err(io::Error::other("an internal error"));
        }
        let is_over = match around.signal() {
            Some(Signal::End) => true,
            Some(Signal::Suspend) => suspend(&guard, &mut terminal, around)?,
            Some(Signal::Continued) => {
                guard.give_back();
                guard.take()?;
                redraw(&mut terminal)?;
                version = None;
                false
            }
            None => false,
        };
        if is_over {
            return Ok(());
        }
        let is_read = app.message.is_none() || said.elapsed() >= READING;
        let line = if is_read { around.line() } else { None };
        // What ends all that is shown stays, whatever is pressed.
        let lasting = if app.message.is_none() {
            around.last_line()
        } else {
            None
        };
        if let Some(line) = line.or(lasting) {
            app.message = Some(line);
            said = Instant::now();
            is_of_programs = true;
            version = None;
        }
        around.looks_at(app.screen);
        {
            let sums = lock(sums);
            let shown = app.shown(&sums).rounds.version;
            if version != Some(shown) {
                version = Some(shown);
                show(&mut terminal, &mut app, &sums, look)?;
            }
        }
        // A terminal that is gone would be read for ever in there, where there is no time limit.
        around.wait(patience)?;
        if !event::poll(Duration::ZERO)? {
            patience = PATIENCE;
            continue;
        }
        patience = Duration::ZERO;
        version = None;
        let Event::Key(key) = event::read()? else {
            continue;
        };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let is_new = is_of_programs && said.elapsed() < READING;
        let unread = app.message.clone().filter(|_| is_new);
        let act = app.key(key);
        is_of_programs = app.message.is_none() && unread.is_some();
        if is_of_programs {
            app.message = unread;
        }
        match act {
            Act::Quit => return Ok(()),
            Act::Redraw => redraw(&mut terminal)?,
            Act::Suspend => {
                suspend(&guard, &mut terminal, around)?;
            }
            Act::Nothing => {}
            act => {
                let before = app.message.take();
                change(&mut app, sums, act, around);
                match app.message {
                    Some(_) => {
                        said = Instant::now();
                        is_of_programs = false;
                    }
                    None => app.message = before,
                }
            }
        }
    }
}

fn suspend<B: ratatui::backend::Backend<Error = io::Error>>(
    guard: &Guard,
    terminal: &mut Terminal<B>,
    around: &mut dyn Surroundings,
) -> io::Result<bool> {
    guard.give_back();
    around.suspend();
    guard.take()?;
    redraw(terminal)?;
    Ok(false)
}

/// The next picture is drawn as a whole. `Terminal::clear` would ask the terminal where its cursor
/// is, and wait for an answer that not all of them give.
fn redraw<B: ratatui::backend::Backend<Error = io::Error>>(
    terminal: &mut Terminal<B>,
) -> io::Result<()> {
    let size = terminal.size()?;
    terminal.resize(Rect::from((Position::ORIGIN, size)))
}

/// What needs the sums.
fn change(app: &mut App, sums: &Mutex<Sums>, act: Act, around: &mut dyn Surroundings) {
    match act {
        Act::StopOrGoOn => app.stop_or_go_on(&mut lock(sums)),
        Act::Mark if app.is_stopped() => {
            app.message = Some("the picture is stopped; p lets it go on".into());
        }
        Act::Mark => {
            lock(sums).set_mark();
            app.asked.scope = Scope::SinceMark;
            app.renew();
        }
        Act::Write(path) => {
            let profile = {
                let sums = lock(sums);
                let extent = match app.asked.scope {
                    Scope::SinceMark => Extent::SinceMark,
                    Scope::Rate | Scope::Total => Extent::Watched,
                };
                app.shown(&sums).profile(extent, app.asked.filter.as_ref())
            };
            app.message = Some(match profile {
                Some(profile) => around.write(&path, profile),
                None => "there is nothing to write".into(),
            });
        }
        Act::Nothing | Act::Quit | Act::Suspend | Act::Redraw => {}
    }
}

fn show<B: ratatui::backend::Backend<Error = io::Error>>(
    terminal: &mut Terminal<B>,
    app: &mut App,
    sums: &Sums,
    look: Look,
) -> io::Result<()> {
    let height = terminal.size()?.height;
    app.refresh(sums, room(height));
    terminal.draw(|frame| draw(app, app.shown(sums), look, frame.buffer_mut()))?;
    Ok(())
}
