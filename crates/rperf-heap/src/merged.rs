//! The tree of dominators with its objects merged, cut to its biggest parts: what the page draws as a map.

mod parts;

use crate::file::TreeRow;
use crate::graph::NONE;
use crate::holder_rows::NAMED;
use crate::holders::{Below, Held, Known};
use parts::{Candidate, Group, Name, Row};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rows at most.
const MOST: usize = 4000;

/// Levels at most, that of the holders included.
const DEEPEST: u32 = 24;

/// What is no holder's: one row.
const OF_NOBODY: &str = "classes, modules and the VM";

/// The row in front of all, which isn't told.
const ROOT: u32 = 0;

/// The rows; `holders`: those that are below no other one.
pub fn of(known: &Known<'_>, holders: &[u32]) -> Vec<TreeRow> {
    within(known, holders, MOST, DEEPEST)
}

fn within(known: &Known<'_>, holders: &[u32], most: usize, deepest: u32) -> Vec<TreeRow> {
    let mut merged = Merged {
        known,
        most,
        deepest,
        names: Vec::new(),
        classes: Classes::default(),
        rows: vec![Row::default()],
        open: BinaryHeap::new(),
        offered: 0,
        rests: 0,
        below: Below::default(),
    };
    merged.begin(holders);
    merged.grow();
    merged.told()
}

/// The classes: one for all that are called the same.
#[derive(Debug, Default)]
struct Classes<'a> {
    known: FxHashMap<u32, u32>,
    named: FxHashMap<&'a str, u32>,
}

struct Merged<'a, 'k> {
    known: &'a Known<'k>,
    most: usize,
    deepest: u32,
    /// The names of holders.
    names: Vec<String>,
    classes: Classes<'a>,
    rows: Vec<Row>,
    open: BinaryHeap<Candidate>,
    /// How many there were in all.
    offered: u64,
    /// Rows with groups that are no rows.
    rests: usize,
    below: Below,
}

impl Merged<'_, '_> {
    /// The holders, and all that is none of theirs.
    fn begin(&mut self, holders: &[u32]) {
        let dominators = self.known.dominators;
        let mut groups: Vec<(Held, Group)> = Vec::new();
        let mut numbers: FxHashMap<(Held, u32), usize> = FxHashMap::default();
        let mut own = Group::new(Name::Variable(0), NONE);
        for object in holders.iter().copied() {
            let held = self.known.held(object);
            if held == Held::Own {
                own.add(self.known, object);
                continue;
            }
            let class = self.class(object);
            let number = *numbers.entry((held, class)).or_insert_with(|| {
                groups.push((held, Group::new(Name::Variable(0), class)));
                groups.len() - 1
            });
            groups[number].1.add(self.known, object);
        }
        drop(numbers);
        let all = groups.iter().map(|it| &it.1).chain([&own]);
        let sum = all.fold((0, 0), |sum, it| (sum.0 + it.count, sum.1 + it.bytes));
        self.add_whole(OF_NOBODY.into(), |row| {
            row.count = u64::from(dominators.counts[0]).saturating_sub(sum.0);
            row.bytes = dominators.retained[0].saturating_sub(sum.1);
        });
        self.add_whole(self.known.name_of(Held::Own), |row| {
            (row.count, row.bytes) = (own.count, own.bytes);
        });
        groups.sort_by_key(|it| Reverse(it.1.bytes));
        let rest = groups.split_off(groups.len().min(NAMED));
        let groups = self.by_name(groups);
        let rest = rest.into_iter().map(|it| it.1);
        let (first, count) = (groups.len(), groups.len() + rest.len());
        self.others(ROOT, count);
        for (number, group) in groups.into_iter().chain(rest).enumerate() {
            match number < first {
                true => self.offer(ROOT, group),
                false => self.cut(ROOT, &group),
            }
        }
        // They have no names.
        self.rows[0].cut.leaf = None;
    }

