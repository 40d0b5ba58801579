//! The names by which objects are held: global variables, constants, variables of classes, locals of
//! threads. Used by the parts that tell of holders and paths.

mod places;

use crate::graph::Graph;
use crate::paths::Paths;

/// The module whose objects are ours.
const OWN: &str = "Rperf";

/// What names of our variables of threads have.
const OWN_VARIABLES: &str = ":__rperf_";

/// What names begin with of what fibers have in their storage, which others inherit.
const STORAGE: &str = "Fiber[";

/// Ruby's constant with the local variables of the main script.
const MAIN_SCRIPT: &str = "TOPLEVEL_BINDING";

/// Names of an object that are told.
const NAMES: usize = 3;

/// References by name from places, by what they refer to.
pub struct Names<'a> {
    graph: &'a Graph,
    paths: &'a Paths,
    /// Who is referred to, by whom, and the name; in this order.
    from_places: Vec<(u32, u32, u32)>,
    /// Who is the value of a global variable, and that one's name; in this order.
    variables: Vec<(u32, u32)>,
    /// Who is a root, and its place in the list; in this order.
    roots: Vec<(u32, u32)>,
    /// What the VM has for itself of the main script: its local variables, and its code, which these refer to; in
    /// order.
    main_script: Vec<u32>,
    /// Which of these are its local variables.
    are_variables: Vec<bool>,
    /// A fiber that runs in a thread, or began with it, and that thread; in this order.
    fibers: Vec<(u32, u32)>,
}

/// The names of an object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Called {
    /// Some of them.
    pub names: Vec<String>,
    /// How many there are beside these.
    more: usize,
}

impl Called {
    /// All of them in a text.
    pub fn joined(&self) -> String {
        let text = self.names.join(", ");
        match self.more {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    }
}

impl<'a> Names<'a> {
    /// Finds them.
    pub fn of(graph: &'a Graph, paths: &'a Paths) -> Self {
        let places = (0..graph.len() as u32).filter(|&it| graph.is_place(it));
        let from_places = places.flat_map(|place| {
            let named = graph.references(place).take_while(|it| it.name > 0);
            named.map(move |it| (it.target, place, it.name))
        });
        let mut from_places: Vec<_> = from_places.collect();
        from_places.sort_unstable();
        from_places.dedup();
        let variables = graph.roots.iter().filter(|it| it.variable > 0);
        let mut variables: Vec<_> = variables.map(|it| (it.target, it.variable)).collect();
        variables.sort_unstable();
        variables.dedup();
        let roots = graph.roots.iter().enumerate();
        let mut roots: Vec<_> = roots.map(|(at, it)| (it.target, at as u32)).collect();
        roots.sort_unstable();
        let bindings = from_places
            .iter()
            .filter(|it| graph.text(it.2) == MAIN_SCRIPT && graph.name(it.1) == Some("Object"));
        let held = bindings.flat_map(|it| graph.references(it.0));
        let held = held.map(|it| it.target);
        let mut main_script: Vec<_> = held.filter(|&it| graph.is_internal(it)).collect();
        main_script.sort_unstable();
        main_script.dedup();
        let is_known = |object: &u32| main_script.binary_search(object).is_ok();
        let are_variables = main_script.iter().map(|own| {
            let mut held = graph.references(*own).map(|it| it.target);
            held.any(|it| it != *own && is_known(&it))
        });
        let are_variables = are_variables.collect();
        let threads = (0..graph.len() as u32).filter(|&it| graph.kinds[it as usize].is_thread());
        let fibers = threads.flat_map(|thread| {
            let held = graph.references(thread).map(|it| it.target);
            let fibers = held.filter(|&it| graph.kinds[it as usize].is_fiber());
            fibers.map(move |it| (it, thread))
        });
        let mut fibers: Vec<_> = fibers.collect();
        fibers.sort_unstable();
        Names {
            graph,
            paths,
            from_places,
            variables,
            roots,
            main_script,
            are_variables,
            fibers,
        }
    }

    /// Whether something is the VM's, for the main script: its local variables (true), or its code.
    pub fn of_main_script(&self, object: u32) -> Option<bool> {
        let found = self.main_script.binary_search(&object).ok();
        found.map(|at| self.are_variables[at])
    }

    /// Whether there are such names of an object as [`Self::of_object`] has.
    pub fn has_names(&self, object: u32) -> bool {
        self.has_proper_names(object) || !self.held_by_name(object).is_empty()
    }

    /// Whether there are some that aren't those of threads and fibers.
    pub fn has_proper_names(&self, object: u32) -> bool {
        let mut held = self.held_by_name(object).iter();
        !self.variables_of(object).is_empty() || held.any(|it| self.is_proper(it.1))
    }

