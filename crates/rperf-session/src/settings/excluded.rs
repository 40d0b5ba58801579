//! The frames that a trace leaves out: those of methods and files that a user has named, and Ruby's
//! own iterators. Used by the extension as a profile is made; any thread.

use super::map::Settings;
use super::method_names;
use super::path_pattern::PathPattern;
use rperf_model::frame_kind::{FrameKind, method_of};
use std::path::Path;

/// Ruby's classes whose iterators are common.
const CLASSES: [&str; 15] = [
    "Array",
    "BasicObject",
    "Dir",
    "Enumerable",
    "Enumerator",
    "Float",
    "Hash",
    "Integer",
    "Kernel",
    "Numeric",
    "Proc",
    "Range",
    "Set",
    "String",
    "Struct",
];

/// Their methods that run a block and do little else, but for those whose names begin with `each`.
/// Methods that sort, search, add up or make something by themselves aren't among them.
const ITERATORS: [&str; 53] = [
    "all?",
    "any?",
    "call",
    "catch",
    "chunk_while",
    "collect",
    "collect!",
    "collect_concat",
    "cycle",
    "delete_if",
    "detect",
    "downto",
    "drop_while",
    "filter",
    "filter!",
    "filter_map",
    "find",
    "find_all",
    "flat_map",
    "group_by",
    "inject",
    "instance_eval",
    "instance_exec",
    "keep_if",
    "loop",
    "map",
    "map!",
    "max_by",
    "min_by",
    "minmax_by",
    "none?",
    "one?",
    "partition",
    "reduce",
    "reject",
    "reject!",
    "reverse_each",
    "select",
    "select!",
    "slice_when",
    "step",
    "take_while",
    "tap",
    "then",
    "times",
    "transform_keys",
    "transform_keys!",
    "transform_values",
    "transform_values!",
    "upto",
    "with_index",
    "with_object",
    "yield_self",
];

/// What is left out.
#[derive(Debug, Default)]
pub struct Excluded {
    named: Vec<(String, Pattern)>,
    common: bool,
}

#[derive(Debug)]
enum Pattern {
    /// With its class, and `#` or `.` at the end of that; all methods of the class if it has no name.
    Method(String, Option<String>),
    File(PathPattern),
}

impl Excluded {
    /// What these settings exclude; patterns for files begin in this `directory`.
    pub fn new(settings: &Settings, directory: &Path) -> Self {
        let pattern = |name: &String| match method_names::parts(name) {
            Some((class, method)) => {
                let method = (method != "*").then(|| method.to_owned());
                Pattern::Method(class.to_owned(), method)
            }
            None => Pattern::File(PathPattern::new(name, directory)),
        };
        let named = settings.exclude().iter();
        Self {
            named: named.map(|name| (name.clone(), pattern(name))).collect(),
            common: settings.excludes_common(),
        }
    }

    /// For each of these frames, by name and path, whether it is left out; and the users' names that
    /// none of them has.
    pub fn find<'a>(
        &self,
        frames: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> (Vec<bool>, Vec<&str>) {
        let mut is_seen = vec![false; self.named.len()];
        let is_excluded = |(name, path): (&str, &str)| {
            let (class, method) = split(name);
            let mut found = self.common && is_common(class, method, path);
            for ((_, pattern), is_seen) in self.named.iter().zip(&mut is_seen) {
                if pattern.has(class, method, path) {
                    (found, *is_seen) = (true, true);
                }
            }
            found
        };
        let excluded = frames.map(is_excluded).collect();
        let names = self.named.iter().zip(&is_seen);
        let unseen = names.filter(|(_, is_seen)| !**is_seen);
        (excluded, unseen.map(|((name, _), _)| &**name).collect())
    }
}

impl Pattern {
    fn has(&self, class: &str, method: &str, path: &str) -> bool {
        match self {
            Pattern::Method(of, Some(name)) => class == of && method == name,
            Pattern::Method(of, None) => class == of,
            Pattern::File(pattern) => pattern.matches(path),
        }
    }
}

/// The class with `#` or `.`, and the name of the method, whose block or clause it may be.
fn split(name: &str) -> (&str, &str) {
    let method = method_of(name);
    method_names::parts(method).unwrap_or(("", method))
}

fn is_common(class: &str, method: &str, path: &str) -> bool {
    let is_iterator = || {
        let outermost = class.trim_end_matches(['#', '.']).split("::").next();
        outermost.is_some_and(|it| CLASSES.contains(&it))
            && (method.starts_with("each") || ITERATORS.contains(&method))
            // It waits for files.
            && !(class.starts_with("Kernel") && method == "select")
    };
    match FrameKind::of(path) {
        FrameKind::Internal => true,
        FrameKind::CMethod => is_iterator(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{EXCLUDE, EXCLUDE_COMMON};
    use std::ffi::OsString;

    fn excluded(names: &str, common: bool) -> Excluded {
        let mut given = vec![(&EXCLUDE, OsString::from(names))];
        if common {
            given.push((&EXCLUDE_COMMON, "1".into()));
        }
        let settings = Settings::for_file(given, None, true).expect("allowed");
        Excluded::new(&settings, Path::new("/srv"))
    }

    #[test]
    fn frames_are_found_by_class_and_method_or_by_file() {
        let excluded = excluded("Cart.*, Shop::Order#total, lib/**, A#b", false);
        let (path, vendor) = ("/srv/app/x.rb", "/srv/lib/x.rb");
        let (found, unseen) = excluded.find(
            [
                ("Cart.find", path),
                ("Cart#find", path),
                ("block in Shop::Order#total", path),
                ("Order#total", path),
                ("Shop::Order#totals", path),
                ("<main>", path),
                ("<main>", vendor),
                ("Array#each", "<C method>"),
            ]
            .into_iter(),
        );
        assert_eq!(found, [true, false, true, false, false, false, true, false]);
        assert_eq!(unseen, ["A#b"]);
    }

    #[test]
    fn common_are_rubys_iterators_and_what_it_has_in_ruby() {
        let c = "<C method>";
        let excluded = excluded("A#b", true);
        let (found, unseen) = excluded.find(
            [
                ("Array#each", c),
                ("Enumerator::Lazy#map", c),
                ("Hash#each_pair", c),
                ("Integer#times", "<internal:numeric>"),
                (
                    "Kernel#require",
                    "<internal:/usr/lib/ruby/kernel_require.rb>",
                ),
                ("Array#sort_by", c),
                ("String#count", c),
                ("Kernel#select", c),
                ("Array#push", c),
                ("Kernel#sleep", c),
                ("Class#new", c),
                ("Row#each", c),
                ("Array#each", "/srv/core_ext.rb"),
            ]
            .into_iter(),
        );
        let common: Vec<bool> = (0..13).map(|number| number < 5).collect();
        assert_eq!(found, common);
        assert_eq!(unseen, ["A#b"]);
    }
}
