//! Who dominates whom: an object dominates another one if each path from the roots to that leads over it.
//! So what an object dominates would go with it. By the semi-NCA algorithm (Georgiadis, Tarjan and Werneck,
//! "Finding dominators in practice", 2006), from one root in front of all.

use crate::graph::{Graph, NONE};

/// The number of the root in front of all, in the order of the search.
pub const ROOT: u32 = 0;

/// The tree of dominators. Objects that are reached have places in it, in the order of a search from the
/// root, which has place 0: so the dominator of each comes before it.
#[derive(Debug, Clone, Default)]
pub struct Dominators {
    /// The place of each object; [`NONE`] for those that nothing refers to any more.
    pub places: Vec<u32>,
    /// The object at each place; [`NONE`] for the root.
    pub objects: Vec<u32>,
    /// The place of the dominator of the object at each place.
    pub dominators: Vec<u32>,
    /// The bytes that would go with it.
    pub retained: Vec<u64>,
    /// The objects that would go with it, and itself.
    pub counts: Vec<u32>,
}

impl Dominators {
    /// Finds them.
    pub fn of(graph: &Graph) -> Self {
        let tree = Search::of(graph);
        let dominators = tree.dominators(graph);
        let mut retained = vec![0; tree.objects.len()];
        let mut counts = vec![0; tree.objects.len()];
        for place in (0..tree.objects.len()).rev() {
            let object = tree.objects[place];
            if object != NONE {
                retained[place] += graph.bytes[object as usize];
                counts[place] += 1;
                let above = dominators[place] as usize;
                retained[above] += retained[place];
                counts[above] += counts[place];
            }
        }
        Dominators {
            places: tree.places,
            objects: tree.objects,
            dominators,
            retained,
            counts,
        }
    }

    /// The bytes that would go with an object; 0 if nothing refers to it.
    pub fn retained(&self, object: u32) -> u64 {
        match self.places[object as usize] {
            NONE => 0,
            place => self.retained[place as usize],
        }
    }

    /// The objects that would go with an object, and itself.
    pub fn count(&self, object: u32) -> u32 {
        match self.places[object as usize] {
            NONE => 0,
            place => self.counts[place as usize],
        }
    }

    /// The dominator of an object; `None` for one that only the roots hold together, or nothing.
    pub fn dominator(&self, object: u32) -> Option<u32> {
        let place = self.places[object as usize];
        let dominator = *self.dominators.get(place as usize)?;
        Some(self.objects[dominator as usize]).filter(|it| *it != NONE)
    }

    /// Whether something refers to an object.
    pub fn is_reached(&self, object: u32) -> bool {
        self.places[object as usize] != NONE
    }
}

/// The search in depth, and who was come from.
struct Search {
    places: Vec<u32>,
    objects: Vec<u32>,
    /// The place from which each was found.
    parents: Vec<u32>,
}

impl Search {
    fn of(graph: &Graph) -> Self {
        let mut search = Search {
            places: vec![NONE; graph.len()],
            objects: vec![NONE],
            parents: vec![0],
        };
        // Places, and how many references of each were followed.
        let mut open: Vec<(u32, u32)> = Vec::new();
        for root in &graph.roots {
            search.enter(root.target, ROOT, graph, &mut open);
            while let Some((place, next)) = open.last_mut() {
                let object = search.objects[*place as usize];
                if *next == graph.starts[object as usize + 1] {
                    open.pop();
                    continue;
                }
                let target = graph.targets[*next as usize];
                *next += 1;
                let from = *place;
                search.enter(target, from, graph, &mut open);
            }
        }
        search
    }

    fn enter(&mut self, object: u32, from: u32, graph: &Graph, open: &mut Vec<(u32, u32)>) {
        if self.places[object as usize] != NONE {
            return;
        }
        let place = self.objects.len() as u32;
        self.places[object as usize] = place;
        self.objects.push(object);
        self.parents.push(from);
        open.push((place, graph.starts[object as usize]));
    }

