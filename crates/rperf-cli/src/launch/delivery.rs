//! Hands the session's profile over: tables to stderr, the file, and a word about
//! it. Called by `launch` when the program has ended.

use crate::options::Options;
use crate::output::{is_file, shown};
use crate::refusal::{say, tell};
use crate::report::screen::Screen;
use rperf_format::TextOptions;
use rperf_model::Profile;
use rperf_session::merge::Merged;
use rperf_session::output::{self, descriptor_of};
use rperf_session::page::stat::{self, CommandTimes, Figures};
use rperf_session::page::verbose;
use std::path::Path;

/// Does all that the options ask for, and returns whether there was a profile and it
/// is where it should be.
pub fn deliver(options: &Options, merged: &Merged, times: CommandTimes) -> bool {
    let Some(profile) = &merged.profile else {
        return false;
    };
    let mut tables = String::new();
    let width = Screen::stderr().width();
    if options.settings.verbose() {
        tables.push_str(&verbose::for_terminal(profile, width));
    }
    if let Some(stat) = options.stat {
        let figures = Figures {
            command: options.shown_command(),
            report: stat.report,
            shows_idle: stat.idle,
            lines: options.settings.shows_lines(),
            processes: merged.processes,
            times: Some(times),
            process: merged.stats,
        };
        tables.push_str(&stat::for_terminal(profile, &figures, width));
    }
    // With stderr closed the file still matters.
    tell(&tables);
    let is_written = match options.settings.output() {
        Some(path) => write(options, path, profile, merged.processes),
        None => true,
    };
    for line in verbose::not_counted(profile) {
        say(&line);
    }
    is_written
}

fn write(options: &Options, path: &Path, profile: &Profile, processes: usize) -> bool {
    let text = TextOptions {
        lines: options.settings.shows_lines(),
        whole: None,
    };
    match output::deliver(profile, path, options.settings.format(), text) {
        Ok(()) => {
            if !is_stream(path) {
                let path = shown(path);
                let summary = verbose::summary(profile, processes);
                say(&format!("wrote {} ({summary})", path.display()));
            }
            true
        }
        Err(misplaced) => {
            say(&misplaced.to_string());
            false
        }
    }
}

/// What is written there appears to the user by itself. `/dev/shm` has files.
fn is_stream(path: &Path) -> bool {
    let is_systems = path.starts_with("/dev") || path.starts_with("/proc");
    descriptor_of(path).is_some() || is_systems && !is_file(path)
}
