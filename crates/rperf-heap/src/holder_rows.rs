//! The biggest holders as rows: those of one name and one class that are parts of one holder are one. Called by
//! `answer`.

use crate::file::Holder;
use crate::graph::NONE;
use crate::holders::{Held, Known, Nested, OWN};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Groups that are looked up by name, the biggest: only so many may become rows.
pub const NAMED: usize = 1 << 16;

/// Holders that are one row.
struct Group {
    held: Held,
    /// How the nearest holder above is held.
    within: Option<Held>,
    retained: u64,
    objects: Vec<u32>,
}

impl Known<'_> {
    /// The biggest rows of these, the biggest first, and what rperf has.
    pub fn holders(&self, found: &[u32], nested: &Nested<'_>, most: usize) -> Vec<Holder> {
        let mut holders: Vec<Holder> = Vec::new();
        let mut own = Holder {
            name: OWN.into(),
            ..Holder::default()
        };
        let outermost = nested.outermost(found);
        for &object in outermost.iter().filter(|&&it| self.held(it) == Held::Own) {
            let retained = self.dominators.retained(object);
            own.retained_bytes = own.retained_bytes.saturating_add(retained);
            own.objects += u64::from(self.dominators.count(object));
        }
        for Group {
            held,
            within,
            retained,
            objects,
        } in self.groups(found, nested, most)
        {
            let counts = objects.iter().map(|&it| self.dominators.count(it));
            holders.push(Holder {
                name: self.name_of(held),
                class: self.graph.class_name(objects[0]).into(),
                held: objects.len() as u64,
                objects: counts.map(u64::from).sum(),
                retained_bytes: retained,
                path: self.descent(objects, retained),
                within: within.map_or_else(String::new, |it| self.name_of(it)),
            });
        }
        if own.retained_bytes > 0 {
            let place = holders.partition_point(|it| it.retained_bytes >= own.retained_bytes);
            holders.insert(place, own);
            holders.truncate(most);
        }
        holders
    }

    /// The biggest rows of these holders but rperf's, the biggest first. All are grouped before rows are cut, because
    /// many small holders of one name may have most of all bytes.
    fn groups(&self, found: &[u32], nested: &Nested<'_>, most: usize) -> Vec<Group> {
        let mut groups = self.by_held(found, nested);
        groups.sort_by_key(|it| Reverse(it.retained));
        groups.truncate(NAMED);
        let mut groups = self.by_name(groups);
        self.count_once(&mut groups);
        groups.sort_by_key(|it| Reverse(it.retained));
        groups.truncate(most);
        groups
    }

    /// Groups of those of a class that are held alike.
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

    /// Groups of those whose names and classes read alike.
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

#[cfg(test)]
mod tests;
