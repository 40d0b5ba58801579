//! The frames of stacks: each is in a list once, and a stack has their places in it.

use rperf_protocol::stacks::Frame;
use std::collections::HashMap;

/// What a frame is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameName {
    /// The method, with its class.
    pub name: String,
    /// The file; `None` for a method of C, which is shown at the line that calls it.
    pub path: Option<String>,
}

/// The frames of an answer, and where in the list each is.
pub struct Places<'a> {
    /// The list.
    pub frames: Vec<Frame<'a>>,
    names: &'a [FrameName],
    /// By name, by whose path it has (if there is one), and by line.
    places: HashMap<(u32, Option<u32>, u32), u32>,
}

impl<'a> Places<'a> {
    /// None yet.
    pub fn of(names: &'a [FrameName]) -> Self {
        Places {
            frames: Vec::new(),
            names,
            places: HashMap::new(),
        }
    }

    /// The places of a stack's frames.
    pub fn list(&mut self, stack: &[(u32, u32)]) -> Vec<u32> {
        // From the root on: a method of C is where it was called.
        let mut caller = (None, 0);
        let mut places = Vec::with_capacity(stack.len());
        for &(name, line) in stack.iter().rev() {
            let Some(found) = self.names.get(name as usize) else {
                continue;
            };
            if found.path.is_some() {
                caller = (Some(name), line);
            }
            places.push(self.place((name, caller.0, caller.1)));
        }
        places.reverse();
        places
    }

    fn place(&mut self, frame: (u32, Option<u32>, u32)) -> u32 {
        let next = self.frames.len() as u32;
        let (name, caller, line) = frame;
        *self.places.entry(frame).or_insert_with(|| {
            let path = caller.and_then(|it| self.names[it as usize].path.as_deref());
            self.frames.push(Frame {
                name: (&*self.names[name as usize].name).into(),
                path: path.unwrap_or_default().into(),
                line,
            });
            next
        })
    }
}
