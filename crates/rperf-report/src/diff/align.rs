//! Gives the methods of one profile the paths that they have in another, so that both can be shown
//! in one tree. Used by comparisons in the web viewer; any thread.

use crate::matching::{MethodKey, match_methods};
use crate::rows::keys::change_keys;
use crate::stack::groups::Function;
use crate::text::code_paths::{CodePaths, Meaning};
use rperf_model::{CallTree, Frame, FrameId, Frames, Latencies, Node, NodeId, Profile, WeightKey};
use rustc_hash::FxHashMap;

/// Gives the methods of `profile` the paths that they have in `reference`, and the lines at which
/// they begin there. Methods that this doesn't have get its paths of the program's files, if it has
/// those.
pub fn align(profile: &mut Profile, reference: &Profile) {
    let our_paths = CodePaths::of(profile);
    let their_paths = CodePaths::of(reference);
    let ours = Methods::of(profile, &our_paths);
    let theirs = Methods::of(reference, &their_paths);
    let found = match_methods(&ours.keys(), &theirs.keys());
    let files: FxHashMap<&Meaning, &str> = theirs
        .all
        .iter()
        .map(|method| (method.key.meaning(), method.path))
        .filter(|(meaning, _)| matches!(meaning, Meaning::Own(_) | Meaning::Eval(_)))
        .collect();
    let aligned = |frame: &Frame, method: usize| -> (String, u32) {
        let key = &ours.all[method].key;
        match (found[method], files.get(key.meaning())) {
            (Some((place, _)), _) => {
                let theirs = &theirs.all[place];
                let line = theirs.only_line.unwrap_or(frame.first_line);
                (theirs.path.to_string(), line)
            }
            (None, Some(path)) => (path.to_string(), frame.first_line),
            (None, None) => (
                profile.strings.get(frame.path).to_string(),
                frame.first_line,
            ),
        }
    };
    let frames = profile.frames.iter().zip(&ours.by_frame);
    let aligned: Vec<(String, u32)> = frames
        .map(|((_, frame), &method)| aligned(frame, method))
        .collect();
    let paths: FxHashMap<(String, String), String> = profile
        .frames
        .iter()
        .zip(&aligned)
        .map(|((_, frame), (path, _))| {
            let text = |id| profile.strings.get(id).to_string();
            ((text(frame.name), text(frame.path)), path.clone())
        })
        .collect();
    set_frames(profile, &aligned);
    align_latencies(&mut profile.latencies, &paths);
    for root in our_paths.roots().iter().chain(their_paths.roots()) {
        profile.meta.add_root(root);
    }
}

/// The methods of a profile.
struct Methods<'a> {
    all: Vec<Method<'a>>,
    by_frame: Vec<usize>,
}

struct Method<'a> {
    key: MethodKey,
    path: &'a str,
    /// Where it begins, if it is defined once.
    only_line: Option<u32>,
}

impl<'a> Methods<'a> {
    fn of(profile: &'a Profile, paths: &CodePaths) -> Self {
        let mut places = FxHashMap::default();
        let mut all: Vec<Method<'a>> = Vec::new();
        let mut by_frame = Vec::new();
        for (_, frame) in profile.frames.iter() {
            let function = Function {
                name: profile.strings.get(frame.name).to_string(),
                path: profile.strings.get(frame.path).to_string(),
                short_path: String::new(),
            };
            let key = MethodKey::of(&function, paths);
            let place = *places.entry(key.id().clone()).or_insert_with(|| {
                all.push(Method {
                    key,
                    path: profile.strings.get(frame.path),
                    only_line: Some(frame.first_line),
                });
                all.len() - 1
            });
            let method = &mut all[place];
            method.only_line = method.only_line.filter(|line| *line == frame.first_line);
            by_frame.push(place);
        }
        Self { all, by_frame }
    }

    fn keys(&self) -> Vec<&MethodKey> {
        self.all.iter().map(|method| &method.key).collect()
    }
}

