//! What is fed: each reader of bytes that others make, in the order of who can make them.

mod messages;
mod objects;
mod planted;
mod profile;
mod sessions;
mod statement;

pub use planted::{PLANTED, is_harmful};

/// A reader, and whole inputs for it.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What feeds it.
    pub fed_by: &'static str,
    /// Reads an input, and does with it what users can do.
    pub read: fn(&[u8]),
    /// Whole inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 9] = [
    Target {
        name: "profile",
        fed_by: "files of pprof, of any tool; programs that are watched",
        read: profile::read,
        seeds: profile::seeds,
    },
    Target {
        name: "zipped-profile",
        fed_by: "the same, as gzip has it",
        read: profile::read_zipped,
        seeds: profile::zipped_seeds,
    },
    Target {
        name: "delta",
        fed_by: "programs that are watched, in 'rperf top'",
        read: messages::read_deltas,
        seeds: messages::deltas,
    },
    Target {
        name: "request",
        fed_by: "whoever reaches the port, 'rperf serve' or the viewer",
        read: messages::read_request,
        seeds: messages::requests,
    },
    Target {
        name: "reply",
        fed_by: "programs that are watched",
        read: messages::read_reply,
        seeds: messages::replies,
    },
    Target {
        name: "answer",
        fed_by: "programs that are watched: what they say of themselves and their stacks",
        read: messages::read_answer,
        seeds: messages::answers,
    },
    Target {
        name: "objects",
        fed_by: "programs that are watched: the graph of their objects; files of 'rperf heap -o'",
        read: objects::read_objects,
        seeds: objects::graphs,
    },
    Target {
        name: "session",
        fed_by: "the processes of a session, and the environment",
        read: sessions::read,
        seeds: sessions::seeds,
    },
    Target {
        name: "statement",
        fed_by: "the program: its statements, with what its users enter",
        read: statement::read_statement,
        seeds: statement::statements,
    },
];
