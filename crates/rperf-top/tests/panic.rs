//! Whatever ends the screens, the terminal is as it was before: here a panic of another thread. The
//! specs have the other ends.

use nix::pty::{Winsize, openpty};
use nix::sys::termios::tcgetattr;
use rperf_model::Profile;
use rperf_top::app::Screen;
use rperf_top::look::Look;
use rperf_top::run::{self, Signal, Surroundings};
use rperf_watch::sums::Sums;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// Set in the process that has the screens.
const CHILD: &str = "RPERF_TOP_TEST_PANICS";

/// A thread panics after the first pictures.
struct Panics(u32);

impl Surroundings for Panics {
    fn wait(&mut self, _: Duration) -> io::Result<()> {
        self.0 += 1;
        if self.0 == 3 {
            let ended = thread::spawn(|| panic!("the panic")).join();
            assert!(ended.is_err());
        }
        Ok(())
    }

    fn signal(&mut self) -> Option<Signal> {
        None
    }

    fn suspend(&mut self) {}

    fn looks_at(&mut self, _: Screen) {}

    fn last_line(&mut self) -> Option<String> {
        None
    }

    fn line(&mut self) -> Option<String> {
        None
    }

    fn write(&mut self, _: &str, _: Profile) -> String {
        String::new()
    }
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
    if env::var_os(CHILD).is_some() {
        let sums = Mutex::new(Sums::default());
        let shown = run::run(&sums, Look::of_environment(), &mut Panics(0));
        assert!(shown.is_err());
        return;
    }
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(Some(&size), None).expect("a terminal");
    let before = tcgetattr(&terminal.slave).expect("its settings");
    let other_end = || Stdio::from(terminal.slave.try_clone().expect("one more"));
    let own = env::current_exe().expect("this program");
    let name = "a_panic_gives_the_terminal_back_before_it_is_told";
    let mut child = Command::new(own)
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .env("TERM", "xterm")
        .stdin(other_end())
        .stdout(other_end())
        .stderr(other_end())
        .spawn()
        .expect("a child");
    let mut screen = File::from(terminal.master);
    let reader = thread::spawn(move || {
        let mut seen = Vec::new();
        // It ends with an error, as terminals do.
        let _ = screen.read_to_end(&mut seen);
        String::from_utf8_lossy(&seen).into_owned()
    });
    assert!(child.wait().expect("an end").success());
    let after = tcgetattr(&terminal.slave).expect("its settings");
    drop(terminal.slave);
    assert_eq!(after, before);
    let seen = reader.join().expect("no panic");
    let place = |text: &str| {
        seen.find(text)
            .unwrap_or_else(|| panic!("no {text:?}: {seen}"))
    };
    let left = place("\u{1b}[?1049l");
    assert!(place("\u{1b}[?1049h") < left && left < place("the panic"));
    assert!(place("\u{1b}[?25h") < place("the panic"), "the cursor");
}
