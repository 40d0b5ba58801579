//! What the notes of a run say as a whole: their lines in files and on pages, how calls were traced,
//! and which chosen methods were found. Any thread, no I/O.

use crate::{Chosen, Meta, Note, SampledBytes, Traced};
use std::collections::HashSet;

const MISSING: &str = "missing: ";

impl Meta {
    /// A line for each note, and then for each thing that all samples lack.
    pub fn lines(&self) -> Vec<String> {
        let notes = self.notes.iter().map(Note::to_string);
        notes.chain(self.missing_lines()).collect()
    }

    /// Sets what [`Meta::lines`] has told.
    pub fn set_lines(&mut self, lines: impl IntoIterator<Item = String>) {
        self.notes.clear();
        self.missing.clear();
        for line in lines {
            match line.strip_prefix(MISSING) {
                Some(what) => self.missing.push(what.to_owned()),
                None => self.notes.push(line.into()),
            }
        }
    }

    /// A line for each thing that all samples lack.
    pub fn missing_lines(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|it| format!("{MISSING}{it}"))
    }

    /// How calls were traced.
    pub fn tracing(&self) -> impl Iterator<Item = &Traced> {
        self.notes.iter().filter_map(|note| match note {
            Note::Traced(traced) => Some(traced),
            _ => None,
        })
    }

    /// The bytes that a sample of objects stands for at most, if objects were sampled.
    pub fn sampled_objects(&self) -> Option<SampledBytes> {
        let sampled = self.notes.iter().filter_map(|note| match note {
            Note::SampledObjects(bytes) => Some(*bytes),
            _ => None,
        });
        sampled.max()
    }

    /// Notes which of the chosen methods the process has found, which it hasn't, and which of those
    /// found have no calls that can be traced.
    pub fn note_chosen(
        &mut self,
        found: &[String],
        not_found: &[String],
        not_traceable: &[String],
    ) {
        for (chosen, names) in Chosen::ALL
            .into_iter()
            .zip([found, not_found, not_traceable])
        {
            if !names.is_empty() {
                self.notes.push(Note::chosen(chosen, names));
            }
        }
    }

    /// The names of chosen methods that no process has found, in their order.
    pub fn never_found(&self) -> Vec<&str> {
        let found: HashSet<_> = self.chosen(Chosen::Found).into_iter().collect();
        let mut names = self.chosen(Chosen::NotFound);
        names.retain(|name| !found.contains(name));
        names
    }

    /// The names of chosen methods whose calls could not be traced where they were found, in their
    /// order.
    pub fn not_traceable(&self) -> Vec<&str> {
        self.chosen(Chosen::NotTraceable)
    }

    /// The names of chosen methods of which this is known, each once.
    fn chosen(&self, wanted: Chosen) -> Vec<&str> {
        // A file of others can have millions of them.
        let mut known = HashSet::new();
        let names = self.notes.iter().flat_map(|note| note.names(wanted));
        names.filter(|name| known.insert(*name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_missing_is_a_line_behind_the_notes_and_is_read_from_there() {
        let meta = Meta {
            notes: vec!["mode: wall".into(), "objects may be missing: x".into()],
            missing: texts(&["lines, because they are"]),
            ..Meta::default()
        };
        assert!(
            meta.missing_lines()
                .eq(["missing: lines, because they are"])
        );
        let mut read = Meta {
            missing: texts(&["what was there before"]),
            ..Meta::default()
        };
        read.set_lines(meta.lines());
        assert_eq!(read.notes, meta.notes);
        assert_eq!(read.missing, meta.missing);
    }

    #[test]
    fn a_method_is_missing_if_no_process_has_found_it() {
        let mut meta = Meta::default();
        assert!(meta.never_found().is_empty());
        meta.note_chosen(&[], &texts(&["Order#total", "Typo#x"]), &[]);
        assert_eq!(meta.never_found(), ["Order#total", "Typo#x"]);
        let getter = texts(&["Order#id"]);
        meta.note_chosen(&texts(&["Order#total"]), &texts(&["Typo#x"]), &getter);
        meta.note_chosen(&getter, &[], &getter);
        assert_eq!(meta.never_found(), ["Typo#x"]);
        assert_eq!(meta.not_traceable(), ["Order#id"]);
    }
}
