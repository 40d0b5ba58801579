//! The notes of a profile: facts about the run that have no field of their own, each a line in files
//! and on pages. Lines are made and read here alone: of what kind a note is, is known elsewhere by
//! its type. Any thread, no I/O.

use crate::{Meta, OwnColumn, TraceLevel};
use std::fmt::{self, Display, Formatter};

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A line for people, such as versions and the mode, or a line of another tool.
    Text(String),
    /// How calls were traced.
    Traced(Traced),
    /// A fact about the values of a column.
    Values(OwnColumn, String),
    /// The names of methods that a user has chosen, by what a process knows of them.
    Chosen(Chosen, Vec<String>),
}

/// A fact about how calls were traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// The calls of this level, by a clock.
    Calls(TraceLevel, String),
    /// The calls of chosen methods, by a clock.
    Chosen(String),
    /// A line for people.
    Text(String),
}

/// Whether a process has found a method that a user has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// It has.
    Found,
    /// It hasn't.
    NotFound,
    /// It has, and its calls can't be traced.
    NotTraceable,
}

const TRACED: &str = "traced: ";
const CALLS: &str = "calls ";
const CHOSEN_METHODS: &str = "chosen methods only";
const CLOCK: &str = ", clock ";
const MISSING: &str = "missing: ";
/// Names have no commas.
const SEPARATOR: &str = ", ";

impl Chosen {
    const ALL: [Chosen; 3] = [Chosen::Found, Chosen::NotFound, Chosen::NotTraceable];

    fn prefix(self) -> &'static str {
        match self {
            Chosen::Found => "chosen: ",
            Chosen::NotFound => "chosen, not found: ",
            Chosen::NotTraceable => "chosen, not traceable: ",
        }
    }
}

impl Note {
    /// A line about how calls were traced.
    pub fn traced(line: impl Display) -> Self {
        Self::Traced(Traced::read(&line.to_string()))
    }

    /// A line about how calls of this process were traced: a profile can be of several.
    pub fn traced_here(line: impl Display) -> Self {
        Self::traced(format_args!("process {}: {line}", std::process::id()))
    }
}

/// The note that has this line. A line that rperf doesn't know is text.
impl<T: AsRef<str> + Into<String>> From<T> for Note {
    fn from(line: T) -> Self {
        let text = line.as_ref();
        if let Some(rest) = text.strip_prefix(TRACED) {
            return Note::Traced(Traced::read(rest));
        }
        for chosen in Chosen::ALL {
            if let Some(names) = text.strip_prefix(chosen.prefix()) {
                let names = names.split(SEPARATOR).map(String::from);
                return Note::Chosen(chosen, names.collect());
            }
        }
        let named = text.split_once(": ");
        let of_column = named.and_then(|(name, rest)| Some((OwnColumn::named(name)?, rest)));
        match of_column {
            Some((column, rest)) => Note::Values(column, rest.into()),
            None => Note::Text(line.into()),
        }
    }
}

impl Display for Note {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Note::Text(text) => f.write_str(text),
            Note::Traced(traced) => write!(f, "{TRACED}{traced}"),
            Note::Values(column, text) => write!(f, "{}: {text}", column.name()),
            Note::Chosen(chosen, names) => {
                write!(f, "{}{}", chosen.prefix(), names.join(SEPARATOR))
            }
        }
    }
}

impl Traced {
    fn read(text: &str) -> Self {
        let known = text.split_once(CLOCK).and_then(|(what, clock)| match what {
            CHOSEN_METHODS => Some(Traced::Chosen(clock.into())),
            _ => {
                let level = TraceLevel::from_name(what.strip_prefix(CALLS)?)?;
                Some(Traced::Calls(level, clock.into()))
            }
        });
        known.unwrap_or_else(|| Traced::Text(text.into()))
    }
}

