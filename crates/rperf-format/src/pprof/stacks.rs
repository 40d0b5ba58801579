//! Stacks of a pprof file that is being read: from functions and locations to nodes of the call
//! tree, and from synthetic leaves back to states. Called by the reader; any thread.

use super::message::{self, Location, Message};
use super::proto;
use super::texts::Texts;
use crate::ReadError;
use crate::last_stack::{LAST_STACKS, MAX_DEPTH};
use prost::Message as _;
use rperf_model::{
    DisplayFrame, Frame, FrameId, Node, NodeId, Profile, State, StringId, shown_line,
};
use rustc_hash::FxHashMap;
use std::mem;
use std::ops::Range;

/// The locations by id, each as its frames, leaf first.
pub(crate) struct Stacks {
    frames: Vec<ReadFrame>,
    /// By id, the first of its frames and the one behind its last.
    locations: FxHashMap<u64, (u32, u32)>,
    limits: FrameLimits,
    /// The nodes that samples may have from here on.
    left: FrameLimits,
    /// The callers in the last stack of each thread, or of several if there are many:
    /// the next one has most of them too.
    last_callers: [Callers; LAST_STACKS],
}

/// How many frames a profile may have, lest a small file make work without end: a
/// location may have any number of lines, and a stack any number of locations.
#[derive(Clone, Copy)]
pub(crate) struct FrameLimits {
    /// In all stacks together.
    pub all: u64,
    /// Frames that a stack does not share with the last one of its thread, in all stacks together:
    /// they cost much more.
    pub unshared: u64,
}

/// The locations of a stack but for its leaf.
#[derive(Default)]
struct Callers {
    /// The ids in the order of the file: the root's is the last one.
    location_ids: Vec<u64>,
    /// For each of them, from the root, its node, which is that of its innermost frame.
    nodes: Vec<Caller>,
}

#[derive(Clone, Copy)]
struct Caller {
    node: NodeId,
    /// Frames from the root up to here.
    depth: u64,
}

impl Callers {
    /// Takes `location_ids` in place of what it has, and keeps the nodes that hold.
    fn move_to(&mut self, location_ids: &[u64]) {
        let shared = equal_from_the_end(&self.location_ids, location_ids);
        self.nodes.truncate(shared);
        self.location_ids.clear();
        self.location_ids.extend_from_slice(location_ids);
    }
}

