//! Keys on every screen, without a terminal.

use super::*;
use crate::draw::room;
use crate::line::Sort;
use crate::look::Look;
use crate::screens_tests::{SIZES, drawn, sums};
use KeyCode::{Backspace, Char, Down, End, Enter, Esc, Home, Left, PageDown, Right, Tab, Up};
use rperf_watch::sums::{Scope, Sums};
use unicode_width::UnicodeWidthStr;

/// What is on the screen after these keys.
fn pressed(sums: &Sums, keys: &[KeyCode]) -> (App, Act) {
    let mut app = App::default();
    let mut act = Act::Nothing;
    app.refresh(sums, 7);
    for key in keys {
        act = app.key(KeyEvent::new(*key, KeyModifiers::NONE));
        app.refresh(sums, 7);
    }
    (app, act)
}

fn names(app: &App, sums: &Sums) -> Vec<String> {
    let name = |line: &crate::line::Line| match &line.what {
        What::Method(method) => sums.methods[*method as usize].name.to_string(),
        What::Process(process) => format!("= {}", sums.processes[*process as usize].pid),
        What::Thread(thread, _) => format!("thread {}", sums.threads[*thread as usize].seq),
        What::Label(name, value) => format!("{name}={value}"),
        What::NoLabel => "(no label)".into(),
        What::Memory(process, Some(row)) => {
            let memory = &sums.processes[*process as usize].memory;
            memory.rows[*row as usize].title.to_string()
        }
        What::Memory(_, None) => "in all".into(),
    };
    app.table
        .lines
        .iter()
        .map(|line| " ".repeat(line.depth) + &name(line))
        .collect()
}

#[test]
fn keys_choose_the_screen_and_what_is_asked() {
    let sums = sums();
    let app = |keys: &[KeyCode]| pressed(&sums, keys).0;
    for (keys, screen) in [
        (&[Char('2')][..], Screen::Tree),
        (&[Char('4'), Char('3')], Screen::Threads),
        (&[Tab, Tab, Tab], Screen::Labels),
        (&[Char('4'), Tab], Screen::Memory),
        (&[Char('5'), Tab], Screen::Methods),
        (&[KeyCode::BackTab], Screen::Memory),
    ] {
        assert_eq!(app(keys).screen, screen, "{keys:?}");
    }
    assert_eq!(app(&[Char('t')]).asked.scope, Scope::Total);
    assert_eq!(app(&[Char('t'); 3]).asked.scope, Scope::Rate);
    assert_eq!(app(&[Char('s')]).sort(), Sort::Total);
    assert_eq!(app(&[Char('3'), Char('s')]).sort(), Sort::Wait);
    assert_eq!(app(&[Char('s'); 5]).sort(), Sort::Own);
    assert!(app(&[Char('?')]).shows_help && !app(&[Char('?'), Char('x')]).shows_help);
}

#[test]
fn some_keys_leave_work_to_others() {
    let sums = sums();
    let act = |keys: &[KeyCode]| pressed(&sums, keys).1;
    assert_eq!(act(&[Char('q')]), Act::Quit);
    assert_eq!(act(&[Char('?'), Char('q')]), Act::Quit);
    assert_eq!(act(&[Char('p')]), Act::StopOrGoOn);
    assert_eq!(act(&[Char('m')]), Act::Mark);
    let typed = [Char('w'), Char('q'), Char('x'), Backspace, Char('.'), Enter];
    assert_eq!(act(&typed), Act::Write("q.".into()));
    assert_eq!(act(&[Char('w'), Enter]), Act::Nothing);
    assert_eq!(act(&[Char('w'), Char('a'), Esc, Enter]), Act::Nothing);
    let control = |letter| {
        let key = KeyEvent::new(Char(letter), KeyModifiers::CONTROL);
        App::default().key(key)
    };
    assert_eq!(control('c'), Act::Quit);
    assert_eq!(control('z'), Act::Suspend);
    assert_eq!(control('l'), Act::Redraw);
    assert_eq!(control('q'), Act::Nothing);
}