impl Display for Traced {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Traced::Calls(level, clock) => write!(f, "{CALLS}{}{CLOCK}{clock}", level.name()),
            Traced::Chosen(clock) => write!(f, "{CHOSEN_METHODS}{CLOCK}{clock}"),
            Traced::Text(text) => f.write_str(text),
        }
    }
}

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
                self.notes.push(Note::Chosen(chosen, names.to_vec()));
            }
        }
    }

    /// The names of chosen methods that no process has found, in their order.
    pub fn never_found(&self) -> Vec<&str> {
        let found = self.chosen(Chosen::Found);
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
        let mut known: Vec<&str> = Vec::new();
        for note in &self.notes {
            if let Note::Chosen(chosen, names) = note
                && *chosen == wanted
            {
                let names = names.iter().map(String::as_str);
                for name in names {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn level() -> impl Strategy<Value = TraceLevel> {
        let names = prop::sample::select(vec!["ruby", "all", "count", "count-all"]);
        names.prop_map(|name| TraceLevel::from_name(name).expect("a level"))
    }

    fn note() -> impl Strategy<Value = Note> {
        let names = || prop::collection::vec("[A-Z][a-z]{0,3}[#.][a-z?=]{1,5}", 1..4);
        prop_oneof![
            ".*".prop_map(Note::from),
            ".*".prop_map(Note::traced),
            ".*".prop_map(Note::traced_here),
            (level(), ".*").prop_map(|(level, clock)| Note::Traced(Traced::Calls(level, clock))),
            ".*".prop_map(|clock| Note::Traced(Traced::Chosen(clock))),
            (prop::sample::select(OwnColumn::ALL.to_vec()), ".*")
                .prop_map(|(column, text)| Note::Values(column, text)),
            (prop::sample::select(Chosen::ALL.to_vec()), names())
                .prop_map(|(chosen, names)| Note::Chosen(chosen, names)),
        ]
    }

    #[test]
    fn lines_of_this_and_older_versions_are_known() {
        let ruby = TraceLevel::from_name("ruby").expect("a level");
        let all = TraceLevel::from_name("count-all").expect("a level");
        let traced = |traced| Note::Traced(traced);
        for (line, expected) in [
            (
                "traced: calls ruby, clock TSC",
                traced(Traced::Calls(ruby, "TSC".into())),
            ),
            (
                "traced: calls count-all, clock none, 2 calls, 1 calls of blocks",
                traced(Traced::Calls(
                    all,
                    "none, 2 calls, 1 calls of blocks".into(),
                )),
            ),
            (
                "traced: chosen methods only, clock TSC",
                traced(Traced::Chosen("TSC".into())),
            ),
            (
                "traced: calls of yore, clock x",
                traced(Traced::Text("calls of yore, clock x".into())),
            ),
            (
                "traced: process 7: calls",
                traced(Traced::Text("process 7: calls".into())),
            ),
            (
                "alloc_space: slots",
                Note::Values(OwnColumn::Bytes, "slots".into()),
            ),
            (
                "alloc_space2: slots",
                Note::Text("alloc_space2: slots".into()),
            ),
            ("mode: wall", Note::Text("mode: wall".into())),
            (
                "chosen: A#b, C.d",
                Note::Chosen(Chosen::Found, texts(&["A#b", "C.d"])),
            ),
            (
                "chosen, not found: A#b",
                Note::Chosen(Chosen::NotFound, texts(&["A#b"])),
            ),
        ] {
            assert_eq!(Note::from(line), expected);
            assert_eq!(expected.to_string(), line);
        }
        let here = Note::traced_here("2 calls").to_string();
        assert_eq!(
            here,
            format!("traced: process {}: 2 calls", std::process::id())
        );
    }

    proptest! {
        #[test]
        fn notes_are_written_and_read_back(note in note()) {
            prop_assert_eq!(Note::from(note.to_string()), note);
        }

        #[test]
        fn lines_stay_as_they_are(
            start in prop::sample::select(vec![
                "", "traced: ", "traced: calls ", "traced: calls all, clock ", "chosen: ", "cpu: ",
                "traced: chosen methods only", "chosen, not found: ", "chosen, not traceable: ",
            ]),
            rest in ".*",
        ) {
            let line = format!("{start}{rest}");
            prop_assert_eq!(Note::from(&*line).to_string(), line);
        }
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
