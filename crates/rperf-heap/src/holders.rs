//! Holders: what is dominated by nobody but a class, a module, a thread or the roots; their names, and what each of
//! them has.

use crate::above::Above;
use crate::dominators::Dominators;
use crate::file::PathStep;
use crate::graph::{Graph, NONE};
use crate::names::Names;
use crate::paths::{Paths, Step};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What rperf holds itself is one row.
pub const OWN: &str = "rperf";

/// The holder of what is in the main script's local variables.
const MAIN_SCRIPT: &str = "local variables of the main script";

/// Ruby's class of Ractors.
const RACTOR: &str = "Ractor";

/// Steps down that are told.
const DEEPEST: usize = 12;

/// Names of one object above which their table isn't kept for the next one: to clear it takes as long as it is large.
const LARGE: usize = 1 << 10;

/// All that is known of a graph.
pub struct Known<'a> {
    pub graph: &'a Graph,
    pub dominators: &'a Dominators,
    pub tree: &'a Tree,
    pub above: &'a Above,
    pub names: &'a Names<'a>,
    pub paths: &'a Paths,
}

/// What objects have directly below them in the tree of dominators.
#[derive(Debug, Default)]
pub struct Below {
    open: Vec<u32>,
    objects: Vec<u32>,
    /// By what is referred to: the name.
    names: FxHashMap<u32, u32>,
    found: Vec<(u32, u32)>,
}

impl Below {
    /// The objects below this one that aren't only the VM's, each with the variable or field by which this one
    /// refers to it; 0 for none.
    pub fn of(&mut self, known: &Known<'_>, object: u32) -> &[(u32, u32)] {
        self.objects.clear();
        let place = known.dominators.places[object as usize];
        let (open, objects) = (&mut self.open, &mut self.objects);
        known
            .tree
            .visible_below(known.graph, known.dominators, place, open, objects);
        match self.names.capacity() > LARGE {
            true => self.names = FxHashMap::default(),
            false => self.names.clear(),
        }
        if !self.objects.is_empty() {
            let references = known.graph.references(object);
            for reference in references.take_while(|it| it.name > 0) {
                self.names.entry(reference.target).or_insert(reference.name);
            }
        }
        let name = |it: u32| self.names.get(&it).copied().unwrap_or(0);
        self.found.clear();
        self.found
            .extend(self.objects.iter().map(|&it| (it, name(it))));
        &self.found
    }
}

/// How an object is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// By rperf.
    Own,
    /// By names; the object.
    ByNames(u32),
    /// By what a place calls by this name, and by others.
    Among(u32, u32),
    /// By what the global variable of this name has, and by others.
    AmongVariable(u32),
    /// By the main script's local variables.
    ByMainScript,
    /// By a place, without a name.
    ByPlace(u32),
    /// By what the VM begins with, on a path that begins with this object.
    ByRoot(u32),
}

/// Holders that are below others.
pub struct Nested<'a> {
    dominators: &'a Dominators,
    /// By places of the tree: the nearest holder above, or [`NONE`].
    outer: Vec<u32>,
}

impl Nested<'_> {
    /// The nearest holder above an object.
    pub fn outer(&self, object: u32) -> Option<u32> {
        let outer = self.outer[self.dominators.places[object as usize] as usize];
        Some(outer).filter(|it| *it != NONE)
    }

    /// The holders among these that aren't below others.
    pub fn outermost(&self, holders: &[u32]) -> Vec<u32> {
        let holders = holders.iter().copied();
        holders.filter(|&it| self.outer(it).is_none()).collect()
    }
}

/// What holds an object with others that aren't told.
fn with_others(name: String) -> String {
    format!("{name} and others")
}