#[test]
fn the_cursor_stays_in_the_table() {
    let sums = sums();
    let place = |keys: &[KeyCode]| {
        let place = pressed(&sums, keys).0.place();
        (place.cursor, place.top)
    };
    // There are 7 methods with time.
    assert_eq!(place(&[Up, Down, Down, Up]), (1, 0));
    assert_eq!(place(&[End]), (6, 0));
    assert_eq!(place(&[End, Home, PageDown, PageDown, PageDown]), (6, 0));
    let mut app = App::default();
    app.refresh(&sums, 3);
    app.key(KeyEvent::from(End));
    assert_eq!((app.place().cursor, app.place().top), (6, 4));
    app.refresh(&sums, 5);
    app.key(KeyEvent::from(Home));
    assert_eq!((app.place().cursor, app.place().top), (0, 0));
}

#[test]
fn search_finds_names_and_files() {
    let sums = sums();
    let found = |text: &str| {
        let keys: Vec<_> = "/".chars().chain(text.chars()).map(Char).collect();
        let (app, _) = pressed(&sums, &keys);
        names(&app, &sums)
    };
    assert_eq!(found("coder"), ["JSON::Coder#dump"]);
    assert_eq!(found("pg/lib"), ["PG::Connection#exec_params"]);
    assert_eq!(found("CODER"), [""; 0]);
    assert_eq!(found("").len(), 7);
    let (app, _) = pressed(&sums, &[Char('/'), Char('x'), Enter, Esc]);
    assert_eq!((app.asked.search.as_str(), app.table.lines.len()), ("", 7));
    // Stacks with it, whole.
    let keys = ["2/coder"].concat();
    let keys: Vec<_> = keys.chars().map(Char).chain([Enter, Enter]).collect();
    let (app, _) = pressed(&sums, &keys);
    assert_eq!(
        names(&app, &sums),
        [
            "Rack::Server#call",
            " OrdersController#show",
            " JSON::Coder#dump"
        ]
    );
}

#[test]
fn trees_open_and_close() {
    let sums = sums();
    let tree = |keys: &[KeyCode]| {
        let keys: Vec<_> = [Char('2')].iter().chain(keys).copied().collect();
        let (app, _) = pressed(&sums, &keys);
        (names(&app, &sums), app.place().cursor)
    };
    assert_eq!(
        tree(&[]).0,
        ["Sidekiq::Job#perform", "Rack::Server#call"][..]
            .iter()
            .rev()
            .map(|it| it.to_string())
            .collect::<Vec<_>>()
    );
    let (opened, _) = tree(&[Right]);
    assert_eq!(opened.len(), 5, "{opened:?}");
    assert_eq!(tree(&[Right, Left]).0.len(), 2);
    assert_eq!(tree(&[Right, Down, Left]).1, 0);
    let (hot, _) = tree(&[Char('*')]);
    assert_eq!(
        hot[..3],
        [
            "Rack::Server#call",
            " OrdersController#show",
            "  JSON::Coder#dump"
        ]
    );
    let (up, _) = tree(&[Char('i'), Char('*')]);
    assert_eq!(
        up[..3],
        [
            "JSON::Coder#dump",
            " OrdersController#show",
            "  Rack::Server#call"
        ]
    );
}

#[test]
fn a_label_can_be_looked_at_alone() {
    let sums = sums();
    let keys = [Char('4'), Enter];
    let (app, _) = pressed(&sums, &keys);
    assert_eq!(app.screen, Screen::Methods);
    let pair = app.asked.filter.clone().expect("a filter");
    assert_eq!((&*pair.0, &*pair.1), ("endpoint", "GET /orders/:id"));
    assert!(!names(&app, &sums).contains(&"Sidekiq::Job#perform".to_string()));
    let (app, _) = pressed(&sums, &[&keys[..], &[Esc]].concat());
    assert_eq!((app.asked.filter, app.table.lines.len()), (None, 7));
}