    fn dominators(&self, graph: &Graph) -> Vec<u32> {
        let count = self.objects.len();
        let mut dominators = self.parents.clone();
        let links = self.parents.iter().zip(0..);
        let links = links.map(|(&parent, own)| Link {
            parent,
            label: own,
            semi: own,
        });
        let mut links = Links(links.collect());
        let before = Before::of(graph, self);
        let mut path = Vec::new();
        for place in (1..count as u32).rev() {
            let mut least = self.parents[place as usize];
            for &from in before.of_place(place) {
                let label = links.least(from, place + 1, &mut path);
                least = least.min(links.0[label as usize].semi);
            }
            links.0[place as usize].semi = least;
        }
        for place in 1..count {
            let mut candidate = dominators[place];
            while candidate > links.0[place].semi {
                candidate = dominators[candidate as usize];
            }
            dominators[place] = candidate;
        }
        dominators
    }
}

/// What is known of a place while dominators are looked for.
#[derive(Clone, Copy)]
struct Link {
    /// A place above it, on the path that it was found by.
    parent: u32,
    /// The place with the least semidominator between it and that one.
    label: u32,
    semi: u32,
}

struct Links(Vec<Link>);

impl Links {
    /// The one with the least semidominator on the path from `place` up to the last one that was visited.
    fn least(&mut self, place: u32, visited: u32, path: &mut Vec<u32>) -> u32 {
        let links = &mut self.0;
        if links[place as usize].parent < visited {
            return links[place as usize].label;
        }
        let mut top = place;
        while links[top as usize].parent >= visited {
            path.push(top);
            top = links[top as usize].parent;
        }
        let Link {
            parent, mut label, ..
        } = links[top as usize];
        let mut least = links[label as usize].semi;
        while let Some(next) = path.pop() {
            let own = links[next as usize].label;
            let semi = links[own as usize].semi;
            if least >= semi {
                (label, least) = (own, semi);
            }
            links[next as usize].parent = parent;
            links[next as usize].label = label;
        }
        links[place as usize].label
    }
}

/// Who refers to each, by places.
struct Before {
    starts: Vec<u32>,
    from: Vec<u32>,
}

impl Before {
    fn of(graph: &Graph, search: &Search) -> Self {
        let count = search.objects.len();
        let mut starts = vec![0_u32; count + 1];
        let pairs = || {
            let roots = graph.roots.iter().map(|it| (ROOT, it.target));
            let objects = search.objects.iter().enumerate().skip(1);
            let references = objects.flat_map(|(place, &object)| {
                let (start, end) = (
                    graph.starts[object as usize] as usize,
                    graph.starts[object as usize + 1] as usize,
                );
                let targets = graph.targets[start..end].iter();
                targets.map(move |&target| (place as u32, target))
            });
            roots.chain(references)
        };
        for (_, target) in pairs() {
            starts[search.places[target as usize] as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut from = vec![0; sum as usize];
        for (place, target) in pairs() {
            let start = &mut starts[search.places[target as usize] as usize];
            *start -= 1;
            from[*start as usize] = place;
        }
        Before { starts, from }
    }

    fn of_place(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.from[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_graphs::{any_graph, reached_without};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn they_are_those_without_which_nothing_is_reached(graph in any_graph()) {
            let found = Dominators::of(&graph);
            let reached = reached_without(&graph, None);
            for (object, is_reached) in reached.iter().enumerate() {
                prop_assert_eq!(found.is_reached(object as u32), *is_reached);
            }
            // By the definition: who is lost when one is taken out.
            for one in (0..graph.len() as u32).filter(|it| reached[*it as usize]) {
                let left = reached_without(&graph, Some(one));
                let lost = (0..graph.len()).filter(|&it| reached[it] && !left[it]);
                let (mut bytes, mut count) = (0, 0);
                for other in lost {
                    count += 1;
                    bytes += graph.bytes[other];
                    let mut above = Some(other as u32);
                    while above.is_some() && above != Some(one) {
                        above = above.and_then(|it| found.dominator(it));
                    }
                    prop_assert_eq!(above, Some(one));
                }
                prop_assert_eq!((found.retained(one), found.count(one)), (bytes, count));
            }
        }
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let count = 200_000_u32;
        let graph = crate::test_graphs::of(
            &(0..count)
                .map(|it| vec![(it + 1).min(count - 1)])
                .collect::<Vec<_>>(),
            &[0],
        );
        assert_eq!(Dominators::of(&graph).retained(0), u64::from(count));
    }
}
