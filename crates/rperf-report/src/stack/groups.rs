//! Which frames a report puts into one row: those of one function, file, directory or
//! gem. Used by all questions about stacks; any thread.

use crate::text::code_paths::{CodePaths, Meaning, RUBY};
use rperf_model::frame_kind::method_of;
use rperf_model::{
    Category, CodePath, DisplayFrame, FrameId, FrameKind, Node, NodeId, Origin, Profile, State,
};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A function, as it is told from others: by name and path. Methods of the same name
/// defined twice in one file are one function. The synthetic leaves (`[GVL blocked]`
/// and so on) are functions too.
///
/// Rows of other kinds (files, labels, threads) have their text in the name, and files have their
/// path, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Function {
    /// Qualified name.
    pub name: String,
    /// Path as it was recorded, or a marker such as `<C method>`.
    pub path: String,
    /// Path as people see it: `app/models/order.rb`, `rack-3.1.8/lib/rack.rb`, `<ruby>/set.rb`.
    pub short_path: String,
}

impl Function {
    /// A row that has nothing but a text.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// Where the methods count that Ruby itself has, in C or built in, as the rows are gems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoreMethods {
    /// For the gem that calls them: nearly all code calls them all the time.
    #[default]
    Caller,
    /// For themselves: `<C method>` and `<internal>`.
    Apart,
}

/// The property that the frames of one group share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKey {
    Function,
    /// The method, whatever the version of its gem is.
    Method,
    /// The method with its blocks.
    WithBlocks,
    Class,
    File,
    Directory,
    Gem(CoreMethods),
}

/// Index of a group in [`Groups`].
pub(crate) type GroupId = usize;

/// The texts of a group. Those of files have no short path: it is their name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupText<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) short_path: Cow<'a, str>,
    /// The path; if several mean the same, the first of them.
    pub(crate) path: &'a str,
}

/// The groups of all frames of a profile.
pub(crate) struct Groups<'a> {
    pub(crate) texts: Vec<GroupText<'a>>,
    by_frame: Vec<GroupId>,
    /// Where the group of a frame depends on its callers.
    by_node: Option<Vec<GroupId>>,
    by_state: [GroupId; State::ALL.len()],
    thread_exited: GroupId,
    no_frames: GroupId,
}

/// A path of the profile.
#[derive(Clone)]
struct KnownPath<'a> {
    short: Cow<'a, str>,
    meaning: Option<Meaning>,
}

/// What tells a group from others.
type Key<'a> = (Cow<'a, str>, Cow<'a, str>, Option<Meaning>);

