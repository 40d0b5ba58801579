//! The frames of stacks as JSON, which is put together of parts: there may be a hundred thousand.

use serde_json::json;
use std::fmt::Write;

/// What a frame is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameName {
    /// The method, with its class.
    pub name: String,
    /// The file; `None` for a method of C, which is shown at the line that calls it.
    pub path: Option<String>,
}

/// The parts of frames, quoted for JSON.
pub struct Quoted {
    name: String,
    /// `None` for methods of C.
    path: Option<String>,
}

impl Quoted {
    /// A frame.
    pub fn of(frame: &FrameName) -> Self {
        Quoted {
            name: json!(frame.name).to_string(),
            path: frame.path.as_ref().map(|path| json!(path).to_string()),
        }
    }
}

/// Appends the `frames` of a stack, with their key: the leaf first, which of the `names` it has, and
/// the line; 0 if there is none.
pub fn write_frames(frames: &[(u32, u32)], names: &[Quoted], text: &mut String) {
    text.push_str(",\"frames\":[");
    let begin = text.len();
    // From the root on: a method of C is where it was called.
    let mut caller = ("\"\"", 0);
    let mut found = Vec::with_capacity(frames.len());
    for &(name, line) in frames.iter().rev() {
        let Some(name) = names.get(name as usize) else {
            continue;
        };
        if let Some(path) = &name.path {
            caller = (path, line);
        }
        found.push((name, caller));
    }
    for (name, (path, line)) in found.iter().rev() {
        if text.len() > begin {
            text.push(',');
        }
        let name = &name.name;
        // A String takes it all.
        let _ = write!(text, "{{\"name\":{name},\"path\":{path},\"line\":{line}}}");
    }
    text.push(']');
}
