//! Which of the methods that a user has chosen by name a process has found, in comments of its
//! profile. Written as a profile with such methods is made, read when it is delivered; any thread.

use crate::Meta;

/// What the comments begin with. Names have no commas.
const FOUND: &str = "chosen: ";
const NOT_FOUND: &str = "chosen, not found: ";
const NOT_TRACEABLE: &str = "chosen, not traceable: ";

const SEPARATOR: &str = ", ";

impl Meta {
    /// Notes which of the chosen methods the process has found, which it hasn't, and which of those
    /// found have no calls that can be traced.
    pub fn note_chosen(
        &mut self,
        found: &[String],
        not_found: &[String],
        not_traceable: &[String],
    ) {
        let lists = [
            (FOUND, found),
            (NOT_FOUND, not_found),
            (NOT_TRACEABLE, not_traceable),
        ];
        for (start, names) in lists {
            if !names.is_empty() {
                self.comments
                    .push(format!("{start}{}", names.join(SEPARATOR)));
            }
        }
    }

    /// The names of chosen methods that no process has found, in their order.
    pub fn never_found(&self) -> Vec<&str> {
        let found: Vec<_> = self.chosen(FOUND).collect();
        let mut names = self.each_once(NOT_FOUND);
        names.retain(|name| !found.contains(name));
        names
    }

    /// The names of chosen methods whose calls could not be traced where they were found, in their
    /// order.
    pub fn not_traceable(&self) -> Vec<&str> {
        self.each_once(NOT_TRACEABLE)
    }

    fn each_once<'a>(&'a self, start: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.chosen(start) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn chosen<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        let comments = self.comments.iter();
        let lists = comments.filter_map(move |comment| comment.strip_prefix(start));
        lists.flat_map(|names| names.split(SEPARATOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_missing_if_no_process_has_found_it() {
        let mut meta = Meta::default();
        assert!(meta.never_found().is_empty());
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        meta.note_chosen(&[], &names(&["Order#total", "Typo#x"]), &[]);
        assert_eq!(meta.never_found(), ["Order#total", "Typo#x"]);
        let getter = names(&["Order#id"]);
        meta.note_chosen(&names(&["Order#total"]), &names(&["Typo#x"]), &getter);
        meta.note_chosen(&getter, &[], &getter);
        assert_eq!(meta.never_found(), ["Typo#x"]);
        assert_eq!(meta.not_traceable(), ["Order#id"]);
    }
}
