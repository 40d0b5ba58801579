//! The fibers that are in no thread's stack: what the VM says, and its JSON.

use super::frames::{FrameName, Places};
use super::stack_list::Stack;
use serde_json::{Value, json};

/// A stack that some fibers have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiberStack {
    /// How many have it.
    pub count: u32,
    /// What Fiber#to_s says.
    pub state: String,
    /// Where their block is; empty if they have none in Ruby.
    pub block: String,
    /// Its frames.
    pub frames: Stack,
}

/// What the VM knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fibers {
    /// Why there are none to be shown.
    pub note: Option<String>,
    /// How many were found but not shown.
    pub left_out: u32,
    /// The stacks of the others.
    pub stacks: Vec<FiberStack>,
    /// The names of their frames.
    pub names: Vec<FrameName>,
    /// How long the walk of the heap took, which keeps the GVL.
    pub walk_ns: u64,
    /// How long all took, with what ran in between.
    pub elapsed_ns: u64,
}

impl Fibers {
    /// The fibers as JSON. The names of their frames are in `places` behind so many others.
    pub(super) fn to_json(&self, places: &mut Places, others: usize) -> String {
        let head = json!({
            "note": self.note,
            "left_out": self.left_out,
            "walk_ns": self.walk_ns,
            "elapsed_ns": self.elapsed_ns,
        });
        let stacks = self.stacks.iter().map(|stack| {
            let block = Some(&stack.block).filter(|it| !it.is_empty());
            let head = json!({ "count": stack.count, "state": stack.state, "block": block });
            let frames = stack.frames.iter();
            let frames: Vec<_> = frames
                .map(|(name, line)| (name + others as u32, *line))
                .collect();
            with(&head, "frames", &places.list(&frames))
        });
        let stacks: Vec<_> = stacks.collect();
        with(&head, "stacks", &stacks.join(","))
    }
}

/// The object with one key more, for a list.
fn with(object: &Value, key: &str, items: &str) -> String {
    let text = object.to_string();
    let text = text.strip_suffix('}').unwrap_or(&text);
    format!("{text},\"{key}\":[{items}]}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_json() {
        let name = FrameName {
            name: "Fiber.yield".into(),
            path: Some("a \"}.rb".into()),
        };
        let stack = |block: &str, frames| FiberStack {
            count: 3,
            state: "suspended".into(),
            block: block.into(),
            frames,
        };
        let fibers = Fibers {
            note: None,
            left_out: 4,
            stacks: vec![stack("a }", vec![(0, 7)]), stack("", Vec::new())],
            names: vec![name],
            walk_ns: 1,
            elapsed_ns: 2,
        };
        let other = FrameName {
            name: "other".into(),
            path: None,
        };
        let mut places = Places::of([&other].into_iter().chain(&fibers.names));
        places.list(&[(0, 0)]);
        let mut of = |fibers: &Fibers| -> Value {
            serde_json::from_str(&fibers.to_json(&mut places, 1)).expect("JSON")
        };
        let stacks = json!([
            { "count": 3, "state": "suspended", "block": "a }", "frames": [1] },
            { "count": 3, "state": "suspended", "block": null, "frames": [] },
        ]);
        let expected = json!({
            "note": null, "left_out": 4, "walk_ns": 1, "elapsed_ns": 2, "stacks": stacks,
        });
        assert_eq!(of(&fibers), expected);
        let failed = Fibers {
            note: Some("x".into()),
            ..Fibers::default()
        };
        assert_eq!(of(&failed)["note"], "x");
        let frame = r#"{"name":"Fiber.yield","path":"a \"}.rb","line":7}"#;
        assert!(places.text.ends_with(frame));
    }
}
