//! What all samples of a profile lack, as a line among its comments: in files and pages that have
//! one list for both. Any thread.

use crate::Meta;

const MISSING: &str = "missing: ";

impl Meta {
    /// A line for each thing that all samples lack.
    pub fn missing_lines(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|it| format!("{MISSING}{it}"))
    }

    /// The comments and [`Meta::missing_lines`].
    pub fn notes(&self) -> Vec<String> {
        let comments = self.comments.iter().cloned();
        comments.chain(self.missing_lines()).collect()
    }

    /// Sets what [`Meta::notes`] has told.
    pub fn set_notes(&mut self, notes: impl IntoIterator<Item = String>) {
        self.comments.clear();
        self.missing.clear();
        for note in notes {
            match note.strip_prefix(MISSING) {
                Some(what) => self.missing.push(what.to_owned()),
                None => self.comments.push(note),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_line_among_the_comments_and_is_read_from_there() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let meta = Meta {
            comments: texts(&["mode: wall", "objects may be missing: x"]),
            missing: texts(&["lines, because they are"]),
            ..Meta::default()
        };
        let lines = ["missing: lines, because they are"];
        assert!(meta.missing_lines().eq(lines));
        let notes = meta.notes();
        assert_eq!(notes, [&meta.comments[..], &texts(&lines)].concat());
        let mut read = Meta {
            missing: texts(&["what was there before"]),
            ..Meta::default()
        };
        read.set_notes(notes);
        assert_eq!(read.comments, meta.comments);
        assert_eq!(read.missing, meta.missing);
    }
}
