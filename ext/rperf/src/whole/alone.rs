//! A program that is profiled as a whole without an rperf command: the profile goes to a file, and the page
//! and the tables to stderr.

use super::memory;
use crate::interrupts::Interrupts;
use crate::made_session::MadeSession;
use crate::message;
use crate::profile::description;
use crate::ruby::{counters, stdout};
use crate::variables;
use magnus::Ruby;
use rperf_format::TextOptions;
use rperf_model::Profile;
use rperf_session::merge::Merged;
use rperf_session::os::OsStats;
use rperf_session::output;
use rperf_session::page::stat::{self, Figures};
use rperf_session::page::verbose;
use rperf_session::process_stats::ProcessStats;
use rperf_session::settings::Settings;
use std::ffi::OsString;
use std::sync::Arc;

pub struct Alone {
    pub settings: Arc<Settings>,
    /// What its children join.
    pub made: Option<Arc<MadeSession>>,
    /// By these a program begins that it becomes by exec.
    pub variables: Vec<(String, OsString)>,
}

impl Alone {
    pub fn deliver(&self, ruby: &Ruby, own: &Profile, tables: bool, interrupts: &mut Interrupts) {
        let made = self.made.as_ref();
        let merged = made.map(|made| made.merged(own, interrupts));
        let whole = merged.as_ref().and_then(|it| it.profile.as_ref());
        let profile = whole.unwrap_or(own);
        // The figures are taken before the writing, so that they don't include it; the file is written
        // before the tables are printed, as it matters more.
        let text = match tables {
            true => self.tables(ruby, profile, merged.as_ref(), interrupts),
            false => String::new(),
        };
        let mut messages = verbose::not_counted(profile);
        messages.extend(self.written(profile, interrupts));
        for line in messages {
            message::say(interrupts, &line);
        }
        message::write(interrupts, &text);
    }

    /// Writes the file; a line if it is elsewhere.
    fn written(&self, profile: &Profile, interrupts: &mut Interrupts) -> Option<String> {
        let path = self.settings.output()?;
        stdout::flush_before(path, interrupts);
        let options = TextOptions {
            lines: self.settings.shows_lines(),
            whole: None,
        };
        let deliver = || output::deliver(profile, path, self.settings.format(), options);
        let misplaced = interrupts.writing(deliver).err()?;
        Some(misplaced.to_string())
    }

    fn tables(
        &self,
        ruby: &Ruby,
        profile: &Profile,
        merged: Option<&Merged>,
        interrupts: &mut Interrupts,
    ) -> String {
        let mut text = String::new();
        if self.settings.verbose() {
            text += &verbose::statistics(profile);
        }
        if self.settings.stat() {
            let figures = self.figures(ruby, merged, interrupts);
            text += &stat::render(profile, &figures);
        }
        text
    }

    fn figures(
        &self,
        ruby: &Ruby,
        merged: Option<&Merged>,
        interrupts: &mut Interrupts,
    ) -> Figures {
        let mut process = ProcessStats {
            ruby: counters::counted(ruby, interrupts),
            os: OsStats::now(),
            memory: memory::at_end(ruby, interrupts),
            profiled_ns: 0,
        }
        .with_peak();
        let processes = merged.map_or(1, |it| it.processes);
        if let Some(merged) = merged.filter(|_| processes > 1) {
            process.add(merged.stats);
        }
        let command = self.settings.stat_command();
        Figures {
            command: match command {
                Some(command) => command.to_string_lossy().into_owned(),
                None => description::program(),
            },
            report: self.settings.stat_report(),
            lines: self.settings.shows_lines(),
            shows_idle: false,
            processes,
            times: None,
            process,
        }
    }

    /// A program started by exec begins as this one did, and writes the same file.
    pub fn show_variables(&self) {
        for (name, value) in &self.variables {
            variables::set(name.as_ref(), Some(value));
        }
    }

    /// The program runs on without them.
    pub fn hide_variables(&self) {
        for (name, _) in &self.variables {
            variables::set(name.as_ref(), None);
        }
    }

    pub fn close(&self) {
        if let Some(made) = &self.made {
            made.close();
        }
    }
}
