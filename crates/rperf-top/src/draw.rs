//! Draws the picture: what is seen is made text of, and nothing else.

mod help;
mod memory;
mod page;
mod table;

use crate::app::{App, Input, Screen};
use crate::look::Look;
use crate::text::{clock, fitted, percent};
use page::Page;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use rperf_watch::sums::{Scope, Sums};
use unicode_width::UnicodeWidthStr;

/// The smallest terminal.
pub const LEAST: (u16, u16) = (60, 12);

/// Lines above and below those of the table: three and its header, and the keys.
const AROUND: u16 = 5;

/// From this width on all screens are named, not only the one that is shown.
const WITH_NAMES: usize = 72;

/// Intervals that the bars show.
const BARS: usize = 10;

/// Lines of the table that there is room for.
pub fn room(height: u16) -> usize {
    usize::from(height.saturating_sub(AROUND))
}

/// Idle threads that are worth a word, on average.
const LEAST_HIDDEN: f64 = 0.05;

/// All of it in a terminal of this size.
pub fn picture(app: &mut App, sums: &Sums, look: Look, area: Rect) -> Buffer {
    let mut buffer = Buffer::empty(area);
    app.refresh(sums, room(area.height));
    draw(app, app.shown(sums), look, &mut buffer);
    buffer
}

/// Draws all of it.
pub fn draw(app: &App, sums: &Sums, look: Look, buffer: &mut Buffer) {
    let area = buffer.area;
    let mut page = Page { look, buffer };
    if area.width < LEAST.0 || area.height < LEAST.1 {
        page.line(
            0,
            &[(
                "rperf top needs 60 columns and 12 lines".into(),
                Style::new(),
            )],
        );
        let now = format!("this terminal has {} and {}", area.width, area.height);
        page.line(1, &[(now, Style::new())]);
        page.line(2, &[("q quits".into(), Style::new())]);
        return;
    }
    if app.shows_help {
        help::draw(&mut page);
        return;
    }
    head(&mut page, app, sums);
    figures(&mut page, sums);
    tabs(&mut page, app, sums);
    let below = Rect::new(0, 3, area.width, area.height - 4);
    match app.screen {
        Screen::Memory => memory::draw(&mut page, app, sums, below),
        _ => table::draw(&mut page, app, sums, below),
    }
    foot(&mut page, app, sums, area.height - 1);
}

fn head(page: &mut Page<'_>, app: &App, sums: &Sums) {
    let living: Vec<_> = sums.living().collect();
    let (what, first) = match &*living {
        [] => ("the programs have ended".into(), sums.processes.last()),
        [one] => (one.title(), Some(*one)),
        several => (
            format!("{} programs", several.len()),
            several.first().copied(),
        ),
    };
    let watched = sums.processes.iter().map(|it| it.time.watched_ns()).max();
    let session = first.map(|it| match it.facts.frequency {
        0 => "waiting for a session".into(),
        frequency => format!("{} {frequency} Hz", it.time_name()),
    });
    let overhead = percent(sums.figures().overhead);
    let mut rest = format!(
        "  {}  {}  ",
        clock(watched.unwrap_or(0)),
        session.unwrap_or_default()
    );
    if !sums.is_saved() {
        rest += &format!("overhead {overhead} ");
    }
    if app.is_stopped() {
        rest = format!("  stopped (p){rest}");
    }
    let room = page.width().saturating_sub(rest.width() + 1);
    let name = fitted(&format!("rperf top  {what}"), room, page.look);
    let bold = page.look.bold();
    page.line(0, &[(format!(" {name}"), bold)]);
    page.put(page.width() - rest.width(), 0, &rest, Style::new());
}

