//! The names of ops, and their numbers, which stay as long as the session. Under the GVL.

use crate::table::cut;
use rperf_model::{CodePath, Ops, Order};
use rperf_vm::OpNumber;
use rustc_hash::{FxHashMap, FxHasher};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::hash::Hasher;
use std::sync::Arc;

/// Texts that are known as they came: 4 MB at most. So a statement that is sent again isn't read again.
const KNOWN: usize = 1 << 12;

/// Bytes of a text that is known as it came at most.
const LONGEST_KNOWN: usize = 1 << 10;

/// Bytes of a name without its kind.
const LONGEST: usize = 500;

/// Bytes of a text that are read to make a name of.
const LONGEST_READ: usize = 4 * LONGEST;

/// Bytes of a kind.
const LONGEST_KIND: usize = 32;

/// Numbers that are kept for the others of each kind, when no further name has one of its own.
const FOR_OTHERS: usize = 32;

/// The kind of statements of SQL.
const SQL: &str = "sql";

/// The kind of templates that are rendered, whose texts are paths.
const RENDER: &str = "render";

/// The kind of jobs that are performed.
const PERFORM: &str = "perform";

/// Kinds that are written in another way in names, however a program writes them.
const WRITTEN: [(&str, &str); 3] = [(SQL, "SQL"), ("http", "HTTP"), ("redis", "Redis")];

/// Which op is the leaf of samples within one. What is Ruby code has methods of its own to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpFrame {
    /// The op itself.
    Own,
    /// The op around it, if there is one: templates are parts of it.
    OfOuter,
    /// None: a job is a work of its own, whoever has enqueued it.
    Nothing,
}

/// All names.
#[derive(Debug, Default)]
pub struct OpNames {
    /// From number 1.
    names: Vec<Arc<str>>,
    /// By number, too.
    frames: Vec<OpFrame>,
    numbers: FxHashMap<Arc<str>, OpNumber>,
    /// Each at the place that its hash tells.
    known: Vec<Option<Known>>,
    /// The directories of the program, the innermost first.
    roots: Vec<String>,
}

/// A text as it came, and its kind.
#[derive(Debug)]
struct Known {
    kind: Box<str>,
    text: Box<[u8]>,
    number: OpNumber,
}

impl OpNames {
    /// Names of a program in these directories.
    pub fn of_program_in(mut roots: Vec<String>) -> Self {
        roots.order_by_key(|it| Reverse(it.len()));
        Self {
            roots,
            ..Self::default()
        }
    }

    /// The number of the op of this kind with this text.
    pub fn number(&mut self, kind: &str, text: &[u8]) -> OpNumber {
        if text.len() > LONGEST_KNOWN || kind.len() > LONGEST_KIND {
            return self.look_up(kind, text);
        }
        let place = (hash(kind, text) as usize) % KNOWN;
        if let Some(Some(known)) = self.known.get(place)
            && *known.text == *text
            && *known.kind == *kind
        {
            return known.number;
        }
        let number = self.look_up(kind, text);
        if self.known.is_empty() {
            self.known.resize_with(KNOWN, || None);
        }
        self.known[place] = Some(Known {
            kind: kind.into(),
            text: text.into(),
            number,
        });
        number
    }

    /// The name with this number.
    pub fn name(&self, op: OpNumber) -> Option<&str> {
        let row = usize::from(op.0).checked_sub(1)?;
        self.names.get(row).map(|name| &**name)
    }

    /// Whether the name with this number is of this kind. That of all others is of none.
    pub fn is_of_kind(&self, op: OpNumber, kind: &str) -> bool {
        let name = self.name(op).and_then(|name| name.strip_prefix('['));
        let kind = written(kind);
        name.and_then(|name| name.split_at_checked(kind.len()))
            .is_some_and(|(of, rest)| of.eq_ignore_ascii_case(&kind) && rest.starts_with("] "))
    }

