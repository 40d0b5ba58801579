//! What places of names are called: classes, modules, threads, fibers. Called by `names`.

use super::{Names, those_of};
use rperf_protocol::heap::kind::Kind;

/// References of a singleton class among which its object is looked for.
const LOOKED_AT: usize = 1 << 16;

/// References without a name among which an object has its class.
const FIRST: usize = 64;

impl Names<'_> {
    /// What a place is called.
    pub fn of_place(&self, place: u32) -> String {
        let kind = self.graph.kinds[place as usize];
        let name = self.graph.name(place);
        if kind.is_thread() {
            return match name.filter(|it| !it.is_empty()) {
                Some(name) => format!("Thread {name:?}"),
                None => "a Thread without a name".into(),
            };
        }
        if kind.is_fiber() {
            return self.of_fiber(place);
        }
        let what = match kind.is_singleton() {
            true => return format!("singleton class of {}", self.attached(place)),
            false if kind.ruby_type() == Kind::CLASS => "class",
            false => "module",
        };
        match name {
            Some(name) => format!("{what} {name}"),
            None => format!("a {what} without a name"),
        }
    }

    /// What something is called that a place refers to by no name.
    pub fn nameless(&self, place: u32) -> String {
        let kind = self.graph.kinds[place as usize];
        if kind.is_thread() || kind.is_fiber() {
            format!("stack of {}", self.of_place(place))
        } else if kind.is_singleton() {
            format!("singleton methods of {}", self.attached(place))
        } else {
            format!("{} (methods)", self.of_place(place))
        }
    }

    /// A fiber by its own name, by what holds it, or by its thread: a thread's stack may have a word that looks like
    /// a fiber which it doesn't run.
    fn of_fiber(&self, fiber: u32) -> String {
        if let Some(name) = self.proper_name(fiber) {
            return name;
        }
        let held = self.paths.to_fiber(fiber).and_then(|it| self.begin_of(it));
        if let Some(name) = held {
            return format!("a Fiber in {name}");
        }
        match those_of(&self.fibers, fiber, |it| it.0).first() {
            Some(&(_, thread)) => format!("a Fiber of {}", self.of_place(thread)),
            None => "a Fiber".into(),
        }
    }

    /// The constant or variable with which the path to a step begins.
    fn begin_of(&self, step: u32) -> Option<String> {
        let (first, second) = self.paths.first_two(step)?;
        match second {
            Some(second) if self.is_proper(first.example) && second.name > 0 => {
                Some(self.of_reference(first.example, second.name))
            }
            _ => {
                let variable = self.variables_of(first.example).first()?;
                Some(self.graph.text(variable.1).into())
            }
        }
    }

    /// Whose a singleton class is: the object refers to its class, and the class to its object.
    fn attached(&self, class: u32) -> String {
        let graph = self.graph;
        let is_its = |object: &u32| {
            let others = graph.references(*object).filter(|it| it.name == 0);
            let is_singleton = graph.kinds[*object as usize].is_singleton();
            !is_singleton
                && !graph.is_internal(*object)
                && others.take(FIRST).any(|it| it.target == class)
        };
        let references = graph.references(class).take(LOOKED_AT);
        let attached = references.map(|it| it.target).find(is_its);
        let Some(object) = attached else {
            return "an object".into();
        };
        match (graph.name(object), self.proper_name(object)) {
            (Some(name), _) if !name.is_empty() => name.into(),
            (_, Some(name)) => name,
            _ => format!("an instance of {}", graph.class_name(object)),
        }
    }
}
