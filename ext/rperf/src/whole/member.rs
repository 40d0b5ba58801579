//! A process that takes part in a session of several: its profile goes into the session's directory, to be
//! merged there. Each step of the process is a line of the session's status file.

use super::memory;
use crate::interrupts::Interrupts;
use crate::message;
use crate::ruby::counters;
use magnus::Ruby;
use rperf_format::{Format, TextOptions};
use rperf_model::Profile;
use rperf_session::directory;
use rperf_session::event::{Change, Event, MemberId};
use rperf_session::os::OsStats;
use rperf_session::output::{WriteError, write_profile};
use rperf_session::process_id::ProcessId;
use rperf_session::process_stats::{ProcessStats, RubyStats};
use rperf_vm::clock::monotonic_ns;
use std::io;
use std::path::PathBuf;

pub struct Member {
    directory: PathBuf,
    begun_ns: u64,
    /// What its parent had counted when it forked this process.
    before: RubyStats,
    /// Whether it says what its memory is of at its end.
    shows_memory: bool,
}

impl Member {
    /// A member that begins now. `shows_memory`: it says what its memory is of at its end.
    pub fn new(
        ruby: &Ruby,
        directory: PathBuf,
        is_forked: bool,
        shows_memory: bool,
        interrupts: &mut Interrupts,
    ) -> Self {
        let before = match is_forked {
            true => counters::counted(ruby, interrupts),
            false => RubyStats::default(),
        };
        Self {
            directory,
            begun_ns: monotonic_ns(),
            before,
            shows_memory,
        }
    }

    pub fn tell_start(&self) {
        self.tell_event(&Event::Started {
            process: ProcessId::own(),
            begun_ns: self.begun_ns,
        });
    }

    pub fn tell(&self, change: Change) {
        self.tell_event(&Event::Of(self.id(), change));
    }

    fn id(&self) -> MemberId {
        MemberId {
            pid: std::process::id() as i32,
            begun_ns: self.begun_ns,
        }
    }

    /// If the session has ended nobody wants to know.
    fn tell_event(&self, event: &Event) {
        let _ = event.tell(&self.directory);
    }

    pub fn deliver(&self, ruby: &Ruby, profile: &Profile, interrupts: &mut Interrupts) {
        // First, so that the figures don't include the writing.
        let stats = ProcessStats {
            ruby: counters::counted(ruby, interrupts).since(self.before),
            os: OsStats::now(),
            memory: match self.shows_memory {
                true => memory::at_end(ruby, interrupts),
                false => None,
            },
            profiled_ns: 0,
        }
        .with_peak();
        let path = directory::profile_path(&self.directory, self.id().pid, self.begun_ns);
        let written = interrupts.without_its_gvl(|| {
            write_profile(profile, &path, Some(Format::Pprof), TextOptions::default())
        });
        match written {
            Ok(()) => self.tell(Change::Delivered(stats)),
            // The session has ended, and has said that this process still ran.
            Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let line = format!(
                    "the profile of process {} is lost: can't write to {} ({error})",
                    self.id().pid,
                    self.directory.display()
                );
                let is_said = message::was_said(interrupts, &line);
                let failed = Event::Of(self.id(), Change::Failed);
                // Else the command says what it doesn't hear of.
                if failed.tell(&self.directory).is_err() && is_said {
                    self.id().sign_failure(&self.directory);
                }
            }
        }
    }
}
