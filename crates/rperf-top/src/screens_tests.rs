//! Every screen at every size, from sums whose content is known.

use crate::app::{App, Asked, Screen};
use crate::draw::{draw, room};
use crate::look::Look;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rperf_format::{Amounts, MemoryFile, MemoryRow};
use rperf_model::shared_sums::SumsValues;
use rperf_model::{Mode, State};
use rperf_watch::sums::{RowKey, Scope, Sums, ThreadFacts};
use std::fmt::Write as _;
use std::path::Path;

pub const SIZES: [(u16, u16); 3] = [(60, 12), (80, 24), (200, 60)];

const LOOK: Look = Look {
    colour: true,
    unicode: true,
};

const MS: u64 = 1_000_000;

/// So many MB of live objects, and files.
fn memory(mb: u64) -> MemoryFile {
    let rows = [("heap_live", mb), ("files_ruby", 10)];
    let rows = rows.map(|(name, mb)| MemoryRow {
        name: name.into(),
        amounts: Amounts {
            rss_bytes: mb << 20,
            ..Amounts::default()
        },
    });
    MemoryFile {
        rows: rows.into(),
        ..MemoryFile::default()
    }
}

/// Two programs, one of which serves requests, after three intervals and a mark.
pub fn sums() -> Sums {
    let mut sums = Sums::default();
    let shop = sums.add_process(4711, "puma: cluster worker 0: 4690 [shop]");
    let job = sums.add_process(4712, "sidekiq \u{1b}[2J計算");
    for (process, frequency) in [(shop, 1000), (job, 1000)] {
        set_session(&mut sums, process, frequency);
    }
    for round in 1..=3 {
        for process in [shop, job] {
            sums.begin_interval(process);
        }
        fill(&mut sums, shop, round);
        fill_job(&mut sums, job);
        sums.end_interval(shop, 1000 * MS, 2 * MS);
        sums.end_interval(job, 500 * MS, MS);
        sums.end_round();
        if round == 2 {
            sums.set_mark();
        }
    }
    let facts = |name: &str, tid, waits_in: &str| ThreadFacts {
        name: name.into(),
        tid,
        waits_in: waits_in.into(),
        age_ns: 0,
    };
    let threads = [
        (Some(1), facts("puma srv tp 001", 4731, "")),
        (Some(2), facts("", 4732, "recv: 10.0.0.5:5432")),
        (Some(4), facts("reaper", 4733, "sleep")),
        (Some(7), facts("without time", 4734, "")),
        (None, facts("helper", 4735, "")),
    ];
    sums.set_facts(shop, threads.into_iter());
    for mb in [100, 140] {
        sums.set_memory(shop, Ok(&memory(mb)));
    }
    sums.set_memory(job, Err("the kernel refuses it".into()));
    sums
}

fn set_session(sums: &mut Sums, process: u32, frequency: u32) {
    let facts = &mut sums.processes[process as usize].facts;
    (facts.mode, facts.frequency) = (Mode::Wall, frequency);
}

fn wall(wall_ns: u64) -> SumsValues {
    SumsValues {
        count: 1,
        wall_ns,
        cpu_ns: 0,
        blame_ns: 0,
    }
}

fn stack(sums: &mut Sums, methods: &[(&str, &str)]) -> u32 {
    methods.iter().fold(0, |parent, (name, path)| {
        let frame = sums.frame(name, path, 0).expect("room");
        sums.stack(parent, frame, 0).expect("room")
    })
}

