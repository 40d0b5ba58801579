//! Tests of finding methods in other profiles: the cases, and what holds for any methods.

use super::*;
use proptest::collection::btree_set;
use proptest::prelude::*;
use rperf_model::{Profile, test_support};

fn keys(root: &str, methods: &[(&str, &str)]) -> Vec<MethodKey> {
    let mut profile = Profile::new(test_support::cpu_schema());
    profile.meta.roots.push(root.to_string());
    let paths = CodePaths::of(&profile);
    let key = |(name, path): &(&str, &str)| {
        let function = Function {
            name: name.to_string(),
            path: path.to_string(),
            short_path: String::new(),
        };
        MethodKey::of(&function, &paths)
    };
    methods.iter().map(key).collect()
}

fn found(ours: &[(&str, &str)], theirs: &[(&str, &str)]) -> Vec<Option<(usize, Matched)>> {
    let (ours, theirs) = (keys("/b1", ours), keys("/b2", theirs));
    match_methods(
        &ours.iter().collect::<Vec<_>>(),
        &theirs.iter().collect::<Vec<_>>(),
    )
}

#[test]
fn the_same_program_elsewhere_has_the_same_methods() {
    let found = found(
        &[
            ("<main>", "/b1/app.rb"),
            ("run", "/b1/a/job.rb"),
            ("run", "/b1/b/job.rb"),
            ("Lexer#next", "/g1/gems/lexer-1.0/lib/lexer.rb"),
            ("HTTP#get", "/usr/lib/ruby/3.4.0/net/http.rb"),
            ("Array#each", "<C method>"),
        ],
        &[
            ("Array#each", "<C method>"),
            ("HTTP#get", "/h/lib/ruby/4.0.0/net/http.rb"),
            ("Lexer#next", "/g2/bundler/gems/lexer-0a1b2c3d/lib/lexer.rb"),
            ("run", "/b2/b/job.rb"),
            ("run", "/b2/a/job.rb"),
            ("<main>", "/b2/app.rb"),
        ],
    );
    let expected = [5, 4, 3, 2, 1, 0].map(|place| Some((place, Matched::Path)));
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_moved_is_found_by_its_name_and_another_by_the_methods_name() {
    let found = found(
        &[
            ("Tax#of", "/b1/lib/tax.rb"),
            ("Order#total", "/b1/order.rb"),
            ("Array#each", "<C method>"),
        ],
        &[
            ("Tax#of", "/b2/app/tax.rb"),
            ("Order#total", "/b2/cart.rb"),
            ("Array#each", "<internal:array>"),
        ],
    );
    let expected = [(0, Matched::File), (1, Matched::Name), (2, Matched::Name)];
    assert_eq!(found, expected.map(Some));
}

#[test]
fn equal_paths_are_the_same_though_only_one_profile_knows_the_directory() {
    let known = keys("/b1", &[("run", "/b1/a/x.rb"), ("run", "/b1/x.rb")]);
    let unknown = keys("/elsewhere", &[("run", "/b1/x.rb"), ("run", "/b1/a/x.rb")]);
    let (known, unknown): (Vec<_>, Vec<_>) = (known.iter().collect(), unknown.iter().collect());
    let expected = [1, 0].map(|place| Some((place, Matched::Path)));
    assert_eq!(match_methods(&known, &unknown), expected);
}

#[test]
fn what_is_ambiguous_on_either_side_is_not_guessed() {
    let twice = [("run", "/b1/a.rb"), ("run", "/b1/b.rb")];
    assert_eq!(found(&twice, &[("run", "/b2/c.rb")]), [None, None]);
    assert_eq!(
        found(
            &[("run", "/b1/c.rb")],
            &[("run", "/b2/a.rb"), ("run", "/b2/b.rb")]
        ),
        [None]
    );
    let files = [("run", "/b1/a/x.rb"), ("run", "/b1/b/x.rb")];
    let directories = found(&files, &[("run", "/c/b/x.rb"), ("run", "/c/a/x.rb")]);
    assert_eq!(
        directories,
        [1, 0].map(|place| Some((place, Matched::File)))
    );
    assert_eq!(found(&files, &[("run", "/b2/c/x.rb")]), [None, None]);
    // The one that both have is in the way of a guess by the name alone.
    let found = found(&twice, &[("run", "/b2/a.rb"), ("run", "/b2/c.rb")]);
    assert_eq!(found, [Some((0, Matched::Path)), None]);
}

#[test]
fn a_table_has_the_methods_of_all_profiles_once() {
    let mut table = MethodTable::default();
    let mut add = |root: &str, methods: &[(&str, &str)]| {
        let keys = keys(root, methods);
        let functions: Vec<Function> = methods
            .iter()
            .map(|(name, path)| Function {
                name: name.to_string(),
                path: path.to_string(),
                short_path: String::new(),
            })
            .collect();
        table.add(keys.iter().zip(&functions))
    };
    let first = add("/b2", &[("a", "/b2/a.rb"), ("b", "/b2/b.rb")]);
    assert_eq!(first, [(0, None), (1, None)]);
    let second = add(
        "/b1",
        &[("b", "/b1/b.rb"), ("c", "/b1/c.rb"), ("a", "/b1/x.rb")],
    );
    assert_eq!(
        second,
        [
            (1, Some(Matched::Path)),
            (2, None),
            (0, Some(Matched::Name))
        ]
    );
    let paths: Vec<_> = table
        .functions()
        .iter()
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(paths, ["/b2/a.rb", "/b2/b.rb", "/b1/c.rb"]);
}

proptest! {
    #[test]
    fn no_method_is_found_twice_and_equal_ones_always_are(
        ours in btree_set((0..3_usize, 0..4_usize), 0..12),
        theirs in btree_set((0..3_usize, 0..4_usize), 0..12),
    ) {
        let names = ["a", "b", "c"];
        let files = ["x.rb", "y.rb", "d/x.rb", "e/x.rb"];
        let of = |root: &str, methods: &std::collections::BTreeSet<(usize, usize)>| {
            let paths: Vec<_> = methods.iter().map(|(_, file)| format!("{root}/{}", files[*file])).collect();
            let methods: Vec<_> = methods.iter().zip(&paths).map(|((name, _), path)| (names[*name], path.as_str())).collect();
            keys(root, &methods)
        };
        let (our_keys, their_keys) = (of("/b1", &ours), of("/b2", &theirs));
        let found = match_methods(&our_keys.iter().collect::<Vec<_>>(), &their_keys.iter().collect::<Vec<_>>());
        let places: Vec<usize> = found.iter().flatten().map(|(place, _)| *place).collect();
        let distinct: std::collections::BTreeSet<_> = places.iter().collect();
        prop_assert_eq!(distinct.len(), places.len());
        for (key, found) in our_keys.iter().zip(found) {
            let equal = their_keys.iter().position(|it| it.id() == key.id());
            let expected = equal.map(|place| (place, Matched::Path));
            prop_assert_eq!(found.filter(|(_, how)| *how == Matched::Path), expected);
            if let Some((place, _)) = found {
                prop_assert_eq!(their_keys[place].name(), key.name());
            }
        }
    }
}