    /// The names by which places and global variables hold an object: those of threads and fibers last.
    pub fn of_object(&self, object: u32) -> Called {
        let variables = self.variables_of(object);
        let own = variables.iter().map(|it| self.graph.text(it.1).to_owned());
        let held = self.held_by_name(object).iter();
        let (proper, mut stored): (Vec<_>, Vec<&(u32, u32, u32)>) =
            held.partition(|it| self.is_proper(it.1));
        let mut inherited = Vec::new();
        stored.retain(|&&(_, _, name)| {
            let is_new = !inherited.contains(&name);
            if is_new && self.graph.text(name).starts_with(STORAGE) {
                inherited.push(name);
            }
            is_new
        });
        let count = variables.len() + proper.len() + stored.len();
        let held = proper.into_iter().chain(stored);
        let held = held.map(|it| self.of_reference(it.1, it.2));
        let mut names: Vec<_> = own.chain(held).take(NAMES).collect();
        let more = count - names.len();
        names.dedup();
        Called { names, more }
    }

    /// The first of these that is one of a class or module, or of a global variable. Variables of singleton classes are
    /// passed over, because those are called after their objects.
    fn proper_name(&self, object: u32) -> Option<String> {
        if let Some(&(_, name)) = self.variables_of(object).first() {
            return Some(self.graph.text(name).into());
        }
        let mut held = self.held_by_name(object).iter();
        let kinds = &self.graph.kinds;
        let is_its = |place: u32| self.is_proper(place) && !kinds[place as usize].is_singleton();
        let named = held.find(|it| is_its(it.1))?;
        Some(self.of_reference(named.1, named.2))
    }

    fn variables_of(&self, object: u32) -> &[(u32, u32)] {
        those_of(&self.variables, object, |it| it.0)
    }

    fn held_by_name(&self, object: u32) -> &[(u32, u32, u32)] {
        those_of(&self.from_places, object, |it| it.0)
    }

    /// Whether a place is a class or a module: a name there stays, while threads and fibers end.
    fn is_proper(&self, place: u32) -> bool {
        self.graph.kinds[place as usize].is_module()
    }

    fn roots_of(&self, object: u32) -> impl Iterator<Item = &crate::graph::Root> {
        let roots = those_of(&self.roots, object, |it| it.0).iter();
        roots.map(|it| &self.graph.roots[it.1 as usize])
    }

    /// The category of a root.
    pub fn category(&self, object: u32) -> Option<&str> {
        self.roots_of(object)
            .next()
            .map(|it| self.graph.text(it.category))
    }

    /// What a place calls what it refers to by this name.
    pub fn of_reference(&self, place: u32, name: u32) -> String {
        let text = self.graph.text(name);
        if !self.graph.kinds[place as usize].is_module() {
            let of_place = self.of_place(place);
            let is_thread = self.graph.kinds[place as usize].is_thread();
            return match text.as_bytes().first() {
                Some(b'@') => format!("{of_place} {text}"),
                Some(b'[') if is_thread => format!("{of_place}{text}"),
                _ if text.starts_with(STORAGE) => text.into(),
                _ => format!("{text} of {of_place}"),
            };
        }
        let own = self.graph.name(place);
        match (own, text.starts_with('@')) {
            (Some("Object"), false) => text.into(),
            (Some(own), false) => format!("{own}::{text}"),
            _ => format!("{} {text}", self.of_place(place)),
        }
    }

    /// Whether rperf holds an object by a variable of a thread.
    pub fn is_in_own_variable(&self, object: u32) -> bool {
        let mut texts = self
            .held_by_name(object)
            .iter()
            .map(|it| self.graph.text(it.2));
        texts.any(|text| text.contains(OWN_VARIABLES))
    }