fn figures(page: &mut Page<'_>, sums: &Sums) {
    let now = sums.figures();
    let last = sums.rounds.history.iter().rev().take(BARS).rev();
    let bars = |of: fn(&rperf_watch::sums::Figures) -> f64, least: f64| {
        let values = last.clone().map(of);
        let most = values.clone().fold(least, f64::max);
        page.look.bars(values, most)
    };
    let mut texts = if sums.is_wall() {
        vec![
            format!(
                " GVL busy {:3.0} % {}",
                now.busy * 100.0,
                bars(|it| it.busy, 1.0)
            ),
            format!("waiting {:.1} {}", now.waiting, bars(|it| it.waiting, 1.0)),
            format!("GC {:.0} % {}", now.gc * 100.0, bars(|it| it.gc, 1.0)),
            format!("blocked {:.1}", now.blocked),
        ]
    } else {
        vec![
            format!(
                " CPU {:3.0} % {}",
                now.busy * 100.0,
                bars(|it| it.busy, 1.0)
            ),
            format!("GC {:.0} % {}", now.gc * 100.0, bars(|it| it.gc, 1.0)),
        ]
    };
    if now.hidden >= LEAST_HIDDEN {
        let hidden = format!("idle threads: {:.1} hidden, --idle shows them", now.hidden);
        texts.push(hidden);
    }
    // On a narrow terminal, the bars are left out first.
    let whole = texts.join("   ");
    let text = match whole.width() <= page.width() {
        true => whole,
        false => {
            let is_bar = |it: char| "▁▂▃▄▅▆▇█_:-=#".contains(it);
            let short = |it: &String| it.trim_end_matches(is_bar).trim_end().to_string();
            texts.iter().map(short).collect::<Vec<_>>().join("   ")
        }
    };
    page.line(1, &[(text, Style::new())]);
}

fn tabs(page: &mut Page<'_>, app: &App, sums: &Sums) {
    let about = format!("  {}", about(app, sums).join("  "));
    let named = Screen::ALL.iter().map(|screen| screen.name().len() + TAB);
    // What is looked at is worth more than the names of the other screens.
    let needed = 1 + named.sum::<usize>() + about.chars().count();
    let has_names = page.width() >= needed.max(WITH_NAMES);
    let mut parts = vec![(" ".into(), Style::new())];
    for (number, screen) in (1..).zip(Screen::ALL) {
        let is_shown = screen == app.screen;
        let text = match is_shown {
            true => format!("[{number} {}]", screen.name()),
            false if has_names => format!(" {number} {} ", screen.name()),
            false => format!(" {number} "),
        };
        let style = if is_shown {
            page.look.bold()
        } else {
            Style::new()
        };
        parts.push((text, style));
    }
    parts.push((about, page.look.dim()));
    page.line(2, &parts);
}

/// Columns of a tab beside its name: its number, and a blank or bracket around each.
const TAB: usize = 4;

/// What the screen is about, in words.
fn about(app: &App, sums: &Sums) -> Vec<String> {
    let mut about = Vec::new();
    let is_of_time = app.screen != Screen::Memory;
    if is_of_time {
        about.push(match app.asked.scope {
            Scope::Rate if sums.is_saved() => "per second, on average".into(),
            Scope::Rate => "last interval".into(),
            _ if sums.is_saved() => "all of it".into(),
            Scope::Total => "since attached".into(),
            Scope::SinceMark if !sums.rounds.has_mark => "since attached (m marks)".into(),
            Scope::SinceMark => {
                let since = sums.processes.iter();
                let since = since.map(|it| it.time.since_mark_ns()).max();
                format!("since mark {}", clock(since.unwrap_or(0)))
            }
        });
    }
    if app.screen == Screen::Tree && app.tree.bottom_up {
        about.push("callers below".into());
    }
    if let Some((name, value)) = app.asked.filter.as_ref().filter(|_| is_of_time) {
        about.push(format!("{name}={value}"));
    }
    if !app.asked.search.is_empty() {
        about.push(format!("/{}", app.asked.search));
    }
    about
}

fn foot(page: &mut Page<'_>, app: &App, sums: &Sums, y: u16) {
    let keys = match sums.is_saved() {
        true => "q quit  ? keys  t time  s sort  / search  w write",
        false => "q quit  ? keys  t time  s sort  / search  m mark  p stop  w write",
    };
    let more = match app.screen {
        Screen::Tree => "  Enter open  * hot path  i callers",
        Screen::Labels => "  Enter only this",
        _ => "",
    };
    let (text, style) = match (&app.input, &app.message) {
        (Some(Input::Search(text)), _) => (format!("search: {text}_"), page.look.bold()),
        (Some(Input::File(text)), _) => (
            format!("write to file (x.pb.gz, x.json, x.collapsed): {text}_"),
            page.look.bold(),
        ),
        (None, Some(message)) => (message.clone(), page.look.bold()),
        (None, None) => (format!("{keys}{more}"), page.look.dim()),
    };
    // Of what is typed, the end is seen.
    let room = page.width() - 1;
    let skipped = match app.input {
        Some(_) => text.chars().count().saturating_sub(room),
        None => 0,
    };
    let text: String = text.chars().skip(skipped).collect();
    page.line(y, &[(format!(" {text}"), style)]);
}
