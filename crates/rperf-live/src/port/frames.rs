//! The frames of stacks as JSON: each is in a list once, and a stack has their places in it.

use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;

/// What a frame is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameName {
    /// The method, with its class.
    pub name: String,
    /// The file; `None` for a method of C, which is shown at the line that calls it.
    pub path: Option<String>,
}

/// The frames of an answer, as JSON, and where in the list each is.
pub struct Places {
    /// The items of the list.
    pub text: String,
    names: Vec<Quoted>,
    /// By name, by whose path it has (if there is one), and by line.
    places: HashMap<(u32, Option<u32>, u32), u32>,
}

/// The parts of frames, quoted for JSON.
struct Quoted {
    name: String,
    /// `None` for methods of C.
    path: Option<String>,
}

impl Quoted {
    fn of(frame: &FrameName) -> Self {
        Quoted {
            name: json!(frame.name).to_string(),
            path: frame.path.as_ref().map(|path| json!(path).to_string()),
        }
    }
}

impl Places {
    /// None yet.
    pub fn of<'a>(names: impl Iterator<Item = &'a FrameName>) -> Self {
        Places {
            text: String::new(),
            names: names.map(Quoted::of).collect(),
            places: HashMap::new(),
        }
    }

    /// The places of a stack's frames, as the items of a list.
    pub fn list(&mut self, stack: &[(u32, u32)]) -> String {
        // From the root on: a method of C is where it was called.
        let mut caller = (None, 0);
        let mut places = Vec::with_capacity(stack.len());
        for &(name, line) in stack.iter().rev() {
            let Some(quoted) = self.names.get(name as usize) else {
                continue;
            };
            if quoted.path.is_some() {
                caller = (Some(name), line);
            }
            places.push(self.place((name, caller.0, caller.1)));
        }
        let places = places.iter().rev().map(u32::to_string);
        places.collect::<Vec<_>>().join(",")
    }

    fn place(&mut self, frame: (u32, Option<u32>, u32)) -> u32 {
        let next = self.places.len() as u32;
        let (name, caller, line) = frame;
        *self.places.entry(frame).or_insert_with(|| {
            let comma = if next > 0 { "," } else { "" };
            let path = caller.and_then(|it| self.names[it as usize].path.as_deref());
            let (name, path) = (&self.names[name as usize].name, path.unwrap_or("\"\""));
            // A String takes it all.
            let _ = write!(
                self.text,
                "{comma}{{\"name\":{name},\"path\":{path},\"line\":{line}}}"
            );
            next
        })
    }
}
