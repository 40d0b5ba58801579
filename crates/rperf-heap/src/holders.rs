//! The biggest holders: what is dominated by nobody but a class, a module, a thread or the roots. And what
//! each of them has.

use crate::dominators::Dominators;
use crate::file::{Holder, PathStep};
use crate::graph::Graph;
use crate::names::{Called, Names, is_place};
use crate::paths::{Paths, Step};
use crate::tree::Tree;
use rustc_hash::FxHashMap;

/// What rperf holds itself is one row.
const OWN: &str = "rperf";

/// The holder of what is in the main script's local variables.
const MAIN_SCRIPT: &str = "local variables of the main script";

/// Ruby's class of Ractors.
const RACTOR: &str = "Ractor";

/// Steps down that are told.
const DEEPEST: usize = 12;

/// All that is known of a graph.
pub struct Known<'a> {
    pub graph: &'a Graph,
    pub dominators: &'a Dominators,
    pub tree: &'a Tree,
    pub names: &'a Names<'a>,
    pub paths: &'a Paths,
}

impl Known<'_> {
    /// The biggest holders, the biggest first, and what else holds anything.
    pub fn holders(&self, most: usize) -> Vec<Holder> {
        let mut found: Vec<(u64, u32)> = (0..self.graph.len() as u32)
            .filter(|&it| self.is_holder(it))
            .map(|it| (self.dominators.retained(it), it))
            .collect();
        found.sort_unstable_by_key(|&(retained, object)| (std::cmp::Reverse(retained), object));
        let mut holders: Vec<Holder> = Vec::new();
        let mut own = Holder {
            name: OWN.into(),
            ..Holder::default()
        };
        for (retained, object) in found {
            let names = self.names_of(object);
            if names.names.iter().any(|it| it == OWN) {
                own.retained_bytes = own.retained_bytes.saturating_add(retained);
                own.objects += u64::from(self.dominators.count(object));
            } else if holders.len() < most {
                holders.push(Holder {
                    name: names.joined(),
                    class: self.graph.class_name(object).into(),
                    objects: u64::from(self.dominators.count(object)),
                    retained_bytes: retained,
                    path: self.descent(object),
                });
            } else if own.retained_bytes > 0 {
                break;
            }
        }
        if own.retained_bytes > 0 {
            let place = holders.partition_point(|it| it.retained_bytes >= own.retained_bytes);
            holders.insert(place, own);
        }
        holders
    }

    fn is_holder(&self, object: u32) -> bool {
        self.dominators.is_reached(object)
            && !self.is_place(object)
            && !self.graph.is_internal(object)
            && self.above(object).is_none_or(|it| self.is_place(it))
    }

    /// Whether an object is a place for names, or has such: a Ractor has its threads.
    fn is_place(&self, object: u32) -> bool {
        is_place(self.graph, object) || self.graph.class_name(object) == RACTOR
    }

    /// The dominator that isn't only the VM's.
    fn above(&self, object: u32) -> Option<u32> {
        let mut above = self.dominators.dominator(object);
        while let Some(object) = above.filter(|it| self.graph.is_internal(*it)) {
            above = self.dominators.dominator(object);
        }
        above
    }

    /// Whether the main script's local variables hold an object.
    fn is_of_main_script(&self, object: u32) -> bool {
        let mut above = self.dominators.dominator(object);
        while let Some(object) = above.filter(|it| self.graph.is_internal(*it)) {
            if let Some(is_variables) = self.names.of_main_script(object) {
                return is_variables;
            }
            above = self.dominators.dominator(object);
        }
        false
    }

    /// The names by which an object is held.
    fn names_of(&self, object: u32) -> Called {
        let above = self.above(object);
        if above.is_some_and(|it| self.names.is_own(it)) || self.names.is_in_own_variable(object) {
            return Called::one(OWN.into());
        }
        let names = self.names.of_object(object);
        if !names.names.is_empty() {
            return names;
        }
        if self.is_of_main_script(object) {
            return Called::one(MAIN_SCRIPT.into());
        }
        let path = self.paths.to(self.paths.of_objects[object as usize]);
        Called::one(match (above, path.first()) {
            (Some(place), _) if is_place(self.graph, place) => self.names.nameless(place),
            (_, Some(first)) if is_place(self.graph, first.example) => {
                self.names.nameless(first.example)
            }
            (_, Some(first)) => self.first(first),
            (_, None) => self.of_root(object),
        })
    }

    fn of_root(&self, object: u32) -> String {
        match self.names.category(object) {
            Some(category) => format!("the VM ({category})"),
            None => "the VM".into(),
        }
    }

    /// What the first step of a path is called.
    fn first(&self, first: &Step) -> String {
        match is_place(self.graph, first.example) {
            true => self.names.of_place(first.example),
            false => {
                let names = self.names.of_object(first.example);
                match names.names.is_empty() {
                    true => self.of_root(first.example),
                    false => names.joined(),
                }
            }
        }
    }

    /// What an object has: step by step those of one class, by one name, that have half of all or more.
    fn descent(&self, object: u32) -> Vec<PathStep> {
        let all = self.dominators.retained(object);
        let mut steps = Vec::new();
        let mut set = vec![object];
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
        let mut below = Vec::new();
        let mut named: FxHashMap<u32, u32> = FxHashMap::default();
        for &object in set {
            below.clear();
            let place = self.dominators.places[object as usize];
            self.tree
                .visible_below(self.graph, self.dominators, place, &mut below);
            named.clear();
            if !below.is_empty() {
                let references = self.graph.references(object);
                for reference in references.take_while(|it| it.name > 0) {
                    named.entry(reference.target).or_insert(reference.name);
                }
            }
            for &target in &below {
                let name = named.get(&target).copied().unwrap_or(0);
                let class = self.graph.classes[target as usize];
                let group = groups.entry((class, name)).or_default();
                group.0 += self.dominators.retained(target);
                group.1.push(target);
            }
        }
        let largest = groups
            .into_iter()
            .max_by_key(|((class, name), (bytes, _))| (*bytes, std::cmp::Reverse((*class, *name))));
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
        let begins_at_place = is_place(self.graph, first.example);
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
