//! Finds the methods of one profile in another: by name and by what their paths mean. Used by
//! comparisons, and where calls of a trace are joined with samples; any thread.

use crate::stack::groups::Function;
use crate::text::code_paths::{CodePaths, Meaning};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// How a method was found to be the same in two profiles, the surest way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matched {
    /// By its name and its path: below the program's directory, a gem or Ruby's library.
    Path,
    /// By its name, the name of its file, and as many of the directories around that as tell it
    /// from others that one profile lacks.
    File,
    /// By its name, which no other has in either profile.
    Name,
}

impl Matched {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Matched::Path => "path",
            Matched::File => "file",
            Matched::Name => "name",
        }
    }
}

/// What a method is known by in other profiles.
#[derive(Debug, Clone)]
pub(crate) struct MethodKey {
    id: MethodId,
    /// The path as it was recorded.
    path: String,
}

/// The name, and the meaning of the path.
type MethodId = (String, Meaning);

impl MethodKey {
    /// The key of `function`, which is one of the profile with these paths.
    pub(crate) fn of(function: &Function, paths: &CodePaths) -> Self {
        Self {
            id: (function.name.clone(), paths.meaning(&function.path)),
            path: function.path.clone(),
        }
    }

    /// What no other method of the profile has.
    pub(crate) fn id(&self) -> &MethodId {
        &self.id
    }

    fn name(&self) -> &str {
        &self.id.0
    }

    pub(crate) fn meaning(&self) -> &Meaning {
        &self.id.1
    }

    /// The name, and the end of the path with this many directories and files.
    fn end(&self, parts: usize) -> Option<(&str, &str)> {
        Some((self.name(), self.meaning().end_of_file(parts)?))
    }
}

/// Directories and files at the end of a path that are compared.
const MOST_PARTS: usize = 12;

/// For each of `ours` its place among `theirs`. Keys are there once each.
pub(crate) fn match_methods<'a>(
    ours: &[&'a MethodKey],
    theirs: &[&'a MethodKey],
) -> Vec<Option<(usize, Matched)>> {
    let places = (0..).zip(theirs).map(|(i, key)| (key.id(), i));
    let places: FxHashMap<&MethodId, usize> = places.collect();
    let mut found: Vec<Option<(usize, Matched)>> = ours
        .iter()
        .map(|key| Some((*places.get(key.id())?, Matched::Path)))
        .collect();
    let rest = |found: &[Option<(usize, Matched)>]| {
        let taken: FxHashSet<usize> = found.iter().flatten().map(|(place, _)| *place).collect();
        let ours: Vec<usize> = (0..ours.len()).filter(|i| found[*i].is_none()).collect();
        let theirs: Vec<usize> = (0..theirs.len()).filter(|i| !taken.contains(i)).collect();
        (ours, theirs)
    };
    let mut match_rest = |matched, text: &dyn Fn(&'a MethodKey) -> Option<(&'a str, &'a str)>| {
        let (our_rest, their_rest) = rest(&found);
        let of = |keys: &[&'a MethodKey], rest: Vec<usize>| {
            only(rest.into_iter().filter_map(|i| Some((text(keys[i])?, i))))
        };
        let (our_texts, their_texts) = (of(ours, our_rest), of(theirs, their_rest));
        for (text, our_place) in our_texts {
            if let (Some(our_place), Some(Some(place))) = (our_place, their_texts.get(&text)) {
                found[our_place] = Some((*place, matched));
            }
        }
    };
    // One profile can know the directory of the program, and the other one not.
    match_rest(Matched::Path, &|key| Some((key.name(), key.path.as_str())));
    for parts in (1..=MOST_PARTS).rev() {
        match_rest(Matched::File, &|key| key.end(parts));
    }
    let (our_rest, their_rest) = rest(&found);
    let all_names = |keys: &[&'a MethodKey]| -> FxHashMap<&'a str, Option<usize>> {
        only((0..).zip(keys).map(|(i, key)| (key.name(), i)))
    };
    let (our_names, their_names) = (all_names(ours), all_names(theirs));
    let their_rest: FxHashSet<usize> = their_rest.into_iter().collect();
    for our_place in our_rest {
        let name = ours[our_place].name();
        if let (Some(Some(_)), Some(Some(place))) = (our_names.get(name), their_names.get(name))
            && their_rest.contains(place)
        {
            found[our_place] = Some((*place, Matched::Name));
        }
    }
    found
}

/// For each key its value, if it has but one.
fn only<K: Eq + Hash>(pairs: impl Iterator<Item = (K, usize)>) -> FxHashMap<K, Option<usize>> {
    let mut found = FxHashMap::default();
    for (key, value) in pairs {
        let known = found.entry(key);
        known.and_modify(|it| *it = None).or_insert(Some(value));
    }
    found
}

/// The methods of several profiles, each once.
#[derive(Debug, Default)]
pub(crate) struct MethodTable {
    keys: Vec<MethodKey>,
    /// Each method as the first profile has it that has it at all.
    functions: Vec<Function>,
}

impl MethodTable {
    /// Adds the methods of a profile, and returns the place of each in the table, with how it was
    /// found there if it was.
    pub(crate) fn add<'a>(
        &mut self,
        methods: impl Iterator<Item = (&'a MethodKey, &'a Function)>,
    ) -> Vec<(usize, Option<Matched>)> {
        let (keys, functions): (Vec<_>, Vec<_>) = methods.unzip();
        let known: Vec<&MethodKey> = self.keys.iter().collect();
        let found = match_methods(&keys, &known);
        let placed = found.into_iter().zip(keys.into_iter().zip(functions));
        placed
            .map(|(found, (key, function))| match found {
                Some((place, matched)) => (place, Some(matched)),
                None => {
                    self.keys.push(key.clone());
                    self.functions.push(function.clone());
                    (self.keys.len() - 1, None)
                }
            })
            .collect()
    }

    /// All methods, by their places.
    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }
}

#[cfg(test)]
mod tests;