/// Elements that the ends of `a` and `b` have in common; by blocks, which the compiler
/// turns into vector instructions.
fn equal_from_the_end(a: &[u64], b: &[u64]) -> usize {
    const BLOCK: usize = 8;
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let equal = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a.iter().rev().zip(b.iter().rev()).skip(equal);
    equal + rest.take_while(|(a, b)| a == b).count()
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
    /// Takes in functions and locations.
    pub(crate) fn new(
        message: &Message<'_>,
        texts: &mut Texts<'_>,
        profile: &mut Profile,
        limits: FrameLimits,
    ) -> Result<Self, ReadError> {
        let functions = functions(message, texts, profile)?;
        let mappings = mappings(message, texts, profile)?;
        let mut stacks = Self {
            frames: Vec::new(),
            locations: FxHashMap::default(),
            limits,
            left: limits,
            last_callers: [(); LAST_STACKS].map(|()| Callers::default()),
        };
        for &location in &message.locations {
            let first = stacks.frames.len();
            let location = Location::read(location, |line| {
                let id = line.function_id;
                let frame = functions.get(&id).copied().ok_or_else(|| {
                    ReadError::damaged(format!("there is no function with id {id}"))
                })?;
                let read = ReadFrame {
                    frame,
                    line: shown_line(line.line),
                    meaning: meaning(profile, frame),
                };
                message::push(
                    &mut stacks.frames,
                    read,
                    message.max_rows,
                    "lines of locations",
                )
            })?;
            if stacks.frames.len() == first {
                let path = mappings.get(&location.mapping_id).copied();
                let path = path.unwrap_or_default();
                texts.charge(profile.strings.get(path).len())?;
                let frame = frame_by_address(profile, location.address, path);
                stacks.frames.push(ReadFrame {
                    frame,
                    line: 0,
                    meaning: Meaning::Real,
                });
            }
            let range = (first as u32, stacks.frames.len() as u32);
            insert_new(&mut stacks.locations, location.id, range, "location")?;
        }
        Ok(stacks)
    }

    /// The node of the stack with these locations, leaf first, and the state that
    /// its leaf stands for, if any.
    pub(crate) fn node(
        &mut self,
        location_ids: &[u64],
        thread: u32,
        profile: &mut Profile,
    ) -> Result<(NodeId, Option<State>), ReadError> {
        let Some((&leaf_id, caller_ids)) = location_ids.split_first() else {
            return Ok((NodeId::ROOT, None));
        };
        let (parent, depth) = self.callers(caller_ids, thread, profile)?;
        let mut frames = self.frames_of(leaf_id)?;
        let depth = depth + frames.len() as u64;
        let left = self.left.all.checked_sub(depth);
        self.left.all = left.ok_or(too_large(self.limits.all, "frames in all stacks"))?;
        let mut state = None;
        match self.frames[frames.start].meaning {
            Meaning::State(of_leaf) => {
                state = Some(of_leaf);
                frames.start += 1;
            }
            Meaning::Placeholder if depth == 1 => frames.start += 1,
            _ => {}
        }
        Ok((self.intern(parent, frames, profile)?, state))
    }

    /// The node of these locations, and how many frames it has.
    fn callers(
        &mut self,
        location_ids: &[u64],
        thread: u32,
        profile: &mut Profile,
    ) -> Result<(NodeId, u64), ReadError> {
        let slot = thread as usize % LAST_STACKS;
        let mut callers = mem::take(&mut self.last_callers[slot]);
        callers.move_to(location_ids);
        let last = callers.nodes.last();
        let (mut node, mut depth) = last.map_or((NodeId::ROOT, 0), |last| (last.node, last.depth));
        for &location_id in location_ids.iter().rev().skip(callers.nodes.len()) {
            let frames = self.frames_of(location_id)?;
            depth += frames.len() as u64;
            node = self.intern(node, frames, profile)?;
            callers.nodes.push(Caller { node, depth });
        }
        if callers.nodes.len() <= MAX_DEPTH {
            self.last_callers[slot] = callers;
        }
        Ok((node, depth))
    }

    /// The frames of a location; there is one at least.
    fn frames_of(&self, location_id: u64) -> Result<Range<usize>, ReadError> {
        let range = self.locations.get(&location_id);
        let (start, end) = range.ok_or_else(|| {
            ReadError::damaged(format!("there is no location with id {location_id}"))
        })?;
        Ok(*start as usize..*end as usize)
    }

    /// The node of these frames, leaf first, called by `parent`.
    fn intern(
        &mut self,
        parent: NodeId,
        frames: Range<usize>,
        profile: &mut Profile,
    ) -> Result<NodeId, ReadError> {
        let left = self.left.unshared.checked_sub(frames.len() as u64);
        self.left.unshared = left.ok_or(too_large(
            self.limits.unshared,
            "frames that stacks don't share",
        ))?;
        let frames = self.frames[frames].iter().rev();
        let node = frames.fold(parent, |parent, read| {
            profile.tree.intern(Node {
                parent,
                frame: read.frame,
                line: read.line,
            })
        });
        Ok(node)
    }
}

fn too_large(limit: u64, unit: &'static str) -> ReadError {
    ReadError::TooLarge { limit, unit }
}

fn functions(
    message: &Message<'_>,
    texts: &mut Texts<'_>,
    profile: &mut Profile,
) -> Result<FxHashMap<u64, FrameId>, ReadError> {
    let mut functions = FxHashMap::default();
    for &function in &message.functions {
        let function = proto::Function::decode(function)?;
        let name = match function.name {
            0 => function.system_name,
            name => name,
        };
        let frame = Frame {
            name: texts.name(name, &mut profile.strings)?,
            path: texts.name(function.filename, &mut profile.strings)?,
            first_line: shown_line(function.start_line),
        };
        let frame = profile.frames.intern(frame);
        insert_new(&mut functions, function.id, frame, "function")?;
    }
    Ok(functions)
}

fn mappings(
    message: &Message<'_>,
    texts: &mut Texts<'_>,
    profile: &mut Profile,
) -> Result<FxHashMap<u64, StringId>, ReadError> {
    let mut mappings = FxHashMap::default();
    for &mapping in &message.mappings {
        let mapping = proto::Mapping::decode(mapping)?;
        let filename = texts.name(mapping.filename, &mut profile.strings)?;
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