    /// All, from number 1.
    pub fn all(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Which op is the leaf of samples within the one with this number.
    pub fn frame(&self, op: OpNumber) -> OpFrame {
        let row = usize::from(op.0).checked_sub(1);
        let known = row.and_then(|row| self.frames.get(row));
        known.copied().unwrap_or(OpFrame::Nothing)
    }

    /// Bytes held for names, and for texts as they came.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let names = self.names.iter().map(|name| name.len());
        let known = self.known.iter().flatten();
        let known = known.map(|it| it.kind.len() + it.text.len());
        let number = size_of::<(Arc<str>, OpNumber)>() + 1;
        names.chain(known).sum::<usize>()
            + self.names.capacity() * size_of::<Arc<str>>()
            + self.frames.capacity() * size_of::<OpFrame>()
            + self.numbers.capacity() * number
            + self.known.capacity() * size_of::<Option<Known>>()
    }

    fn look_up(&mut self, kind: &str, text: &[u8]) -> OpNumber {
        let kind = kind.trim();
        let written = written(kind);
        let mut name = format!("[{written}] ");
        if kind.eq_ignore_ascii_case(SQL) {
            let mut statement = String::new();
            rperf_sql::normalise(text, &mut statement);
            name.push_str(&statement);
        } else {
            let start = String::from_utf8_lossy(&text[..text.len().min(LONGEST_READ)]);
            let shown = match kind.eq_ignore_ascii_case(RENDER) {
                true => self.short_path(&start),
                false => Cow::Borrowed(&*start),
            };
            let is_whole = text.len() <= LONGEST_READ && shown.len() <= LONGEST;
            name.push_str(&one_line(cut(&shown, LONGEST)));
            if !is_whole {
                name.push('…');
            }
        }
        let frame = frame_of(kind);
        let most = usize::from(OpNumber::MOST);
        let all_others = format!("[{written}] {}", Ops::OTHER);
        self.get_or_add(&name, frame, most - FOR_OTHERS)
            .or_else(|| self.get_or_add(&all_others, frame, most - 1))
            .or_else(|| self.get_or_add(Ops::OTHER, OpFrame::Own, most))
            .unwrap_or_default()
    }

    /// The path of a template as it is in names: below a directory of the program, or below that of its gem.
    fn short_path<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match CodePath::of(path) {
            CodePath::Gem {
                directory, file, ..
            } => format!("{directory}/{file}").into(),
            _ => {
                let mut roots = self.roots.iter();
                let short = roots.find_map(|root| path.strip_prefix(&**root)?.strip_prefix('/'));
                short.unwrap_or(path).into()
            }
        }
    }

    /// The number of a name, which gets one if there are less than `most`.
    fn get_or_add(&mut self, name: &str, frame: OpFrame, most: usize) -> Option<OpNumber> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        if self.names.len() >= most {
            return None;
        }
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.frames.push(frame);
        let number = OpNumber(self.names.len() as u16);
        self.numbers.insert(name, number);
        Some(number)
    }
}

/// The frame of all ops of a kind.
fn frame_of(kind: &str) -> OpFrame {
    if kind.eq_ignore_ascii_case(RENDER) {
        OpFrame::OfOuter
    } else if kind.eq_ignore_ascii_case(PERFORM) {
        OpFrame::Nothing
    } else {
        OpFrame::Own
    }
}

/// A kind as it is in names.
fn written(kind: &str) -> Cow<'_, str> {
    let kind = kind.trim();
    let known = WRITTEN.iter().find(|it| it.0.eq_ignore_ascii_case(kind));
    known.map_or_else(|| one_line(cut(kind, LONGEST_KIND)), |it| it.1.into())
}

fn hash(kind: &str, text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(kind.as_bytes());
    hasher.write(text);
    hasher.finish()
}

