//! Strings, functions and locations of a pprof file that is being written, with their ids. Called
//! by the writer; any thread.

use crate::pprof::proto;
use rperf_model::{DisplayFrame, Profile};
use rustc_hash::FxHashMap;

/// The one mapping, which all locations are in.
pub(super) const MAPPING_ID: u64 = 1;

/// The tables in the making; ids in them are dense from 1, as tools like best.
pub(super) struct Tables<'a> {
    profile: &'a Profile,
    string_table: Vec<Vec<u8>>,
    texts: FxHashMap<String, i64>,
    function: Vec<proto::Function>,
    /// By name, path and first line, as texts.
    functions: FxHashMap<(i64, i64, i64), u64>,
    location: Vec<proto::Location>,
    locations: FxHashMap<DisplayFrame, u64>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut tables = Self {
            profile,
            string_table: Vec::new(),
            texts: FxHashMap::default(),
            function: Vec::new(),
            functions: FxHashMap::default(),
            location: Vec::new(),
            locations: FxHashMap::default(),
        };
        // Tools refuse files whose first string is not the empty one.
        tables.text("");
        tables
    }

    /// Puts the tables where they belong.
    pub(super) fn move_into(self, message: &mut proto::Profile) {
        message.string_table = self.string_table;
        message.function = self.function;
        message.location = self.location;
    }

    pub(super) fn text(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.string_table.len() as i64;
        self.string_table.push(text.into());
        self.texts.insert(text.to_string(), id);
        id
    }

    pub(super) fn location(&mut self, frame: DisplayFrame) -> u64 {
        if let Some(&id) = self.locations.get(&frame) {
            return id;
        }
        let text = self.profile.frame_text(frame);
        let function_id = self.function(text.name, text.path, text.first_line);
        let id = self.location.len() as u64 + 1;
        self.location.push(proto::Location {
            id,
            mapping_id: MAPPING_ID,
            address: 0,
            line: vec![proto::Line {
                function_id,
                line: i64::from(text.line),
            }],
        });
        self.locations.insert(frame, id);
        id
    }

    fn function(&mut self, name: &str, path: &str, first_line: u32) -> u64 {
        let (name, filename) = (self.text(name), self.text(path));
        let start_line = i64::from(first_line);
        let next = self.function.len() as u64 + 1;
        let id = *self
            .functions
            .entry((name, filename, start_line))
            .or_insert(next);
        if id == next {
            self.function.push(proto::Function {
                id,
                name,
                // If it were the name, pprof would take that for C++ and cut
                // `<main>` out of `block in <main>`.
                system_name: 0,
                filename,
                start_line,
            });
        }
        id
    }
}
