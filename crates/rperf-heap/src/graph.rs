//! The graph: objects by their numbers, their references one behind the other, roots and names.

use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::sampled::{Sample, Session, Site};
use rperf_protocol::heap::write::Reference;

/// No object, or no name.
pub const NONE: u32 = u32::MAX;

/// A root: what the VM begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// The name of its category.
    pub category: u32,
    /// The object.
    pub target: u32,
    /// The name of the global variable; 0 if it is none.
    pub variable: u32,
}

/// All that a session knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sampled {
    /// The session, if there is one.
    pub session: Option<Session>,
    /// The sites.
    pub sites: Vec<Site>,
    /// The samples whose objects are in the graph.
    pub samples: Vec<Sample>,
}

impl Sampled {
    /// The site of a sample, if it is known.
    pub fn site(&self, sample: &Sample) -> Option<&Site> {
        self.sites.get((sample.site as usize).checked_sub(1)?)
    }
}

/// The graph of a program's objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// The kinds of objects.
    pub kinds: Vec<Kind>,
    /// Their classes; [`NONE`] if it isn't known, as with what only the VM sees.
    pub classes: Vec<u32>,
    /// Their bytes.
    pub bytes: Vec<u64>,
    /// Where the references of each begin, and behind the last one, where all end.
    pub starts: Vec<u32>,
    /// The objects that are referred to.
    pub targets: Vec<u32>,
    /// The names of these references; 0 where there is none. Named ones come first.
    pub names: Vec<u32>,
    /// The roots.
    pub roots: Vec<Root>,
    /// What objects are called, by their numbers; in this order.
    pub called: Vec<(u32, u32)>,
    /// All names; that with number 0 is empty.
    pub texts: Vec<Box<str>>,
    /// What a session knows of them.
    pub sampled: Sampled,
    /// Whether all global variables are there.
    pub is_whole: bool,
}

impl Graph {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Whether an object is a place for names rather than a holder: a class, a module, a thread, a fiber.
    pub fn is_place(&self, object: u32) -> bool {
        let kind = self.kinds[object as usize];
        kind.is_module() || kind.is_thread() || kind.is_fiber()
    }

    /// The references of an object.
    pub fn references(&self, object: u32) -> impl Iterator<Item = Reference> + '_ {
        let (start, end) = (
            self.starts[object as usize] as usize,
            self.starts[object as usize + 1] as usize,
        );
        (start..end).map(|place| Reference {
            name: self.names[place],
            target: self.targets[place],
        })
    }

    /// The name with this number.
    pub fn text(&self, name: u32) -> &str {
        self.texts.get(name as usize).map_or("", |it| it)
    }

    /// What an object is called, if it has a name.
    pub fn name(&self, object: u32) -> Option<&str> {
        let place = self.called.binary_search_by_key(&object, |it| it.0).ok()?;
        Some(self.text(self.called[place].1))
    }

    /// Whether only the VM sees an object.
    pub fn is_internal(&self, object: u32) -> bool {
        let object = object as usize;
        self.kinds[object].is_of_vm() || self.classes[object] == NONE
    }

    /// What the class of an object is called.
    pub fn class_name(&self, object: u32) -> &str {
        self.name_of_class(self.classes[object as usize])
    }

    /// What a class is called, or what has none.
    pub fn name_of_class(&self, class: u32) -> &str {
        match class {
            NONE => "(VM)",
            class => self.name(class).unwrap_or("(anonymous class)"),
        }
    }
}