/// The text with spaces for line breaks and other control characters.
fn one_line(text: &str) -> Cow<'_, str> {
    match text.chars().any(char::is_control) {
        true => text.replace(char::is_control, " ").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_of_ruby_code_have_no_frame() {
        use OpFrame::{Nothing, OfOuter, Own};
        let mut names = OpNames::default();
        let frames = ["sql", "Render", " perform", "renderer"].map(|kind| {
            let number = names.number(kind, b"a");
            names.frame(number)
        });
        assert_eq!(frames, [Own, OfOuter, Nothing, Own]);
        assert_eq!(names.frame(OpNumber::NONE), Nothing);
    }

    #[test]
    fn a_name_keeps_its_number_and_has_its_kind_in_front() {
        let mut names = OpNames::default();
        let of = |names: &mut OpNames, kind, text: &str| {
            let number = names.number(kind, text.as_bytes());
            names.name(number).map(str::to_owned)
        };
        for _ in 0..2 {
            let known = |name: &str| Some(name.to_owned());
            assert_eq!(of(&mut names, "sql", "SELECT 1"), known("[SQL] SELECT ?"));
            assert_eq!(of(&mut names, "sql", "SELECT 2"), known("[SQL] SELECT ?"));
            assert_eq!(of(&mut names, "SQL", "SELECT 3"), known("[SQL] SELECT ?"));
            assert_eq!(of(&mut names, "http", "GET a"), known("[HTTP] GET a"));
            assert_eq!(of(&mut names, "mine", "a\nb"), known("[mine] a b"));
        }
        assert_eq!(names.all().len(), 3);
        assert_eq!(names.name(OpNumber::NONE), None);
        assert!(names.is_of_kind(OpNumber(1), "sql") && names.is_of_kind(OpNumber(3), "mine"));
        assert!(!names.is_of_kind(OpNumber(1), "s") && !names.is_of_kind(OpNumber(9), "sql"));
    }

    #[test]
    fn long_texts_are_cut_and_bad_bytes_replaced() {
        let mut names = OpNames::default();
        let number = names.number("op", "é".repeat(600).as_bytes());
        let name = names.name(number).expect("a name");
        assert_eq!(name, format!("[op] {}…", "é".repeat(LONGEST / 2)));
        let number = names.number("op", b"a\xFF");
        assert_eq!(names.name(number), Some("[op] a\u{FFFD}"));
    }

    #[test]
    fn templates_have_short_paths() {
        let roots = ["/srv", "/srv/shop"].map(str::to_owned);
        let mut names = OpNames::of_program_in(roots.into());
        let mut of = |path: &str| {
            let number = names.number("render", path.as_bytes());
            names.name(number).map(str::to_owned)
        };
        let deep = format!("/srv/shop/app/{}.erb", "é".repeat(200));
        let deeper = format!("/srv/shop/app/{}.erb", "é".repeat(LONGEST));
        let cut_path = format!("app/{}…", "é".repeat(LONGEST / 2 - 2));
        for (path, name) in [
            ("/srv/shop/app/views/a.erb", "app/views/a.erb"),
            ("/srv/shopping/b.erb", "shopping/b.erb"),
            ("/srv/shop/gems/pages-1.2/app/c.erb", "pages-1.2/app/c.erb"),
            ("/other/d.erb", "/other/d.erb"),
            ("views/e.erb", "views/e.erb"),
            ("inline template", "inline template"),
            ("/srv/shop", "shop"),
            ("", ""),
            (deep.as_str(), deep.trim_start_matches("/srv/shop/")),
            (deeper.as_str(), cut_path.as_str()),
        ] {
            assert_eq!(of(path), Some(format!("[render] {name}")));
        }
        let other = names.number("op", b"/srv/shop/app/views/a.erb");
        assert_eq!(names.name(other), Some("[op] /srv/shop/app/views/a.erb"));
    }

    #[test]
    fn further_names_are_the_others_of_their_kind() {
        let mut names = OpNames::default();
        for number in 0..100_000 {
            names.number("op", format!("name {number}").as_bytes());
        }
        let other = names.number("op", b"late");
        assert_eq!(names.name(other), Some("[op] (other)"));
        assert_eq!(names.number("op", b"later still"), other);
        let kinds: Vec<_> = (0..2 * FOR_OTHERS)
            .map(|kind| names.number(&kind.to_string(), b"late"))
            .collect();
        let last = kinds.last().copied().unwrap_or_default();
        assert_eq!(names.name(last), Some(Ops::OTHER));
        assert_eq!(names.all().len(), usize::from(OpNumber::MOST));
        let first = names.number("op", b"name 7");
        assert_eq!(names.name(first), Some("[op] name 7"));
    }
}
