//! The dictionary of an OTLP message that is being made. Index 0 of each table is the zero value,
//! and no entry is there twice. Any thread.

use super::message::{
    AnyValue, Attribute, Dictionary, Empty, Function, Line, Location, Stack, Value, ValueType,
};
use rperf_model::{self as model, DisplayFrame, Profile, WeightKey};
use rustc_hash::FxHashMap;

/// How a frame says that it is one of Ruby.
const FRAME_TYPE: (&str, &str) = ("profile.frame.type", "ruby");

pub(super) struct Tables<'a> {
    profile: &'a Profile,
    dictionary: Dictionary,
    strings: FxHashMap<String, i32>,
    functions: FxHashMap<(i32, i32, u32), i32>,
    locations: FxHashMap<DisplayFrame, i32>,
    attributes: FxHashMap<(i32, Value), i32>,
    stacks: FxHashMap<Stack, i32>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        Tables {
            profile,
            dictionary: Dictionary {
                mappings: vec![Empty {}],
                locations: vec![Location::default()],
                functions: vec![Function::default()],
                links: vec![Empty {}],
                strings: vec![String::new()],
                attributes: vec![Attribute::default()],
                stacks: vec![Stack::default()],
            },
            strings: FxHashMap::from_iter([(String::new(), 0)]),
            functions: FxHashMap::default(),
            locations: FxHashMap::default(),
            attributes: FxHashMap::default(),
            stacks: FxHashMap::default(),
        }
    }

    pub(super) fn into_dictionary(self) -> Dictionary {
        self.dictionary
    }

    fn text(&mut self, text: &str) -> i32 {
        if let Some(&index) = self.strings.get(text) {
            return index;
        }
        let index = push(&mut self.dictionary.strings, text.to_string());
        self.strings.insert(text.to_string(), index);
        index
    }

    pub(super) fn value_type(&mut self, value_type: &model::ValueType) -> ValueType {
        ValueType {
            name: self.text(&value_type.name),
            unit: self.text(&value_type.unit),
        }
    }

    pub(super) fn attribute(&mut self, key: &str, value: Value) -> i32 {
        let key = (self.text(key), value);
        if let Some(&index) = self.attributes.get(&key) {
            return index;
        }
        let attribute = Attribute {
            key: key.0,
            value: Some(AnyValue {
                value: Some(key.1.clone()),
            }),
        };
        let index = push(&mut self.dictionary.attributes, attribute);
        self.attributes.insert(key, index);
        index
    }

    pub(super) fn stack(&mut self, key: WeightKey) -> i32 {
        let profile = self.profile;
        let frames = profile.display_stack(key);
        let locations = frames.map(|frame| self.location(frame)).collect();
        let stack = Stack { locations };
        if let Some(&index) = self.stacks.get(&stack) {
            return index;
        }
        let index = push(&mut self.dictionary.stacks, stack.clone());
        self.stacks.insert(stack, index);
        index
    }

    fn location(&mut self, frame: DisplayFrame) -> i32 {
        if let Some(&index) = self.locations.get(&frame) {
            return index;
        }
        let text = self.profile.frame_text(frame);
        let (name, filename) = (self.text(text.name), self.text(text.path));
        let next = self.dictionary.functions.len() as i32;
        let function = *self
            .functions
            .entry((name, filename, text.first_line))
            .or_insert(next);
        if function == next {
            self.dictionary.functions.push(Function {
                name,
                filename,
                start_line: text.first_line.into(),
            });
        }
        let attributes = match frame {
            DisplayFrame::Real { .. } => {
                let (key, value) = FRAME_TYPE;
                vec![self.attribute(key, Value::Text(value.into()))]
            }
            // A state, rather than code.
            _ => Vec::new(),
        };
        let line = text.line.into();
        let location = Location {
            lines: vec![Line { function, line }],
            attributes,
        };
        let index = push(&mut self.dictionary.locations, location);
        self.locations.insert(frame, index);
        index
    }
}

/// Returns where it is.
fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    // The memory ends before the numbers do.
    (table.len() - 1) as i32
}
