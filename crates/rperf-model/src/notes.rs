//! The notes of a profile: facts about the run that have no field of their own, each a line in files
//! and on pages. Lines are made and read here alone: of what kind a note is, is known elsewhere by
//! its type. Any thread, no I/O.

use crate::{OwnColumn, TraceLevel};
use std::fmt::{self, Display, Formatter};

pub(crate) mod trace_level;

/// A fact about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A line for people, such as versions and the mode, or a line of another tool.
    Text(String),
    /// How calls were traced.
    Traced(Traced),
    /// A fact about the values of a column.
    Values(OwnColumn, String),
    /// Objects were sampled, by their bytes.
    SampledObjects(SampledBytes),
    /// Objects in use were looked at in this process: its number and what tells it from others with that.
    InUse(String),
    /// Objects in use were left out when profiles became one.
    InUseLeftOut,
    /// Names of methods that a user has chosen, by what a process knows of them, in one text: files of
    /// others can have millions.
    Chosen(Chosen, String),
}

/// The bytes that a sample of objects stands for in the mean, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledBytes(pub u64);

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
    /// The process has found the method.
    Found,
    /// The process hasn't found the method.
    NotFound,
    /// The process has found the method, but its calls can't be traced.
    NotTraceable,
}

const SAMPLED: &str = "alloc_objects and alloc_space: sampled, 1 of ";
const IN_USE: &str = "inuse_objects and inuse_space: made in the session, and alive when this was taken, in process ";
const IN_USE_LEFT_OUT: &str = "inuse_objects and inuse_space: left out, as some of the processes were looked at \
     twice, and others once";
const OF_SLOTS: &str = " of slots in Ruby's heap, without the memory that objects have elsewhere";
/// Units that such bytes are told in, the largest first.
const UNITS: [(&str, u64); 4] = [
    (" GB", 1 << 30),
    (" MB", 1 << 20),
    (" KB", 1 << 10),
    (" B", 1),
];

const TRACED: &str = "traced: ";
const CALLS: &str = "calls ";
const CHOSEN_METHODS: &str = "chosen methods only";
const CLOCK: &str = ", clock ";
/// Names have no commas.
const SEPARATOR: &str = ", ";

impl Chosen {
    pub(crate) const ALL: [Chosen; 3] = [Chosen::Found, Chosen::NotFound, Chosen::NotTraceable];

    fn prefix(self) -> &'static str {
        match self {
            Chosen::Found => "chosen: ",
            Chosen::NotFound => "chosen, not found: ",
            Chosen::NotTraceable => "chosen, not traceable: ",
        }
    }
}

impl Note {
    /// The names of methods that a user has chosen.
    pub fn chosen(chosen: Chosen, names: &[String]) -> Self {
        Self::Chosen(chosen, names.join(SEPARATOR))
    }

    /// The names of methods, if they are of such `wanted` ones.
    pub(crate) fn names(&self, wanted: Chosen) -> impl Iterator<Item = &str> {
        let names = match self {
            Note::Chosen(chosen, names) if *chosen == wanted => Some(names.split(SEPARATOR)),
            _ => None,
        };
        names.into_iter().flatten()
    }

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
        if let Some(bytes) = SampledBytes::read(text) {
            return Note::SampledObjects(bytes);
        }
        if text == IN_USE_LEFT_OUT {
            return Note::InUseLeftOut;
        }
        if let Some(process) = text.strip_prefix(IN_USE) {
            return Note::InUse(process.into());
        }
        for chosen in Chosen::ALL {
            if let Some(names) = text.strip_prefix(chosen.prefix()) {
                return Note::Chosen(chosen, names.into());
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
            Note::SampledObjects(bytes) => write!(f, "{SAMPLED}{bytes}{OF_SLOTS}"),
            Note::InUse(process) => write!(f, "{IN_USE}{process}"),
            Note::InUseLeftOut => f.write_str(IN_USE_LEFT_OUT),
            Note::Chosen(chosen, names) => write!(f, "{}{names}", chosen.prefix()),
        }
    }
}

impl SampledBytes {
    /// The bytes of a line that is such a note's.
    fn read(line: &str) -> Option<Self> {
        let text = line.strip_prefix(SAMPLED)?.strip_suffix(OF_SLOTS)?;
        let read = |(unit, bytes): (&str, u64)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(bytes).map(Self)
        };
        let bytes = UNITS.into_iter().find_map(read)?;
        (bytes.to_string() == text).then_some(bytes)
    }
}

impl Display for SampledBytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let fits = |(_, bytes): &(&str, u64)| self.0.is_multiple_of(*bytes) && self.0 >= *bytes;
        let (unit, bytes) = UNITS.into_iter().find(fits).unwrap_or((" B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
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
            (
                prop::sample::select(OwnColumn::all().collect::<Vec<_>>()),
                ".*"
            )
                .prop_map(|(column, text)| Note::Values(column, text)),
            ".*".prop_map(Note::InUse),
            any::<u64>().prop_map(|bytes| Note::SampledObjects(SampledBytes(bytes))),
            (prop::sample::select(Chosen::ALL.to_vec()), names())
                .prop_map(|(chosen, names)| Note::chosen(chosen, &names)),
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
            (
                "alloc_objects and alloc_space: sampled, 1 of 512 KB of slots in Ruby's heap, without the \
                 memory that objects have elsewhere",
                Note::SampledObjects(SampledBytes(512 << 10)),
            ),
            (
                "alloc_objects and alloc_space: sampled, 1 of many",
                Note::Text("alloc_objects and alloc_space: sampled, 1 of many".into()),
            ),
            (
                "inuse_objects and inuse_space: made in the session, and alive when this was taken, in \
                 process 7-1f-1",
                Note::InUse("7-1f-1".into()),
            ),
            (IN_USE_LEFT_OUT, Note::InUseLeftOut),
            ("mode: wall", Note::Text("mode: wall".into())),
            (
                "chosen: A#b, C.d",
                Note::chosen(Chosen::Found, &texts(&["A#b", "C.d"])),
            ),
            (
                "chosen, not found: A#b",
                Note::chosen(Chosen::NotFound, &texts(&["A#b"])),
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
                "", "traced: ", "traced: calls ", "traced: calls all, clock ", "chosen: ", "cpu: ", SAMPLED, IN_USE,
                "traced: chosen methods only", "chosen, not found: ", "chosen, not traceable: ",
            ]),
            rest in ".*",
        ) {
            let line = format!("{start}{rest}");
            prop_assert_eq!(Note::from(&*line).to_string(), line);
        }
    }
}