#[test]
fn programs_can_have_headings() {
    let sums = sums();
    for screen in ['1', '2', '3', '4'] {
        let (app, _) = pressed(&sums, &[Char(screen), Char('g')]);
        let names = names(&app, &sums);
        let headings: Vec<_> = names.iter().filter(|it| it.starts_with("= ")).collect();
        assert_eq!(headings, ["= 4711", "= 4712"], "{screen}");
    }
}

#[test]
fn a_stopped_picture_stays_as_it_is() {
    let mut sums = sums();
    let (mut app, _) = pressed(&sums, &[]);
    app.stop_or_go_on(&mut sums);
    app.refresh(&sums, 7);
    let before = app.table.lines[0].own.run;
    sums.begin_interval(0);
    sums.end_round();
    app.refresh(&sums, 7);
    assert_eq!(app.table.lines[0].own.run, before);
    app.stop_or_go_on(&mut sums);
    app.refresh(&sums, 7);
    assert!(app.table.lines[0].own.run < before);
}

/// All that do something, and one that doesn't.
const KEYS: [KeyCode; 29] = [
    Char('1'),
    Char('2'),
    Char('3'),
    Char('4'),
    Char('t'),
    Char('s'),
    Char('g'),
    Char('i'),
    Char('*'),
    Char('p'),
    Char('m'),
    Char('w'),
    Char('/'),
    Char('?'),
    Char('j'),
    Char('k'),
    Char(' '),
    Char('x'),
    Enter,
    Esc,
    Backspace,
    Tab,
    KeyCode::BackTab,
    Left,
    Right,
    Up,
    Down,
    End,
    Home,
];

/// What is on the screen is as large as the terminal, and says what it is.
fn look_at(app: &mut App, sums: &Sums, size: (u16, u16), keys: &[KeyCode]) {
    let look = Look {
        colour: true,
        unicode: true,
    };
    let text = drawn(app, sums, size, look);
    let at = format!("{keys:?} at {size:?}:\n{text}");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), usize::from(size.1), "{at}");
    let heading = match app.shows_help {
        true => " Keys (any key goes back)".into(),
        false => format!("[{} {}]", app.screen as usize + 1, app.screen.name()),
    };
    let place = if app.shows_help { 0 } else { 2 };
    assert!(lines[place].contains(&heading), "{at}");
    let widths = lines.iter().map(|line| UnicodeWidthStr::width(*line));
    assert!(widths.max() <= Some(size.0.into()), "{at}");
    let commands = |it: char| it.is_control() && it != '\n';
    assert!(!text.contains(commands), "{at}");
}

/// Presses these, each on what the ones before have left.
fn press_and_look(screen: Screen, sums: &mut Sums, size: (u16, u16), keys: &[KeyCode]) {
    let mut app = App {
        screen,
        ..App::default()
    };
    app.refresh(sums, room(size.1));
    for (place, &key) in keys.iter().enumerate() {
        match app.key(KeyEvent::new(key, KeyModifiers::NONE)) {
            Act::StopOrGoOn => app.stop_or_go_on(sums),
            Act::Mark => app.asked.scope = Scope::SinceMark,
            _ => {}
        }
        look_at(&mut app, sums, size, &keys[..=place]);
    }
}

#[test]
fn every_key_on_every_screen_leaves_a_screen_of_the_right_size() {
    let mut sums = sums();
    for screen in Screen::ALL {
        for size in SIZES {
            for key in KEYS {
                press_and_look(screen, &mut sums, size, &[key]);
            }
            let backwards: Vec<_> = KEYS.into_iter().rev().collect();
            press_and_look(screen, &mut sums, size, &backwards);
        }
        // After those that have the next one mean something else.
        for first in ['t', 'g', 'i', '*', 'p', 'w', '/', '?'].map(Char) {
            for key in KEYS {
                press_and_look(screen, &mut sums, SIZES[0], &[first, key]);
            }
        }
    }
}
