//! Hands the session's profile over: tables to stderr, the file, and a word about
//! it. Called by `launch` when the program has ended.

use crate::options::Options;
use crate::stat::{self, CommandTimes, Figures};
use crate::{say, verbose};
use rperf_format::{Format, TextOptions};
use rperf_model::Profile;
use rperf_session::merge::Merged;
use rperf_session::{output, session_folder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Does all that the options ask for, and returns whether there was a profile and it
/// is where it should be.
pub fn deliver(options: &Options, merged: &Merged, times: CommandTimes) -> bool {
    let Some(profile) = &merged.profile else {
        return false;
    };
    let mut tables = String::new();
    if options.verbose {
        tables.push_str(&verbose::lines(profile));
    }
    if let Some(stat) = options.stat {
        let figures = Figures {
            command: options.shown_command(),
            report: stat.report,
            lines: options.lines == Some(true),
            processes: merged.processes,
            times: Some(times),
            process: merged.figures,
        };
        tables.push_str(&stat::render(profile, &figures));
    }
    // With stderr closed the file still matters.
    let _ = io::stderr().write_all(tables.as_bytes());
    match &options.output {
        Some(path) => write(options, path, profile, merged.processes),
        None => true,
    }
}

fn write(options: &Options, path: &Path, profile: &Profile, processes: usize) -> bool {
    let format = options.format.unwrap_or_else(|| Format::from_path(path));
    match encode_to(options, path, profile, format) {
        Ok(()) => {
            if !is_stream(path) {
                let path = shown(path);
                let summary = verbose::summary(profile, processes);
                say(&format!("wrote {} ({summary})", path.display()));
            }
            true
        }
        Err(error) => {
            let outcome = save_elsewhere(options, profile);
            say(&format!(
                "can't write the profile to {} ({error}); {outcome}",
                path.display()
            ));
            false
        }
    }
}

fn encode_to(options: &Options, path: &Path, profile: &Profile, format: Format) -> io::Result<()> {
    let mut content = Vec::new();
    let text = TextOptions {
        lines: options.lines == Some(true),
        whole: None,
    };
    rperf_format::write(profile, format, text, &mut content).map_err(io::Error::other)?;
    output::write(path, &content)
}

/// Where it must not get lost.
fn save_elsewhere(options: &Options, profile: &Profile) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = now.map_or(0, |now| now.as_millis());
    let name = format!("rperf-{}-{milliseconds}.pb.gz", std::process::id());
    let path = session_folder::temporary().join(name);
    let result = encode_to(options, &path, profile, Format::Pprof);
    let path = path.display();
    match result {
        Ok(()) => format!("it is in {path} (pprof)"),
        Err(error) => format!(
            "it is lost: neither can {path} be written ({error}); free some space or set TMPDIR"
        ),
    }
}

/// What is written there appears to the user by itself.
fn is_stream(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

/// As the user would write it.
fn shown(path: &Path) -> PathBuf {
    std::env::current_dir()
        .ok()
        .and_then(|folder| path.strip_prefix(folder).ok())
        .unwrap_or(path)
        .to_path_buf()
}