impl Known<'_> {
    /// What is done with all that is known of a graph.
    pub fn with<T>(graph: &Graph, then: impl FnOnce(&Known<'_>) -> T) -> T {
        let dominators = Dominators::of(graph);
        let tree = Tree::of(&dominators);
        let paths = Paths::of(graph, &dominators);
        let names = Names::of(graph, &paths);
        let above = Above::of(graph, &dominators, &names);
        then(&Known {
            graph,
            dominators: &dominators,
            tree: &tree,
            above: &above,
            names: &names,
            paths: &paths,
        })
    }

    /// All holders, the biggest first. Some may be below others, where these hold a class or a fiber.
    pub fn all_holders(&self) -> Vec<u32> {
        let objects = 0..self.graph.len() as u32;
        let mut found: Vec<u32> = objects.filter(|&it| self.is_holder(it)).collect();
        found.sort_unstable_by_key(|&it| (Reverse(self.dominators.retained(it)), it));
        found
    }

    /// Which of these holders are below others.
    pub fn nested(&self, holders: &[u32]) -> Nested<'_> {
        let dominators = self.dominators;
        let mut is_holder = vec![false; dominators.objects.len()];
        for &object in holders {
            is_holder[dominators.places[object as usize] as usize] = true;
        }
        let mut outer = vec![NONE; is_holder.len()];
        for place in 1..is_holder.len() {
            let above = dominators.dominators[place] as usize;
            outer[place] = match is_holder[above] {
                true => dominators.objects[above],
                false => outer[above],
            };
        }
        Nested { dominators, outer }
    }

    fn is_holder(&self, object: u32) -> bool {
        self.dominators.is_reached(object)
            && !self.graph.is_internal(object)
            && !self.is_place(object)
            && self.above(object).is_none_or(|it| self.is_place(it))
    }

    /// Whether an object is a place for names, or has such: a Ractor has its threads.
    fn is_place(&self, object: u32) -> bool {
        self.graph.is_place(object) || self.graph.class_name(object) == RACTOR
    }

    /// The dominator that isn't only the VM's.
    fn above(&self, object: u32) -> Option<u32> {
        self.above.object(self.dominators.places[object as usize])
    }

    /// How an object is held.
    pub fn held(&self, object: u32) -> Held {
        let above = self.above(object);
        if above.is_some_and(|it| self.names.is_own(it)) || self.names.is_in_own_variable(object) {
            return Held::Own;
        }
        if self.names.has_proper_names(object) {
            return Held::ByNames(object);
        }
        let place = self.dominators.places[object as usize];
        if self.above.is_of_main_script(place) {
            return Held::ByMainScript;
        }
        // Beside the names of a thread or fiber, others may hold it, and less directly.
        let path = self.paths.first_two(self.paths.of_objects[object as usize]);
        let among = path.and_then(|(first, second)| self.among(&first, second.as_ref()));
        let is_stored = |place: u32| !self.graph.kinds[place as usize].is_module();
        if self.names.has_names(object)
            && among.is_none_or(|it| matches!(it, Held::Among(place, _) if is_stored(place)))
        {
            return Held::ByNames(object);
        }
        if let Some(among) = among {
            return among;
        }
        if let Some(place) = above.filter(|it| self.graph.is_place(*it)) {
            return Held::ByPlace(place);
        }
        match path.map(|it| it.0.example) {
            Some(place) if self.graph.is_place(place) => Held::ByPlace(place),
            first => Held::ByRoot(first.unwrap_or(object)),
        }
    }

    /// How the path to an object begins, if by a name that isn't the object's own.
    fn among(&self, first: &Step, second: Option<&Step>) -> Option<Held> {
        let second = second?;
        match self.graph.is_place(first.example) {
            true => (second.name > 0).then_some(Held::Among(first.example, second.name)),
            false => (first.name > 0).then_some(Held::AmongVariable(first.name)),
        }
    }

    /// What that is called.
    pub fn name_of(&self, held: Held) -> String {
        match held {
            Held::Own => OWN.into(),
            Held::ByNames(object) => self.names.of_object(object).joined(),
            Held::ByMainScript => MAIN_SCRIPT.into(),
            Held::Among(place, name) => with_others(self.names.of_reference(place, name)),
            Held::AmongVariable(name) => with_others(self.graph.text(name).into()),
            Held::ByPlace(place) => self.names.nameless(place),
            Held::ByRoot(first) => self.of_root(first),
        }
    }

    fn of_root(&self, object: u32) -> String {
        match self.names.category(object) {
            Some(category) => format!("the VM ({category})"),
            None => "the VM".into(),
        }
    }

    /// What the first step of a path is called.
    fn first(&self, first: &Step) -> String {
        match self.graph.is_place(first.example) {
            true => self.names.of_place(first.example),
            false if self.names.has_names(first.example) => {
                self.names.of_object(first.example).joined()
            }
            false => self.of_root(first.example),
        }
    }

    /// What objects have, so many bytes: step by step those of one class, by one name, that have half of all or
    /// more.
    pub fn descent(&self, mut set: Vec<u32>, all: u64) -> Vec<PathStep> {
        let mut steps = Vec::new();
        while steps.len() < DEEPEST {
            let Some((step, next)) = self.largest_below(&set) else {
                break;
            };
            if step.retained_bytes < all.div_ceil(2) {
                break;
            }
            steps.push(step);
            set = next;
        }
        steps
    }

    fn largest_below(&self, set: &[u32]) -> Option<(PathStep, Vec<u32>)> {
        let mut groups: FxHashMap<(u32, u32), (u64, Vec<u32>)> = FxHashMap::default();
        let mut below = Below::default();
        for &object in set {
            for &(target, name) in below.of(self, object) {
                let class = self.graph.classes[target as usize];
                let group = groups.entry((class, name)).or_default();
                group.0 += self.dominators.retained(target);
                group.1.push(target);
            }
        }
        let largest = groups
            .into_iter()
            .max_by_key(|((class, name), (bytes, _))| (*bytes, Reverse((*class, *name))));
        let ((_, name), (retained_bytes, objects)) = largest?;
        let step = PathStep {
            class: self.graph.class_name(objects[0]).into(),
            name: self.graph.text(name).into(),
            objects: objects.len() as u64,
            retained_bytes,
        };
        Some((step, objects))
    }

    /// The path to a step: what holds it, and the steps from there.
    pub fn path(&self, step: u32) -> (String, Vec<(String, String)>) {
        let steps = self.paths.to(step);
        let Some((first, rest)) = steps.split_first() else {
            return ("the VM".into(), Vec::new());
        };
        let class = |it: &Step| {
            (
                self.graph.class_name(it.example).to_owned(),
                self.graph.text(it.name).to_owned(),
            )
        };
        let begins_at_place = self.graph.is_place(first.example);
        match rest.split_first() {
            // What the place calls it tells more than the place alone.
            Some((held, rest)) if begins_at_place => {
                let name = match held.name {
                    0 => self.names.nameless(first.example),
                    name => self.names.of_reference(first.example, name),
                };
                let steps = std::iter::once((class(held).0, String::new()));
                (name, steps.chain(rest.iter().map(class)).collect())
            }
            _ if begins_at_place => (self.first(first), Vec::new()),
            _ => {
                // What only the VM sees has no class to tell.
                let is_seen = !self.graph.is_internal(first.example);
                let steps = is_seen.then(|| (class(first).0, String::new())).into_iter();
                (
                    self.first(first),
                    steps.chain(rest.iter().map(class)).collect(),
                )
            }
        }
    }
}