fn fill(sums: &mut Sums, process: u32, round: u64) {
    const APP: (&str, &str) = ("Rack::Server#call", "/gems/rack/lib/rack/server.rb");
    const SHOW: (&str, &str) = ("OrdersController#show", "/app/app/controllers/orders.rb");
    const QUERY: (&str, &str) = (
        "PG::Connection#exec_params",
        "/gems/pg/lib/pg/connection.rb",
    );
    const DUMP: (&str, &str) = ("JSON::Coder#dump", "/gems/json/lib/json/coder.rb");
    const EACH: (&str, &str) = ("Array#each", "<C method>");
    let show = sums.label_set([("endpoint", "GET /orders/:id")].into_iter());
    let index = sums.label_set([("endpoint", "GET /"), ("tenant", "a")].into_iter());
    let [show, index] = [show, index].map(|it| it.expect("room"));
    let rows: [(&[_], u32, u32, State, u64); 6] = [
        (
            &[APP, SHOW, DUMP],
            1,
            show,
            State::Running,
            300 + 10 * round,
        ),
        (&[APP, SHOW, EACH, SHOW, EACH], 1, show, State::Running, 150),
        (&[APP, SHOW, QUERY], 2, show, State::GvlBlocked, 900),
        (&[APP, DUMP], 2, index, State::GvlWait, 100),
        (&[APP, EACH], 3, 0, State::GcMarking, 50),
        (&[APP], 4, 0, State::GvlBlocked, 1000),
    ];
    for (methods, seq, labels, state, ms) in rows {
        let key = RowKey {
            stack: stack(sums, methods),
            thread: sums.thread(process, seq),
            labels,
            state,
        };
        sums.add(key, wall(ms * MS));
    }
}

fn fill_job(sums: &mut Sums, process: u32) {
    let odd = ("Übung#計算\u{1b}]0;title\u{7}", "/app/odd\u{9b}name.rb");
    let key = RowKey {
        stack: stack(
            sums,
            &[("Sidekiq::Job#perform", "/gems/sidekiq/job.rb"), odd],
        ),
        thread: sums.thread(process, 1),
        labels: 0,
        state: State::Running,
    };
    sums.add(key, wall(100 * MS));
}