    /// Whether rperf holds an object itself.
    pub fn is_own(&self, place: u32) -> bool {
        let kind = self.graph.kinds.get(place as usize);
        let name = self.graph.name(place).unwrap_or_default();
        let rest = name.strip_prefix(OWN);
        kind.is_some_and(|it| it.is_module())
            && rest.is_some_and(|it| it.is_empty() || it.starts_with("::"))
    }
}

/// The entries of an object in a list that is in the order of these.
fn those_of<T>(list: &[T], object: u32, of: impl Fn(&T) -> u32) -> &[T] {
    let begin = list.partition_point(|it| of(it) < object);
    let rest = &list[begin..];
    &rest[..rest.partition_point(|it| of(it) == object)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Root;
    use crate::test_graphs;
    use rperf_protocol::heap::kind::Kind;

    fn paths_of(graph: &Graph) -> Paths {
        Paths::of(graph, &crate::dominators::Dominators::of(graph))
    }

    #[test]
    fn a_few_names_are_told_and_the_rest_counted() {
        let mut graph = test_graphs::of(&[vec![1; 5], vec![]], &[]);
        graph.kinds[0] = Kind(Kind::MODULE);
        graph.texts = ["", "A", "B", "C", "D", "$e"].map(Box::from).to_vec();
        // One of them twice.
        graph.names = vec![1, 2, 3, 4, 4];
        graph.called = vec![(0, 1)];
        let of_object = |graph: &Graph| Names::of(graph, &paths_of(graph)).of_object(1);
        let called = of_object(&graph);
        assert_eq!(called.names, ["A::A", "A::B", "A::C"]);
        assert_eq!(called.joined(), "A::A, A::B, A::C and 1 more");
        for _ in 0..2 {
            graph.roots.push(Root {
                category: 0,
                target: 1,
                variable: 5,
            });
        }
        assert_eq!(of_object(&graph).joined(), "$e, A::A, A::B and 2 more");
        let paths = paths_of(&graph);
        assert_eq!(Names::of(&graph, &paths).of_object(0), Called::default());
    }

    #[test]
    fn variables_of_threads_and_fibers_are_told_as_ruby_has_them() {
        let mut graph = test_graphs::of(&[vec![2, 2, 2, 2, 1], vec![2, 2, 2], vec![]], &[]);
        graph.kinds[0] = Kind(Kind::OBJECT | Kind::THREAD);
        graph.kinds[1] = Kind(Kind::OBJECT | Kind::FIBER);
        let texts = ["", "worker", "[:a]", "variable :b", "Fiber[:c]", "@d"];
        graph.texts = texts.map(Box::from).to_vec();
        graph.names = vec![2, 3, 4, 5, 0, 2, 4, 5];
        graph.called = vec![(0, 1)];
        let paths = paths_of(&graph);
        let names = Names::of(&graph, &paths);
        let told = |place, name| names.of_reference(place, name);
        assert_eq!(told(0, 2), "Thread \"worker\"[:a]");
        assert_eq!(told(0, 3), "variable :b of Thread \"worker\"");
        assert_eq!(told(0, 4), "Fiber[:c]");
        assert_eq!(told(0, 5), "Thread \"worker\" @d");
        assert_eq!(told(1, 2), "[:a] of a Fiber of Thread \"worker\"");
        assert_eq!(told(1, 4), "Fiber[:c]");
        assert_eq!(told(1, 5), "a Fiber of Thread \"worker\" @d");
        assert!(!names.is_in_own_variable(2));
        graph.names = vec![4, 4, 4, 4, 0, 4, 4, 4];
        let names = Names::of(&graph, &paths).of_object(2);
        assert_eq!(names.joined(), "Fiber[:c]");
    }

    #[test]
    fn what_rperf_keeps_in_a_variable_of_a_thread_is_its_own() {
        for text in ["[:__rperf_label_set__]", "variable :__rperf_test__"] {
            let mut graph = test_graphs::of(&[vec![1], vec![]], &[]);
            graph.kinds[0] = Kind(Kind::OBJECT | Kind::THREAD);
            graph.texts = ["", text].map(Box::from).to_vec();
            graph.names = vec![1];
            let paths = paths_of(&graph);
            assert!(Names::of(&graph, &paths).is_in_own_variable(1), "{text}");
        }
    }

    #[test]
    fn a_singleton_class_is_called_after_its_object() {
        // A class, the singleton class of an object, with a variable, and one of a module.
        let mut graph = test_graphs::of(&[vec![], vec![4, 0, 2], vec![1], vec![], vec![]], &[1]);
        graph.kinds[0] = Kind(Kind::CLASS);
        graph.kinds[1] = Kind(Kind::CLASS | Kind::SINGLETON);
        graph.texts = ["", "Cart", "@own", "CART"].map(Box::from).to_vec();
        graph.names[0] = 2;
        graph.called = vec![(0, 1)];
        let told = |graph: &Graph| {
            let paths = paths_of(graph);
            let names = Names::of(graph, &paths);
            [names.of_reference(1, 2), names.nameless(1)]
        };
        let of = |whose: &str| {
            [
                format!("singleton class of {whose} @own"),
                format!("singleton methods of {whose}"),
            ]
        };
        assert_eq!(told(&graph), of("an instance of Cart"));
        graph.kinds[2] = Kind(Kind::MODULE);
        graph.called.push((2, 3));
        assert_eq!(told(&graph), of("CART"));
        // Nothing tells whose it is: that it is below Cart doesn't.
        graph.targets[3] = 3;
        assert_eq!(told(&graph), of("an object"));
    }
}
