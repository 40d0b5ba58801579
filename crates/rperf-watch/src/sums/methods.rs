//! The methods of all programs, each once, and the frames that are theirs.

use super::reading::CAP;
use rperf_model::{Frame, FrameId, Frames};
use rustc_hash::FxHashMap;
use std::ops::Deref;
use std::sync::Arc;

/// A method: its name and paths, fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: Arc<str>,
    /// Its file.
    pub path: Arc<str>,
    /// The path as people see it.
    pub short_path: Arc<str>,
}

/// The numbers of methods by name and path.
pub(super) type MethodNumbers = FxHashMap<(Arc<str>, Arc<str>), u32>;

/// All methods by their numbers, and which of them each frame belongs to: frames differ in their
/// lines, too, and in texts that look the same on a terminal.
#[derive(Debug, Clone, Default)]
pub struct Methods {
    all: Vec<Method>,
    /// How many of them have their short paths.
    shortened: usize,
    /// All frames as the programs send them.
    pub(super) frames: Frames,
    /// The method of each frame.
    of_frames: Vec<u32>,
}

impl Deref for Methods {
    type Target = [Method];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Methods {
    /// Whether there are some whose paths are as they were recorded.
    pub(super) fn has_new(&self) -> bool {
        self.shortened < self.all.len()
    }

    /// Gives all of them the paths that people see.
    pub(super) fn shorten(&mut self, short: impl Fn(&str) -> Arc<str>) {
        let mut known: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
        for method in &mut self.all {
            let path = Arc::clone(&method.path);
            let short = known.entry(path).or_insert_with_key(|path| short(path));
            method.short_path = Arc::clone(short);
        }
        self.shortened = self.all.len();
    }

    /// The method of a frame.
    pub(super) fn of_frame(&self, frame: FrameId) -> u32 {
        self.of_frames[frame.0 as usize]
    }

    /// The number of a frame. If it is new, `texts` are the name and the path of its method.
    pub(super) fn frame(
        &mut self,
        frame: Frame,
        texts: impl FnOnce() -> (Arc<str>, Arc<str>),
        known: &mut MethodNumbers,
    ) -> Option<FrameId> {
        if self.frames.len() >= CAP {
            return self.frames.find(&frame);
        }
        let id = self.frames.intern(frame);
        if id.0 as usize == self.of_frames.len() {
            let method = *known.entry(texts()).or_insert_with_key(|key| {
                self.all.push(Method {
                    name: Arc::clone(&key.0),
                    path: Arc::clone(&key.1),
                    short_path: Arc::clone(&key.1),
                });
                self.all.len() as u32 - 1
            });
            self.of_frames.push(method);
        }
        Some(id)
    }
}