    /// Groups with the same name, and of the same class, are one.
    fn by_name(&mut self, groups: Vec<(Held, Group)>) -> Vec<Group> {
        let mut names: FxHashMap<String, u32> = FxHashMap::default();
        let mut of_held: FxHashMap<Held, u32> = FxHashMap::default();
        let mut numbers: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut merged: Vec<Group> = Vec::new();
        for (held, mut group) in groups {
            let name = *of_held.entry(held).or_insert_with(|| {
                let next = names.len() as u32;
                *names.entry(self.known.name_of(held)).or_insert(next)
            });
            group.name = Name::Holder(self.names.len() as u32 + name);
            match numbers.get(&(name, group.class)) {
                Some(&number) => merged[number].add_all(group),
                None => {
                    numbers.insert((name, group.class), merged.len());
                    merged.push(group);
                }
            }
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable_by_key(|it| it.1);
        self.names.extend(names.into_iter().map(|it| it.0));
        merged
    }

    /// Adds a row that has nothing below it, if it has any objects.
    fn add_whole(&mut self, name: String, of: impl FnOnce(&mut Row)) {
        let mut row = Row {
            name: Name::Holder(self.names.len() as u32),
            level: 1,
            ..Row::default()
        };
        of(&mut row);
        if row.count > 0 {
            self.names.push(name);
            self.rows.push(row);
        }
    }

    fn class(&mut self, object: u32) -> u32 {
        let graph = self.known.graph;
        let class = graph.classes[object as usize];
        let named = &mut self.classes.named;
        let first = |_: &u32| *named.entry(graph.name_of_class(class)).or_insert(class);
        *(self.classes.known.entry(class)).or_insert_with_key(first)
    }

    /// Notes that a row has so many groups.
    fn others(&mut self, row: u32, count: usize) {
        self.rows[row as usize].others = count as u64;
        self.rests += usize::from(count > 0);
    }

    /// A group that may become a row.
    fn offer(&mut self, parent: u32, group: Group) {
        if self.rows[parent as usize].level + 1 >= self.deepest {
            return self.cut(parent, &group);
        }
        self.offered += 1;
        self.open.push(Candidate {
            bytes: group.bytes,
            number: Reverse(self.offered),
            parent,
            group,
        });
        if self.open.len() > 4 * self.most {
            // Others come first, whatever is offered yet.
            let mut open = std::mem::take(&mut self.open).into_sorted_vec();
            let kept = open.split_off(open.len() - self.most);
            for it in open {
                self.cut(it.parent, &it.group);
            }
            self.open = kept.into();
        }
    }

    /// A group that becomes none.
    fn cut(&mut self, parent: u32, group: &Group) {
        let cut = &mut self.rows[parent as usize].cut;
        cut.count += group.count;
        cut.bytes += group.bytes;
        cut.leaf = group.is_leaf().then_some((group.name, group.class));
    }

    /// Makes rows of the biggest groups, as long as there is room for one more, and for what would be cut from it.
    fn grow(&mut self) {
        while self.rows.len() - 1 + self.rests + 2 <= self.most
            && let Some(Candidate { parent, group, .. }) = self.open.pop()
        {
            let above = &mut self.rows[parent as usize];
            above.others -= 1;
            self.rests -= usize::from(above.others == 0);
            let level = above.level + 1;
            self.rows.push(Row {
                name: group.name,
                class: group.class,
                parent,
                level,
                count: group.count,
                bytes: group.bytes,
                ..Row::default()
            });
            self.expand(self.rows.len() as u32 - 1, group);
        }
        for it in std::mem::take(&mut self.open) {
            self.cut(it.parent, &it.group);
        }
        for parent in 0..self.rows.len() {
            self.show_single(parent as u32);
        }
    }

    /// Makes a row of what is cut from one, if that is one group of objects that have nothing: it takes no more room.
    fn show_single(&mut self, parent: u32) {
        let above = &mut self.rows[parent as usize];
        if above.others != 1 {
            return;
        }
        if let Some((name, class)) = above.cut.leaf.take() {
            above.others = 0;
            let row = Row {
                name,
                class,
                parent,
                level: above.level + 1,
                count: above.cut.count,
                bytes: above.cut.bytes,
                ..Row::default()
            };
            self.rows.push(row);
        }
    }

    /// Finds the groups of a row.
    fn expand(&mut self, row: u32, group: Group) {
        let mut groups: Vec<Group> = Vec::new();
        let mut numbers: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        let mut open = group.objects;
        let mut below = std::mem::take(&mut self.below);
        while let Some(object) = open.pop() {
            for &(target, variable) in below.of(self.known, object) {
                let class = self.class(target);
                let name = Name::Variable(variable);
                // The next one of a list.
                if variable > 0 && (name, class) == (group.name, group.class) {
                    open.push(target);
                    continue;
                }
                let number = *numbers.entry((class, variable)).or_insert_with(|| {
                    groups.push(Group::new(name, class));
                    groups.len() - 1
                });
                groups[number].add(self.known, target);
            }
        }
        self.below = below;
        let sums = &mut self.rows[row as usize];
        sums.count_below = groups.iter().map(|it| it.count).sum();
        sums.bytes_below = groups.iter().map(|it| it.bytes).sum();
        self.others(row, groups.len());
        for group in groups {
            self.offer(row, group);
        }
    }

    /// The rows in the order in which they are told.
    fn told(&self) -> Vec<TreeRow> {
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.rows.len()];
        for (number, row) in self.rows.iter().enumerate().skip(1) {
            below[row.parent as usize].push(number as u32);
        }
        for numbers in &mut below {
            numbers.sort_by_key(|&it| Reverse(self.rows[it as usize].bytes));
        }
        let mut told: Vec<TreeRow> = Vec::new();
        // Rows, and the numbers of those above among the told ones. With `true`: what is cut from them.
        let mut open = vec![(ROOT, None, false)];
        while let Some((number, parent, is_rest)) = open.pop() {
            let row = &self.rows[number as usize];
            if is_rest {
                told.push(TreeRow {
                    parent,
                    objects: row.cut.count,
                    bytes: row.cut.bytes,
                    retained_objects: row.cut.count,
                    retained_bytes: row.cut.bytes,
                    rest: true,
                    ..TreeRow::default()
                });
                continue;
            }
            let own = (number != ROOT).then_some(told.len() as u32);
            if number != ROOT {
                told.push(TreeRow {
                    objects: row.count - row.count_below,
                    bytes: row.bytes - row.bytes_below,
                    retained_objects: row.count,
                    retained_bytes: row.bytes,
                    ..self.named(row.name, row.class, parent)
                });
            }
            if row.others > 0 {
                open.push((number, own, true));
            }
            let below = below[number as usize].iter().rev();
            open.extend(below.map(|&it| (it, own, false)));
        }
        told
    }

    fn named(&self, name: Name, class: u32, parent: Option<u32>) -> TreeRow {
        let graph = self.known.graph;
        TreeRow {
            parent,
            name: match name {
                Name::Holder(number) => self.names[number as usize].clone(),
                Name::Variable(name) => graph.text(name).into(),
            },
            class: match class {
                NONE => String::new(),
                class => graph.name_of_class(class).into(),
            },
            ..TreeRow::default()
        }
    }
}

#[cfg(test)]
mod tests;