impl<'a> Groups<'a> {
    pub(crate) fn new(profile: &'a Profile, key: FrameKey) -> Self {
        let paths = CodePaths::of(profile);
        let mut known: FxHashMap<&'a str, KnownPath<'a>> = FxHashMap::default();
        let mut texts = Vec::new();
        let mut ids: FxHashMap<Key<'a>, GroupId> = FxHashMap::default();
        let mut group = |frame| {
            let text = profile.frame_text(frame);
            let path = known.entry(text.path).or_insert_with(|| KnownPath {
                short: paths.short(text.path),
                meaning: (key == FrameKey::Method).then(|| paths.meaning(text.path)),
            });
            let short = path.short.clone();
            let none = Cow::Borrowed("");
            let (name, short_path) = match key {
                FrameKey::Function | FrameKey::Method => (text.name.into(), short),
                FrameKey::WithBlocks => (method_of(text.name).into(), short),
                FrameKey::Class => (class_of(text.name).into(), none),
                FrameKey::File => (short, none),
                FrameKey::Directory => (directory(short), none),
                FrameKey::Gem(_) => (
                    gem(profile.meta.origin(text.name, text.path), text.path),
                    none,
                ),
            };
            let path_of_key = match key {
                FrameKey::Method => Cow::Borrowed(""),
                _ => short_path.clone(),
            };
            let group_key = (name.clone(), path_of_key, path.meaning.clone());
            *ids.entry(group_key).or_insert_with(|| {
                let has_path = matches!(
                    key,
                    FrameKey::Function | FrameKey::Method | FrameKey::WithBlocks | FrameKey::File
                );
                texts.push(GroupText {
                    name,
                    short_path,
                    path: if has_path { text.path } else { "" },
                });
                texts.len() - 1
            })
        };
        let frames = profile.frames.iter();
        let by_frame: Vec<_> = frames
            .map(|(frame, _)| group(DisplayFrame::Real { frame, line: 0 }))
            .collect();
        let by_node = (key == FrameKey::Gem(CoreMethods::Caller))
            .then(|| groups_of_callers(profile, &by_frame));
        let by_state = State::ALL.map(|state| group(DisplayFrame::Synthetic(state)));
        let thread_exited = group(DisplayFrame::ThreadExited);
        let no_frames = group(DisplayFrame::NoFrames);
        Self {
            texts,
            by_frame,
            by_node,
            by_state,
            thread_exited,
            no_frames,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn of(&self, frame: DisplayFrame) -> GroupId {
        match frame {
            DisplayFrame::Real { frame, .. } => self.of_frame(frame),
            DisplayFrame::Synthetic(state) => self.by_state[state as usize],
            DisplayFrame::ThreadExited => self.thread_exited,
            DisplayFrame::NoFrames => self.no_frames,
        }
    }

    /// The group of a node of the call tree.
    pub(crate) fn of_node(&self, id: NodeId, node: Node) -> GroupId {
        match &self.by_node {
            Some(groups) => groups[id.0 as usize],
            None => self.of_frame(node.frame),
        }
    }

    /// The group of a frame of the profile, whatever calls it.
    pub(crate) fn of_frame(&self, frame: FrameId) -> GroupId {
        self.by_frame[frame.0 as usize]
    }

    pub(crate) fn function(&self, group: GroupId) -> Function {
        let GroupText {
            name,
            short_path,
            path,
        } = &self.texts[group];
        Function {
            name: name.to_string(),
            path: path.to_string(),
            short_path: short_path.to_string(),
        }
    }
}

/// The groups of all nodes, from the root's number on: methods that Ruby itself has are in the group
/// of their callers, if there is one.
fn groups_of_callers(profile: &Profile, by_frame: &[GroupId]) -> Vec<GroupId> {
    let is_core: Vec<bool> = profile
        .frames
        .iter()
        .map(|(frame, _)| {
            let path = profile
                .frame_text(DisplayFrame::Real { frame, line: 0 })
                .path;
            matches!(
                FrameKind::of(path),
                FrameKind::CMethod | FrameKind::Internal
            )
        })
        .collect();
    // The root has no group, and hands none on.
    let mut groups = vec![0];
    for id in 1..=profile.tree.len() as u32 {
        let Some(node) = profile.tree.get(NodeId(id)) else {
            break;
        };
        let has_caller = node.parent != NodeId::ROOT;
        groups.push(match is_core[node.frame.0 as usize] && has_caller {
            true => groups[node.parent.0 as usize],
            false => by_frame[node.frame.0 as usize],
        });
    }
    groups
}

/// The class or module of a function, as far as its name tells: `Order` of `Order#total`,
/// `Order.find` and `block in Order#total`. What has none, such as `<main>`, is its own.
pub fn class_of(name: &str) -> &str {
    let name = method_of(name);
    // Of objects and classes without a name.
    if name.starts_with("#<")
        && let Some(end) = name.find(">#").or_else(|| name.find(">."))
    {
        return &name[..=end];
    }
    for opening in ["<class:", "<module:"] {
        let class = name.strip_prefix(opening);
        if let Some(class) = class.and_then(|rest| rest.strip_suffix('>')) {
            return class;
        }
    }
    match name.split_once('#').or_else(|| name.rsplit_once('.')) {
        Some((class, method)) if !class.is_empty() && !method.is_empty() => class,
        _ => name,
    }
}

/// Ruby writes names that are not files in angle brackets, as `<internal:kernel>`; so do we.
pub(crate) fn is_file(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('<')
}

/// The directory of a file; markers stay as they are.
fn directory(path: Cow<'_, str>) -> Cow<'_, str> {
    if !is_file(&path) && !path.starts_with(RUBY) {
        return path;
    }
    match path.rsplit_once('/') {
        Some(("", _)) => "/".into(),
        Some((directory, _)) => directory.to_string().into(),
        None => ".".into(),
    }
}

/// The gem that a file belongs to, with its version; what is in no gem is told by its kind. rperf is
/// one, however it is installed.
pub(crate) fn gem<'a>(origin: Origin<'a>, path: &'a str) -> Cow<'a, str> {
    if origin.category == Category::Rperf {
        return origin.library.into();
    }
    match CodePath::of(path) {
        CodePath::Gem { directory, .. } => directory.into(),
        CodePath::Ruby { version: "", .. } => "(standard library)".into(),
        CodePath::Ruby { version, .. } => format!("(standard library {version})").into(),
        CodePath::Marker(marker) => match FrameKind::of(marker) {
            FrameKind::Internal => "<internal>".into(),
            _ => marker.into(),
        },
        CodePath::Eval { .. } | CodePath::Native(_) | CodePath::File(_) => "(application)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_what_is_inside_them_have_a_class() {
        for (name, expected) in [
            ("Order#total", "Order"),
            ("Shop::Order.find", "Shop::Order"),
            ("block in Shop::Order#total", "Shop::Order"),
            ("block (2 levels) in Order.each", "Order"),
            ("rescue in block in Order#total", "Order"),
            ("#<Class>#total", "#<Class>"),
            ("#<Object>.find", "#<Object>"),
            ("#<#<Class>>#total", "#<#<Class>>"),
            ("Order#what is in it", "Order"),
            ("Order#find.by", "Order"),
            ("block in <main>", "<main>"),
            ("<class:Order>", "Order"),
            ("<module:Shop>", "Shop"),
            ("<main>", "<main>"),
            ("[GVL blocked]", "[GVL blocked]"),
            ("std::vector<int>::push_back", "std::vector<int>::push_back"),
            (
                "encoding/json.(*Decoder).Decode",
                "encoding/json.(*Decoder)",
            ),
            ("#", "#"),
            ("..", ".."),
            ("", ""),
        ] {
            assert_eq!(class_of(name), expected, "{name}");
        }
    }

    #[test]
    fn files_have_a_directory_and_markers_are_their_own() {
        for (path, expected) in [
            ("/app/models/user.rb", "/app/models"),
            ("/x.rb", "/"),
            ("x.rb", "."),
            ("<ruby>/net/http.rb", "<ruby>/net"),
            ("<C method>", "<C method>"),
            ("", ""),
        ] {
            assert_eq!(directory(path.into()), expected);
        }
    }

    #[test]
    fn files_belong_to_a_gem_the_standard_library_or_the_application() {
        for (path, expected) in [
            (
                "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.8/lib/rack.rb",
                "rack-3.1.8",
            ),
            ("/x/bundler/gems/rails-0a1b2c/a.rb", "rails-0a1b2c"),
            ("/usr/lib/ruby/3.4.0/set.rb", "(standard library 3.4.0)"),
            (
                "/usr/local/lib/ruby/site_ruby/3.4.0/rubygems.rb",
                "(standard library 3.4.0)",
            ),
            ("/srv/app/gems/x.rb", "(application)"),
            ("app.rb", "(application)"),
            ("<internal:kernel>", "<internal>"),
            ("<GVL>", "<GVL>"),
        ] {
            assert_eq!(gem(Origin::of(path), path), expected, "{path}");
        }
    }
}