/// What is on the screen, line by line.
pub fn drawn(app: &mut App, sums: &Sums, size: (u16, u16), look: Look) -> String {
    let (width, height) = size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    app.refresh(sums, room(height));
    let shown =
        |frame: &mut ratatui::Frame<'_>| draw(app, app.shown(sums), look, frame.buffer_mut());
    terminal.draw(shown).expect("drawn");
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line += symbol;
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// The screens, with what was done before.
fn scenes() -> Vec<(&'static str, App)> {
    let screen = |screen| App {
        screen,
        ..App::default()
    };
    let mut hot = screen(Screen::Tree);
    hot.tree.opening = Some(crate::lines::Opening::Hottest(0));
    let mut up = screen(Screen::Tree);
    up.tree.bottom_up = true;
    up.tree.opening = Some(crate::lines::Opening::Hottest(0));
    vec![
        ("methods", screen(Screen::Methods)),
        (
            "methods-by-process-since-mark",
            App {
                asked: Asked {
                    by_process: true,
                    scope: Scope::SinceMark,
                    ..Asked::default()
                },
                ..screen(Screen::Methods)
            },
        ),
        ("tree", hot),
        ("tree-callers", up),
        (
            "threads",
            App {
                asked: Asked {
                    scope: Scope::Total,
                    ..Asked::default()
                },
                ..screen(Screen::Threads)
            },
        ),
        ("threads-now", screen(Screen::Threads)),
        ("labels", screen(Screen::Labels)),
        ("memory", screen(Screen::Memory)),
        (
            "help",
            App {
                shows_help: true,
                ..App::default()
            },
        ),
    ]
}

#[test]
fn screens_are_as_they_were() {
    let sums = sums();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let rewrites = std::env::var_os("RPERF_REWRITE_GOLDEN").is_some();
    for (name, app) in &mut scenes() {
        let mut text = String::new();
        for size in SIZES {
            let _ = writeln!(text, "--- {} x {}", size.0, size.1);
            text += &drawn(app, &sums, size, LOOK);
        }
        let path = directory.join(format!("{name}.txt"));
        if rewrites {
            std::fs::write(&path, &text).expect("written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            golden == text,
            "{name} (RPERF_REWRITE_GOLDEN=1 writes it):\n{text}"
        );
    }
}

#[test]
fn blame_has_a_column_where_it_is_known() {
    let mut sums = sums();
    let key = sums.rows[0].key;
    let blame_ns = 250 * MS;
    sums.add(
        key,
        SumsValues {
            blame_ns,
            ..wall(0)
        },
    );
    let sorted = |sums: &Sums, size| {
        let mut app = App::of(sums);
        let last = app.screen.sorts(true).len() - 1;
        (0..last).for_each(|_| app.sort_by_next());
        drawn(&mut app, sums, size, LOOK)
    };
    for size in SIZES {
        assert!(!sorted(&sums, size).contains("blame"));
    }
    sums.processes[0].facts.blames = true;
    for size in SIZES {
        let text = sorted(&sums, size);
        let line = text.lines().find(|it| it.contains("Rack::Server#call"));
        assert!(text.contains("*blame/s"), "{text}");
        assert!(line.is_some_and(|it| it.contains("250 ms")), "{text}");
    }
    assert!(drawn(&mut App::of(&sums), &sums, SIZES[2], LOOK).contains(" blame/s"));
}

#[test]
fn below_60_columns_and_12_lines_it_says_so() {
    for size in [(59, 12), (60, 11), (10, 1), (1, 1)] {
        let text = drawn(&mut App::default(), &sums(), size, LOOK);
        let start = &"rperf top needs 60 columns and 12 lines"[..usize::from(size.0 - 1).min(39)];
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn nothing_on_the_screen_commands_the_terminal() {
    let plain = Look {
        colour: false,
        unicode: false,
    };
    for (_, app) in &mut scenes() {
        for look in [LOOK, plain] {
            let text = drawn(app, &sums(), (80, 24), look);
            assert!(
                !text.chars().any(|it| it.is_control() && it != '\n'),
                "{text:?}"
            );
            assert!(look.unicode || text.is_ascii(), "{text}");
        }
    }
}

#[test]
fn without_colours_nothing_is_coloured() {
    let sums = sums();
    for (colour, expected) in [(true, true), (false, false)] {
        let look = Look { colour, ..LOOK };
        let mut app = App::default();
        app.refresh(&sums, 19);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        let drawn = terminal.draw(|frame| draw(&app, &sums, look, frame.buffer_mut()));
        let cells = drawn.expect("drawn").buffer.content();
        let is_coloured = |cell: &ratatui::buffer::Cell| cell.fg != ratatui::style::Color::Reset;
        assert_eq!(cells.iter().any(is_coloured), expected);
    }
}

/// Large programs: a look at the cost, printed by `cargo test -- --ignored --nocapture cost`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_redraw_with_100_000_nodes() {
    let mut sums = Sums::default();
    let process = sums.add_process(1, "large");
    set_session(&mut sums, process, 1000);
    sums.begin_interval(process);
    let thread = sums.thread(process, 1);
    let mut stacks = vec![0];
    for number in 0..100_000_usize {
        let name = format!("Class{}#method", number % 5000);
        let frame = sums.frame(&name, "/a/b/c.rb", 0).expect("room");
        let stack = sums.stack(stacks[number / 3], frame, 0).expect("room");
        stacks.push(stack);
        let key = RowKey {
            stack,
            thread,
            labels: 0,
            state: State::Running,
        };
        sums.add(key, wall(number as u64 * 1000));
    }
    sums.end_interval(process, 1_000_000_000, 0);
    for (name, app) in &mut scenes() {
        let began = std::time::Instant::now();
        for _ in 0..10 {
            sums.end_round();
            drawn(app, &sums, (200, 60), LOOK);
        }
        eprintln!("{name}: {:?}", began.elapsed() / 10);
    }
}