/// Gives the frames other paths and lines. Those that become the same are one.
fn set_frames(profile: &mut Profile, texts: &[(String, u32)]) {
    let mut frames = Frames::default();
    let mut ids: Vec<FrameId> = Vec::with_capacity(texts.len());
    for ((_, frame), (path, first_line)) in profile.frames.iter().zip(texts) {
        ids.push(frames.intern(Frame {
            name: frame.name,
            path: profile.strings.intern(path),
            first_line: *first_line,
        }));
    }
    let mut tree = CallTree::default();
    let mut nodes = vec![NodeId::ROOT];
    for (_, node) in profile.tree.iter() {
        nodes.push(tree.intern(Node {
            parent: nodes[node.parent.0 as usize],
            frame: ids[node.frame.0 as usize],
            line: node.line,
        }));
    }
    change_keys(profile, |key| {
        Some(WeightKey {
            node: nodes[key.node.0 as usize],
            ..key
        })
    });
    (profile.frames, profile.tree) = (frames, tree);
}

/// How long the calls of methods took, which are known by their paths.
fn align_latencies(latencies: &mut Vec<Latencies>, paths: &FxHashMap<(String, String), String>) {
    let mut aligned: Vec<Latencies> = Vec::new();
    let mut places: FxHashMap<(String, String), usize> = FxHashMap::default();
    for mut it in std::mem::take(latencies) {
        if let Some(path) = paths.get(&(it.name.clone(), it.path.clone())) {
            it.path.clone_from(path);
        }
        match places.get(&(it.name.clone(), it.path.clone())) {
            Some(&place) => aligned[place].durations.merge(&it.durations),
            None => {
                places.insert((it.name.clone(), it.path.clone()), aligned.len());
                aligned.push(it);
            }
        }
    }
    *latencies = aligned;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{By, Sort, Top};
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{Column, Histogram, LabelSetId, State, WeightTable};

    fn profile(root: &str, stacks: &[&[TestFrame<'_>]]) -> Profile {
        let mut profile = Profile::new(test_support::cpu_schema());
        profile.meta.roots = vec![root.to_string()];
        let mut table = WeightTable::new(2);
        for frames in stacks {
            let key = WeightKey {
                node: test_support::node(&mut profile, frames),
                thread: 0,
                labels: LabelSetId(0),
                state: State::Running,
            };
            table.add(key, &[1, 10]);
        }
        profile.weights = table.into_weights();
        profile
    }

    #[test]
    fn methods_get_the_paths_and_first_lines_of_the_other_profile() {
        let mut base = profile(
            "/b1",
            &[
                &[
                    ("<main>", "/b1/app.rb", 1, 9),
                    ("Order#total", "/b1/order.rb", 5, 6),
                ],
                &[
                    ("<main>", "/b1/app.rb", 1, 9),
                    ("Order#old", "/b1/order.rb", 20, 21),
                ],
                &[("Lexer#next", "/g/gems/lexer-1.0.0/lib/lexer.rb", 3, 4)],
                &[("Gone#run", "/b1/gone.rb", 1, 2)],
            ],
        );
        let target = profile(
            "/b2",
            &[
                &[
                    ("<main>", "/b2/app.rb", 1, 9),
                    ("Order#total", "/b2/order.rb", 8, 6),
                ],
                &[("Lexer#next", "/g/gems/lexer-1.1.0/lib/lexer.rb", 3, 4)],
            ],
        );
        let mut durations = Histogram::default();
        durations.add(5);
        base.latencies.push(Latencies {
            name: "Order#total".into(),
            path: "/b1/order.rb".into(),
            durations,
        });
        let before = base.sum(Column(1));
        align(&mut base, &target);
        assert_eq!(base.check(), Ok(()));
        assert_eq!(base.sum(Column(1)), before);
        let mut frames: Vec<(&str, &str, u32)> = base
            .frames
            .iter()
            .map(|(_, it)| {
                (
                    base.strings.get(it.name),
                    base.strings.get(it.path),
                    it.first_line,
                )
            })
            .collect();
        frames.sort_unstable();
        let expected = [
            ("<main>", "/b2/app.rb", 1),
            ("Gone#run", "/b1/gone.rb", 1),
            ("Lexer#next", "/g/gems/lexer-1.1.0/lib/lexer.rb", 3),
            ("Order#old", "/b2/order.rb", 20),
            ("Order#total", "/b2/order.rb", 8),
        ];
        assert_eq!(frames, expected);
        assert_eq!(base.latencies[0].path, "/b2/order.rb");
        let top = Top::of(&base, Column(1), &By::Function);
        let rows = top.sorted(Sort::SelfValue);
        let gone = rows.iter().find(|it| it.function.name == "Gone#run");
        assert_eq!(gone.expect("it stays").function.short_path, "gone.rb");
    }
}
