//! Stacks of a pprof file that is being read: from functions and locations to nodes
//! of the call tree, and from synthetic leaves back to states. Any thread.

use super::proto;
use super::texts::Texts;
use crate::ReadError;
use rperf_model::{DisplayFrame, Frame, FrameId, Node, NodeId, Profile, State, StringId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The locations by id, each as its frames, leaf first.
pub(crate) struct Stacks {
    frames: Vec<ReadFrame>,
    locations: FxHashMap<u64, Range<usize>>,
    /// Frames that samples may have from here on, in all.
    frames_left: u64,
    max_frames: u64,
    /// The stack being read; kept for its memory.
    stack: Vec<ReadFrame>,
}

#[derive(Clone, Copy)]
struct ReadFrame {
    frame: FrameId,
    line: u32,
    meaning: Meaning,
}

#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Real,
    State(State),
    Placeholder,
}

impl Stacks {
    /// Takes in functions and locations. A location may have any number of lines and
    /// a stack any number of locations, so `max_frames` limits the frames of all
    /// stacks together: else a small file could make work without end.
    pub(crate) fn new(
        message: &proto::Profile,
        texts: &mut Texts<'_>,
        profile: &mut Profile,
        max_frames: u64,
    ) -> Result<Self, ReadError> {
        let functions = functions(message, texts, profile)?;
        let mappings = mappings(message, texts, profile)?;
        let mut stacks = Self {
            frames: Vec::new(),
            locations: FxHashMap::default(),
            frames_left: max_frames,
            max_frames,
            stack: Vec::new(),
        };
        for location in &message.location {
            let first = stacks.frames.len();
            for line in &location.line {
                let id = line.function_id;
                let frame = functions.get(&id).copied().ok_or_else(|| {
                    ReadError::damaged(format!("there is no function with id {id}"))
                })?;
                stacks.frames.push(ReadFrame {
                    frame,
                    line: to_line(line.line),
                    meaning: meaning(profile, frame),
                });
            }
            if location.line.is_empty() {
                let path = mappings.get(&location.mapping_id).copied();
                let frame = frame_by_address(profile, location.address, path.unwrap_or_default());
                stacks.frames.push(ReadFrame {
                    frame,
                    line: 0,
                    meaning: Meaning::Real,
                });
            }
            let range = first..stacks.frames.len();
            insert_new(&mut stacks.locations, location.id, range, "location")?;
        }
        Ok(stacks)
    }

    /// The node of the stack with these locations, leaf first, and the state that
    /// its leaf stands for, if any.
    pub(crate) fn node(
        &mut self,
        location_ids: &[u64],
        profile: &mut Profile,
    ) -> Result<(NodeId, Option<State>), ReadError> {
        self.stack.clear();
        for id in location_ids {
            let frames = self
                .locations
                .get(id)
                .ok_or_else(|| ReadError::damaged(format!("there is no location with id {id}")))?;
            self.frames_left =
                self.frames_left
                    .checked_sub(frames.len() as u64)
                    .ok_or(ReadError::TooLarge {
                        limit: self.max_frames,
                        unit: "frames in all stacks",
                    })?;
            self.stack.extend_from_slice(&self.frames[frames.clone()]);
        }
        let (state, frames) = match self.stack.as_slice() {
            [leaf] if leaf.meaning == Meaning::Placeholder => (None, &[][..]),
            [leaf, callers @ ..] => match leaf.meaning {
                Meaning::State(state) => (Some(state), callers),
                _ => (None, self.stack.as_slice()),
            },
            [] => (None, &[][..]),
        };
        let node = frames.iter().rev().fold(NodeId::ROOT, |parent, read| {
            profile.tree.intern(Node {
                parent,
                frame: read.frame,
                line: read.line,
            })
        });
        Ok((node, state))
    }
}

fn functions(
    message: &proto::Profile,
    texts: &mut Texts<'_>,
    profile: &mut Profile,
) -> Result<FxHashMap<u64, FrameId>, ReadError> {
    let mut functions = FxHashMap::default();
    for function in &message.function {
        let name = match function.name {
            0 => function.system_name,
            name => name,
        };
        let frame = Frame {
            name: texts.intern(name, &mut profile.strings)?,
            path: texts.intern(function.filename, &mut profile.strings)?,
            first_line: to_line(function.start_line),
        };
        let frame = profile.frames.intern(frame);
        insert_new(&mut functions, function.id, frame, "function")?;
    }
    Ok(functions)
}

fn mappings(
    message: &proto::Profile,
    texts: &mut Texts<'_>,
    profile: &mut Profile,
) -> Result<FxHashMap<u64, StringId>, ReadError> {
    let mut mappings = FxHashMap::default();
    for mapping in &message.mapping {
        let filename = texts.intern(mapping.filename, &mut profile.strings)?;
        insert_new(&mut mappings, mapping.id, filename, "mapping")?;
    }
    Ok(mappings)
}

/// A location that nobody has found a name for is shown by its address.
fn frame_by_address(profile: &mut Profile, address: u64, path: StringId) -> FrameId {
    let name = profile.strings.intern(&format!("{address:#x}"));
    profile.frames.intern(Frame {
        name,
        path,
        first_line: 0,
    })
}

fn meaning(profile: &Profile, frame: FrameId) -> Meaning {
    let text = profile.frame_text(DisplayFrame::Real { frame, line: 0 });
    if let Some(state) = State::from_synthetic_frame(text.name, text.path) {
        Meaning::State(state)
    } else if DisplayFrame::is_placeholder(text.name, text.path) {
        Meaning::Placeholder
    } else {
        Meaning::Real
    }
}

fn insert_new<T>(
    map: &mut FxHashMap<u64, T>,
    id: u64,
    value: T,
    what: &str,
) -> Result<(), ReadError> {
    if id == 0 || map.insert(id, value).is_some() {
        let why = if id == 0 { "id 0" } else { "an id twice" };
        return Err(ReadError::damaged(format!("a {what} has {why}")));
    }
    Ok(())
}

/// Lines that can't be are not known.
fn to_line(line: i64) -> u32 {
    u32::try_from(line).unwrap_or(0)
}
