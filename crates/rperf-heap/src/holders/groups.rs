//! Holders that are one row: those of one name, one class, and parts of one holder. Called by `holders`.

use super::{Held, Known, Nested};
use crate::graph::NONE;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Groups that are looked up by name, the biggest: only so many may become rows.
pub const NAMED: usize = 1 << 16;

/// Holders that are one row.
pub(super) struct Group {
    pub(super) held: Held,
    /// How the nearest holder above is held.
    pub(super) within: Option<Held>,
    pub(super) retained: u64,
    pub(super) objects: Vec<u32>,
}

impl Known<'_> {
    /// The biggest rows of these holders but rperf's, the biggest first. All are grouped before rows are cut, because
    /// many small holders of one name may have most of all bytes.
    pub(super) fn groups(&self, found: &[u32], nested: &Nested<'_>, most: usize) -> Vec<Group> {
        let mut groups = self.by_held(found, nested);
        groups.sort_by_key(|it| Reverse(it.retained));
        groups.truncate(NAMED);
        let mut groups = self.by_name(groups);
        self.count_once(&mut groups);
        groups.sort_by_key(|it| Reverse(it.retained));
        groups.truncate(most);
        groups
    }

    /// Those of a class that are held alike are one group.
    fn by_held(&self, found: &[u32], nested: &Nested<'_>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut numbers: FxHashMap<(Held, Option<Held>, u32), usize> = FxHashMap::default();
        for &object in found {
            let held = self.held(object);
            if held == Held::Own {
                continue;
            }
            let within = nested.outer(object).map(|it| self.held(it));
            let class = self.graph.classes[object as usize];
            let number = *numbers.entry((held, within, class)).or_insert_with(|| {
                groups.push(Group {
                    held,
                    within,
                    retained: 0,
                    objects: Vec::new(),
                });
                groups.len() - 1
            });
            let group = &mut groups[number];
            let retained = self.dominators.retained(object);
            group.retained = group.retained.saturating_add(retained);
            group.objects.push(object);
        }
        groups
    }

    /// Groups whose names and classes read alike are one.
    fn by_name(&self, groups: Vec<Group>) -> Vec<Group> {
        let mut names: FxHashMap<String, u32> = FxHashMap::default();
        let mut of_held: FxHashMap<Held, u32> = FxHashMap::default();
        let mut name_of = |held: Held| {
            *of_held.entry(held).or_insert_with(|| {
                let next = names.len() as u32;
                *names.entry(self.name_of(held)).or_insert(next)
            })
        };
        let mut numbers: FxHashMap<(u32, Option<u32>, &str), usize> = FxHashMap::default();
        let mut merged: Vec<Group> = Vec::new();
        for group in groups {
            let class = self.graph.class_name(group.objects[0]);
            let key = (name_of(group.held), group.within.map(&mut name_of), class);
            match numbers.get(&key) {
                Some(&number) => {
                    let all = &mut merged[number];
                    all.retained = all.retained.saturating_add(group.retained);
                    all.objects.extend(group.objects);
                }
                None => {
                    numbers.insert(key, merged.len());
                    merged.push(group);
                }
            }
        }
        merged
    }

    /// Leaves out of each group what goes with another one of it: its bytes count there.
    fn count_once(&self, groups: &mut [Group]) {
        if groups.iter().all(|it| it.within.is_none()) {
            return;
        }
        let places = &self.dominators.places;
        let mut numbers = vec![NONE; self.dominators.objects.len()];
        for (number, group) in (0..).zip(&*groups) {
            for &object in &group.objects {
                numbers[places[object as usize] as usize] = number;
            }
        }
        for group in &mut *groups {
            group.retained = 0;
            group.objects.clear();
        }
        let mut open = vec![0_u32; groups.len()];
        self.tree.walk(|place, is_left| {
            let number = numbers[place as usize];
            if number == NONE {
                return;
            }
            let open = &mut open[number as usize];
            if is_left {
                *open -= 1;
                return;
            }
            *open += 1;
            if *open == 1 {
                let (group, place) = (&mut groups[number as usize], place as usize);
                let retained = self.dominators.retained[place];
                group.retained = group.retained.saturating_add(retained);
                group.objects.push(self.dominators.objects[place]);
            }
        });
    }
}
