//! Names of an epoch's frames, in the making: to name a frame takes the VM a while, so frames are
//! named a few at a time, and other threads run in between. With the GVL, outside of hooks.

use crate::ids::FrameWord;
use rperf_model::{FrameId, Profile};
use std::sync::Arc;

/// What the bridge knows of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Qualified name.
    pub name: String,
    /// Path, or a marker such as `<C method>`.
    pub path: String,
    /// Line of the definition, or 0.
    pub first_line: u32,
}

impl ResolvedFrame {
    /// A frame without a place in a file.
    pub fn new(name: &str, path: &str) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            first_line: 0,
        }
    }

    /// The frame in a profile.
    pub fn intern(&self, profile: &mut Profile) -> FrameId {
        profile.frames.intern_named(
            &mut profile.strings,
            &self.name,
            &self.path,
            self.first_line,
        )
    }
}

/// The frames of an epoch's frame table in their order, the first of which have names. Those
/// without must stay alive.
#[derive(Debug, Clone, Default)]
pub struct FrameNames {
    frames: Vec<FrameWord>,
    names: Vec<Arc<ResolvedFrame>>,
}

impl FrameNames {
    /// The `frames`, the first of which have the `names`.
    pub fn new(frames: Vec<FrameWord>, names: Vec<Arc<ResolvedFrame>>) -> Self {
        Self { frames, names }
    }

    /// The frame that is to be named next; `None` if all have names.
    pub fn next(&self) -> Option<FrameWord> {
        self.frames.get(self.names.len()).copied()
    }

    /// Names `frame`, if it is still the next one: several threads may be at it.
    pub fn add(&mut self, frame: FrameWord, name: ResolvedFrame) {
        if self.next() == Some(frame) {
            self.names.push(Arc::new(name));
        }
    }

    /// The frames without a name: the garbage collector's roots.
    pub fn unnamed(&self) -> &[FrameWord] {
        self.frames.get(self.names.len()..).unwrap_or_default()
    }

    /// The names, in the order of the frames.
    pub fn names(&self) -> &[Arc<ResolvedFrame>] {
        &self.names
    }

    /// The names alone.
    pub fn into_names(self) -> Vec<Arc<ResolvedFrame>> {
        self.names
    }

    /// Bytes held, roughly: the texts are not counted.
    pub fn memory(&self) -> usize {
        self.frames.capacity() * size_of::<FrameWord>() + names_memory(&self.names)
    }
}

/// Bytes that names take, roughly: their texts are not counted.
pub fn names_memory(names: &Vec<Arc<ResolvedFrame>>) -> usize {
    let each = size_of::<Arc<ResolvedFrame>>() + size_of::<ResolvedFrame>();
    names.capacity() * each
}

/// The frames of snapshots that are being taken, by any number of threads, while these give them
/// names. They are no longer the session's, or may cease to be at any moment.
#[derive(Debug, Default)]
pub struct NamingJobs {
    jobs: Vec<(JobId, FrameNames)>,
    last: u64,
}

/// The id of one thread's frames among the [`NamingJobs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobId(u64);

impl NamingJobs {
    /// None.
    pub const fn new() -> Self {
        Self {
            jobs: Vec::new(),
            last: 0,
        }
    }

    /// Keeps `frames` until they are taken back.
    pub fn add(&mut self, frames: FrameNames) -> JobId {
        self.last += 1;
        let id = JobId(self.last);
        self.jobs.push((id, frames));
        id
    }

    /// What `id` stands for; `None` in a forked child.
    pub fn get(&mut self, id: JobId) -> Option<&mut FrameNames> {
        let found = self.jobs.iter_mut().find(|(job, _)| *job == id);
        found.map(|(_, frames)| frames)
    }

    /// Takes back what `id` stands for; empty in a forked child.
    pub fn take(&mut self, id: JobId) -> FrameNames {
        let row = self.jobs.iter().position(|(job, _)| *job == id);
        row.map_or_else(FrameNames::default, |row| self.jobs.swap_remove(row).1)
    }

    /// Lets go of all, in a forked child: the threads that they belong to are not there.
    pub fn forget(&mut self) {
        self.jobs.clear();
    }

    /// The frames without a name: the garbage collector's roots.
    pub fn unnamed(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let jobs = self.jobs.iter();
        jobs.flat_map(|(_, frames)| frames.unnamed().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResolvedFrame {
        ResolvedFrame {
            name: text.into(),
            path: "app.rb".into(),
            first_line: 1,
        }
    }

    #[test]
    fn frames_are_named_in_their_order_and_needed_until_then() {
        let mut jobs = NamingJobs::new();
        let known = vec![Arc::new(name("one"))];
        let first = jobs.add(FrameNames::new(vec![1, 2, 3], known));
        let second = jobs.add(FrameNames::new(vec![3, 4], Vec::new()));
        assert_eq!(jobs.unnamed().collect::<Vec<_>>(), [2, 3, 3, 4]);
        let frames = jobs.get(first).expect("it is there");
        assert_eq!(frames.next(), Some(2));
        frames.add(2, name("two"));
        frames.add(2, name("too late"));
        assert_eq!(frames.next(), Some(3));
        frames.add(3, name("three"));
        assert_eq!((frames.next(), frames.unnamed()), (None, &[][..]));
        assert_eq!(jobs.unnamed().collect::<Vec<_>>(), [3, 4]);
        let names = jobs.take(first).into_names();
        let names: Vec<&str> = names.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "three"]);
        assert!(jobs.get(first).is_none());
        jobs.forget();
        assert!(jobs.take(second).names().is_empty());
    }
}
